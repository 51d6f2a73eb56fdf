"""Translates kernels, instruction by instruction: a loop is a loop, a load is a load.

An address is that of the buffer plus a number of bytes for each coordinate.  What does not change in a loop is added
outside of it: at the start of each body all sums are written that begin there, also those of loops further inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ...core.errors import InternalError
from ...core.ir import Block, Instruction, Op, Value
from ...core.kernels.access_ops import LoadAt, PrefetchAt, StoreAt, buffer_of
from ...core.kernels.guarded_ops import (
    CheckIndex,
    CopyBuffer,
    ExtractLane,
    FillBuffer,
    IsInside,
    LoadWhere,
    ReshapeBuffer,
    StoreWhere,
)
from ...core.kernels.loops import inside
from ...core.kernels.ops import (
    AffineIndex,
    AllocateLocal,
    Fma,
    Kernel,
    LaneNumbers,
    Loop,
    ReduceLanes,
    Shuffle,
    body_nanoseconds,
    copy_bytes,
)
from ...core.lazy_dataclass import dataclass
from ...core.ops.literal import Literal, literal_of
from ...core.ops.reduction import Broadcast
from ..runtime.pool_code import MOST_BLOCKS, MOST_THREADS
from .checks import Checks
from .element_access import (
    Lanes,
    Pointers,
    element_address,
    load_elements,
    offset_bytes,
    store_elements,
)
from .elements import combine, memory_type, register_type, splat_element
from .fill import write_copy, write_fill
from .hidden_results import hidden_results
from .indices import add_constant, is_inside, multiply_constant
from .kernel_addresses import AccessAddress, AddressSum, addresses_in, lane_stride
from .parallel import ParallelLoops
from .parallel_checks import FailureRecord
from .scalar import write_scalar
from .sites import CheckSite
from .values import YMM_BYTES
from .writer import I8, I64, FunctionWriter, Register, constant, constants


def write_kernel(
    w: FunctionWriter,
    kernel: Instruction[Kernel],
    bases: Sequence[Register],
    parallel: ParallelLoops | None = None,
    checks: Checks | None = None,
    report: Register | None = None,
) -> None:
    """Write a kernel; `bases` are the addresses of its operands and of its results.

    Parallel loops are written by `parallel`; without it they are loops like all others.  Its checks are among those of
    the function that it is in, `checks`, and the details of a failure go to `report`.
    """
    block = kernel.regions[0].entry
    site = CheckSite(kernel.location)
    writer = _KernelWriter(w, *addresses_in(block), parallel, checks, report, site)
    writer.has_loops = any(instruction.regions for instruction in block.instructions)
    writer.given.update(zip(block.arguments, bases, strict=True))
    writer.private.update(_private_buffers(kernel))
    writer.values.update(zip(block.arguments, hidden_results(w, kernel, bases), strict=True))
    writer.write(block)


class _Copies(NamedTuple):
    """Of a buffer: how many threads have one, and how many bytes apart these are."""

    threads: int
    apart: int


@dataclass(eq=False)
class _KernelWriter:
    """Writes one kernel.

    `addresses` are those of all loads and stores, `begun` the sums that begin in the body of a loop, by its index;
    `sums` and `splats` are what has been written and is known where the writer is.
    """

    w: FunctionWriter
    addresses: Mapping[Instruction, AccessAddress]
    begun: Mapping[Value, Sequence[AddressSum]]
    parallel: ParallelLoops | None = None
    checks: Checks | None = None
    report: Register | None = None
    site: CheckSite | None = None
    values: dict[Value, Register] = field(default_factory=dict[Value, Register])
    given: dict[Value, Register] = field(default_factory=dict[Value, Register])
    """The addresses of buffers before those of results were hidden."""
    sums: dict[AddressSum, Register] = field(default_factory=dict[AddressSum, Register])
    splats: dict[tuple[Value, int], Register] = field(
        default_factory=dict[tuple[Value, int], Register]
    )
    private: dict[Value, _Copies] = field(default_factory=lambda: dict[Value, _Copies]())
    """The buffers of which threads have copies."""
    has_loops: bool = True

    def write(self, block: Block) -> list[Register]:
        """The instructions of a body; what it yields."""
        for instruction in block.instructions[:-1]:
            rule = _RULES.get(type(instruction.op), _write_pointwise)
            rule(self, instruction)
            for result in instruction.results:
                if result in self.begun:
                    self.write_sums([result])
        return [self.values[value] for value in block.terminator.operands]

    def enter(self, block: Block, arguments: Sequence[Register]) -> list[Register]:
        """A body of a loop; the addresses that are written in it are known there only."""
        known = dict(self.sums), dict(self.splats)
        self.values.update(zip(block.arguments, arguments, strict=True))
        for begun in self.begun.get(block.arguments[0], ()):
            if begun.buffer in self.values:
                self.sum(begun)
        result = self.write(block)
        self.sums, self.splats = known
        return result

    def write_sums(self, indices: Iterable[Value]) -> None:
        """The sums that end with one of these indices, as far as what they are made of is known."""
        for begun in (begun for index in indices for begun in self.begun.get(index, ())):
            if begun.terms() <= self.values.keys():
                self.sum(begun)

    def register(self, value: Value, lanes: int) -> Register:
        """A value in `lanes` lanes."""
        register = self.values[value]
        if register.type.lanes == lanes:
            return register
        if (value, lanes) not in self.splats:
            self.splats[value, lanes] = self.w.splat(register, lanes)
        return self.splats[value, lanes]

    def pointer(
        self,
        instruction: Instruction[LoadAt | StoreAt | LoadWhere | StoreWhere],
        condition: Register | None = None,
    ) -> Pointers:
        """Where an access begins, and how far apart its lanes are."""
        address = self.addresses[instruction]
        stride = lane_stride(address.tensor, instruction.op.steps)
        element, offsets = self.element(address), self.offsets(address, stride)
        varies = stride != 0 or offsets is not None
        tensor = address.tensor
        is_short = tensor.bytes <= YMM_BYTES and not self.has_loops and condition is None
        return Pointers(tensor.dtype, element, stride, offsets, condition, varies, is_short)

    def offsets(self, address: AccessAddress, stride: int) -> Register | None:
        """The elements from there to that of each lane, where these have coordinates of their own."""
        found: Register | None = None
        for value, elements in address.apart:
            offset = multiply_constant(self.w, self.values[value], elements)
            found = offset if found is None else self.w.add(found, offset)
        if found is None or not stride:
            return found
        lanes = found.type.lanes
        return self.w.add(found, constants("i64", [lane * stride for lane in range(lanes)]))

    def element(self, address: AccessAddress) -> Register:
        """Where an element is."""
        bytes = address.constant * address.tensor.dtype.bytes
        return offset_bytes(self.w, self.sum(address.sum), bytes)

    def sum(self, sum: AddressSum | Value) -> Register:
        """The address of a buffer with all terms added, what several addresses begin with once."""
        if isinstance(sum, Value):
            return self.values[sum]
        found = self.sums.get(sum)
        if found is None:
            element = memory_type(buffer_of("kernel", sum.buffer.type).dtype)
            moved = multiply_constant(self.w, self.values[sum.coordinate], sum.elements)
            found = element_address(self.w, self.sum(sum.start), element, moved)
            self.sums[sum] = found
        return found


def _write_loop(k: _KernelWriter, instruction: Instruction[Loop]) -> None:
    op, block = instruction.op, instruction.regions[0].entry
    if k.parallel is not None and 0 < op.grain < op.count:
        _write_parallel_loop(k, instruction, k.parallel)
        return
    carried = [k.values[value] for value in instruction.operands]
    bounds = [constant(I64, number) for number in (op.lower, op.upper, op.step)]
    results: Sequence[Register] = carried
    if op.count == 1:
        results = k.enter(block, [bounds[0], *carried])
    elif op.count:
        start, stop, step = bounds
        with k.w.loop(start, stop, step, carried, guarded=False) as loop:
            loop.carry(*k.enter(block, [loop.index, *loop.values]))
        results = loop.results
    k.values.update(zip(instruction.results, results, strict=True))


def _write_parallel_loop(
    k: _KernelWriter, instruction: Instruction[Loop], parallel: ParallelLoops
) -> None:
    """Blocks of `grain` iterations; what is read of outside is given to the function that runs one."""
    op, block = instruction.op, instruction.regions[0].entry
    grain = max(op.grain, -(-op.count // MOST_BLOCKS))
    length = grain * op.step
    outside = _values_outside(block)
    private = [value for value in outside if value in k.private]
    threads = min((k.private[buffer].threads for buffer in private), default=MOST_THREADS)
    given = [k.values[value] for value in outside]
    record = _failure_record(k, block)
    if record is not None:
        given += [record.record, record.report]

    def write(
        w: FunctionWriter, given: Sequence[Register], number: Register, thread: Register
    ) -> None:
        values = dict(zip(outside, given, strict=False))
        for buffer in private:
            own = multiply_constant(w, thread, k.private[buffer].apart)
            values[buffer] = element_address(w, values[buffer], I8, own)
        inner = _KernelWriter(w, k.addresses, k.begun, site=k.site, values=values)
        if record is None:
            write_block(inner, number)
            return
        assert k.checks is not None
        own_record = FailureRecord(*given[len(outside) :])
        with own_record.block(parallel.module, w, number, k.checks.sites) as inner.checks:
            write_block(inner, number)

    def write_block(inner: _KernelWriter, number: Register) -> None:
        w = inner.w
        inner.write_sums(outside)
        first = add_constant(w, multiply_constant(w, number, length), op.lower)
        if grain == 1:
            inner.enter(block, [first])
            return
        stop = add_constant(w, first, length)
        if op.count % grain:
            stop = w.smin(stop, constant(I64, op.upper))
        with w.loop(first, stop, constant(I64, op.step), guarded=False) as loop:
            inner.enter(block, [loop.index])

    work = op.count * body_nanoseconds(instruction)
    parallel.write(k.w, -(-op.count // grain), given, write, nanoseconds=work, threads=threads)
    if record is not None:
        assert k.checks is not None
        k.checks.pass_on(k.w, record.code(k.w))


def _failure_record(k: _KernelWriter, block: Block) -> FailureRecord | None:
    """That of the blocks of a loop, if any check stands in it."""
    if not any(isinstance(one.op, CheckIndex) for one in inside(block)):
        return None
    if k.report is None:
        raise InternalError("a kernel that is a function has no checks")
    return FailureRecord.begin(k.w, k.report)


def _private_buffers(kernel: Instruction[Kernel]) -> dict[Value, _Copies]:
    op = kernel.op
    buffers = kernel.regions[0].entry.arguments[-len(op.using) :] if op.using else ()
    return {
        buffer: _Copies(copies, copy_bytes(buffer_of("kernel", buffer.type)))
        for buffer, copies in zip(buffers, op.copies, strict=True)
        if copies
    }


def _values_outside(block: Block) -> list[Value]:
    """What the body of a loop reads of the instructions and arguments around it."""
    made: set[Value] = set()
    read: dict[Value, None] = {}
    pending = [block]
    while pending:
        inner = pending.pop()
        made.update(inner.arguments)
        for instruction in inner.instructions:
            made.update(instruction.results)
            read.update(dict.fromkeys(instruction.operands))
            pending += [region.entry for region in instruction.regions]
    return [value for value in read if value not in made]


def _write_load(k: _KernelWriter, instruction: Instruction[LoadAt]) -> None:
    op = instruction.op
    at = k.pointer(instruction)
    lanes = op.lanes or 1
    loaded = load_elements(k.w, at, Lanes(lanes, op.active or lanes))
    k.values[instruction.result] = k.w.splat(loaded, lanes)


def _write_prefetch(k: _KernelWriter, instruction: Instruction[PrefetchAt]) -> None:
    k.w.prefetch(k.element(k.addresses[instruction]))


def _write_store(k: _KernelWriter, instruction: Instruction[StoreAt]) -> None:
    value = k.values[instruction.operands[0]]
    lanes = value.type.lanes
    at = k.pointer(instruction)
    store_elements(k.w, at, value, Lanes(lanes, instruction.op.active or lanes))


def _write_load_where(k: _KernelWriter, instruction: Instruction[LoadWhere]) -> None:
    op, lanes = instruction.op, instruction.op.lanes or 1
    at = k.pointer(instruction, _condition(k, instruction.operands[0]))
    loaded = load_elements(k.w, at, Lanes(lanes, op.active or lanes))
    k.values[instruction.result] = k.w.splat(loaded, lanes)


def _write_store_where(k: _KernelWriter, instruction: Instruction[StoreWhere]) -> None:
    op, lanes = instruction.op, instruction.op.lanes or 1
    at = k.pointer(instruction, _condition(k, instruction.operands[0]))
    value = k.values[instruction.operands[1]]
    store_elements(k.w, at, value, Lanes(lanes, op.active or lanes))


def _condition(k: _KernelWriter, value: Value) -> Register | None:
    """None where it always holds."""
    literal = literal_of(value)
    return None if literal is not None and literal.splat_value() else k.values[value]


def _write_is_inside(k: _KernelWriter, instruction: Instruction[IsInside]) -> None:
    index = k.values[instruction.operands[0]]
    k.values[instruction.result] = is_inside(k.w, index, instruction.op.extent)


def _write_check(k: _KernelWriter, instruction: Instruction[CheckIndex]) -> None:
    if k.checks is None or k.site is None:
        raise InternalError("a kernel that is a function has no checks")
    op, index = instruction.op, k.values[instruction.operands[0]]
    lanes = index.type.lanes
    mask = Lanes(lanes, op.active or lanes).mask
    k.checks.write_check(k.w, index, op.extent, k.checks.add(k.site), mask)


def _write_lane(k: _KernelWriter, instruction: Instruction[ExtractLane]) -> None:
    lane = k.w.extract(k.values[instruction.operands[0]], instruction.op.lane)
    k.values[instruction.result] = lane


def _write_fill(k: _KernelWriter, instruction: Instruction[FillBuffer]) -> None:
    buffer, number = instruction.operands
    literal = literal_of(number)
    assert literal is not None
    write_fill(k.w, k.values[buffer], buffer_of("fillBuffer", buffer.type), literal)


def _write_copy(k: _KernelWriter, instruction: Instruction[CopyBuffer]) -> None:
    source, target = instruction.operands
    tensor = buffer_of("copyBuffer", source.type)
    # the same texts say that they are one buffer, and hidden addresses have texts of their own
    first, second = (k.given.get(x, k.values[x]) for x in (source, target))
    write_copy(k.w, first, second, tensor)


def _write_reshape(k: _KernelWriter, instruction: Instruction[ReshapeBuffer]) -> None:
    k.values[instruction.result] = k.values[instruction.operands[0]]


def _write_allocate(k: _KernelWriter, instruction: Instruction[AllocateLocal]) -> None:
    type = instruction.op.type
    k.values[instruction.result] = k.w.allocate(memory_type(type.dtype), max(type.size, 1))


def _write_fma(k: _KernelWriter, instruction: Instruction[Fma]) -> None:
    lanes = _lanes(instruction)
    operands = [k.register(operand, lanes) for operand in instruction.operands]
    k.values[instruction.result] = k.w.fma(*operands)


def _write_reduce(k: _KernelWriter, instruction: Instruction[ReduceLanes]) -> None:
    dtype, value = instruction.result.tensor.dtype, k.values[instruction.operands[0]]
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        parts = [k.w.subvector(value, first, half) for first in (0, half)]
        value = combine(k.w, instruction.op.combinator, dtype, parts[0], parts[1])
    k.values[instruction.result] = value


def _write_shuffle(k: _KernelWriter, instruction: Instruction[Shuffle]) -> None:
    x, y = (k.values[operand] for operand in instruction.operands)
    k.values[instruction.result] = k.w.shuffle(x, y, instruction.op.chosen)


def _write_index(k: _KernelWriter, instruction: Instruction[AffineIndex]) -> None:
    expression = instruction.op.expression
    total = constant(I64, 0)
    for number, coefficient in expression.terms:
        term = multiply_constant(k.w, k.values[instruction.operands[number]], coefficient)
        total = term if total.is_constant and total.text == "0" else k.w.add(total, term)
    k.values[instruction.result] = add_constant(k.w, total, expression.constant)


def _write_lane_numbers(k: _KernelWriter, instruction: Instruction[LaneNumbers]) -> None:
    op = instruction.op
    k.values[instruction.result] = constants("i64", [lane * op.step for lane in range(op.lanes)])


def _write_literal(k: _KernelWriter, instruction: Instruction[Literal]) -> None:
    literal = instruction.op
    lanes, dtype = _lanes(instruction), literal.type.dtype
    if literal.is_splat or lanes == 1:
        k.values[instruction.result] = k.w.splat(splat_element(literal), lanes)
        return
    numbers = [number.item() for number in literal.evaluate().ravel()]
    k.values[instruction.result] = constants(register_type(dtype).scalar, numbers)


def _write_broadcast(k: _KernelWriter, instruction: Instruction[Broadcast]) -> None:
    k.values[instruction.result] = k.register(instruction.operands[0], _lanes(instruction))


def _write_pointwise(k: _KernelWriter, instruction: Instruction) -> None:
    """An elementwise function, of as many lanes as its result has."""
    operands, result = instruction.operands, instruction.result
    registers = [k.register(operand, _lanes(instruction)) for operand in operands]
    dtypes = [operand.tensor.dtype for operand in operands]
    k.values[result] = write_scalar(k.w, instruction.op, dtypes, result.tensor.dtype, registers)


def _lanes(instruction: Instruction) -> int:
    type = instruction.result.tensor
    if type.rank > 1:
        raise InternalError(f"a kernel has values of scalars and vectors, not of {type}")
    return type.shape[0] if type.rank else 1


_Rule: TypeAlias = Callable[[_KernelWriter, Instruction[Any]], None]

_RULES: Final[Mapping[type[Op], _Rule]] = MappingProxyType(
    {
        Loop: _write_loop,
        LoadAt: _write_load,
        StoreAt: _write_store,
        PrefetchAt: _write_prefetch,
        AllocateLocal: _write_allocate,
        Fma: _write_fma,
        ReduceLanes: _write_reduce,
        Shuffle: _write_shuffle,
        AffineIndex: _write_index,
        LaneNumbers: _write_lane_numbers,
        LoadWhere: _write_load_where,
        StoreWhere: _write_store_where,
        IsInside: _write_is_inside,
        CheckIndex: _write_check,
        ExtractLane: _write_lane,
        FillBuffer: _write_fill,
        CopyBuffer: _write_copy,
        ReshapeBuffer: _write_reshape,
        Literal: _write_literal,
        Broadcast: _write_broadcast,
    }
)
"""How the ops of kernels are written; all others are elementwise functions."""
