"""Translates kernels, instruction by instruction, by a rule for each op (loops: `kernel_loops`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ...core.errors import InternalError
from ...core.ir import Instruction, Op, Value
from ...core.kernels.access_ops import LoadAt, PrefetchAt, StoreAt, StreamInto, buffer_of
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
from ...core.kernels.ops import (
    AffineIndex,
    AllocateLocal,
    BoundedLoop,
    Fma,
    Kernel,
    LaneNumbers,
    Loop,
    ReduceLanes,
    Shuffle,
    copy_bytes,
)
from ...core.ops.literal import Literal, literal_of
from ...core.ops.reduction import Broadcast
from .checks import Checks
from .element_access import Lanes, load_elements, store_elements
from .elements import combine, memory_type, register_type, splat_element
from .fill import write_copy, write_fill, write_stream
from .hidden_results import hidden_results
from .indices import add_constant, is_inside, multiply_constant
from .kernel_addresses import addresses_in
from .kernel_loops import write_bounded_loop, write_loop
from .kernel_writer import KernelRule, KernelWriter, PrivateCopies
from .parallel import ParallelLoops
from .scalar import write_scalar
from .sites import CheckSite
from .writer import I64, FunctionWriter, Register, constant, constants


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
    writer = KernelWriter(w, _rule_of, *addresses_in(block), parallel, checks, report, site)
    writer.has_loops = any(instruction.regions for instruction in block.instructions)
    writer.given.update(zip(block.arguments, bases, strict=True))
    writer.private.update(_private_buffers(kernel))
    writer.values.update(zip(block.arguments, hidden_results(w, kernel, bases), strict=True))
    writer.write(block)


def _private_buffers(kernel: Instruction[Kernel]) -> dict[Value, PrivateCopies]:
    op = kernel.op
    buffers = kernel.regions[0].entry.arguments[-len(op.using) :] if op.using else ()
    return {
        buffer: PrivateCopies(copies, copy_bytes(buffer_of("kernel", buffer.type)))
        for buffer, copies in zip(buffers, op.copies, strict=True)
        if copies
    }


def _write_load(k: KernelWriter, instruction: Instruction[LoadAt]) -> None:
    op = instruction.op
    at = k.pointer(instruction)
    lanes = op.lanes or 1
    loaded = load_elements(k.w, at, Lanes(lanes, op.active or lanes))
    k.values[instruction.result] = k.w.splat(loaded, lanes)


def _write_prefetch(k: KernelWriter, instruction: Instruction[PrefetchAt]) -> None:
    k.w.prefetch(k.element(k.addresses[instruction]))


def _write_store(k: KernelWriter, instruction: Instruction[StoreAt]) -> None:
    value = k.values[instruction.operands[0]]
    lanes = value.type.lanes
    at = k.pointer(instruction)
    store_elements(k.w, at, value, Lanes(lanes, instruction.op.active or lanes))


def _write_load_where(k: KernelWriter, instruction: Instruction[LoadWhere]) -> None:
    op, lanes = instruction.op, instruction.op.lanes or 1
    at = k.pointer(instruction, _condition(k, instruction.operands[0]))
    loaded = load_elements(k.w, at, Lanes(lanes, op.active or lanes))
    k.values[instruction.result] = k.w.splat(loaded, lanes)


def _write_store_where(k: KernelWriter, instruction: Instruction[StoreWhere]) -> None:
    op, lanes = instruction.op, instruction.op.lanes or 1
    at = k.pointer(instruction, _condition(k, instruction.operands[0]))
    value = k.values[instruction.operands[1]]
    store_elements(k.w, at, value, Lanes(lanes, op.active or lanes))


def _condition(k: KernelWriter, value: Value) -> Register | None:
    """None where it always holds."""
    literal = literal_of(value)
    return None if literal is not None and literal.splat_value() else k.values[value]


def _write_is_inside(k: KernelWriter, instruction: Instruction[IsInside]) -> None:
    index = k.values[instruction.operands[0]]
    k.values[instruction.result] = is_inside(k.w, index, instruction.op.extent)


def _write_check(k: KernelWriter, instruction: Instruction[CheckIndex]) -> None:
    if k.checks is None or k.site is None:
        raise InternalError("a kernel that is a function has no checks")
    op, index = instruction.op, k.values[instruction.operands[0]]
    lanes = index.type.lanes
    mask = Lanes(lanes, op.active or lanes).mask
    k.checks.write_check(k.w, index, op.extent, k.checks.add(k.site), mask)


def _write_lane(k: KernelWriter, instruction: Instruction[ExtractLane]) -> None:
    lane = k.w.extract(k.values[instruction.operands[0]], instruction.op.lane)
    k.values[instruction.result] = lane


def _write_fill(k: KernelWriter, instruction: Instruction[FillBuffer]) -> None:
    buffer, number = instruction.operands
    literal = literal_of(number)
    assert literal is not None
    write_fill(k.w, k.values[buffer], buffer_of("fillBuffer", buffer.type), literal)


def _write_copy(k: KernelWriter, instruction: Instruction[CopyBuffer]) -> None:
    source, target = instruction.operands
    tensor = buffer_of("copyBuffer", source.type)
    # the same texts say that they are one buffer, and hidden addresses have texts of their own
    first, second = (k.given.get(x, k.values[x]) for x in (source, target))
    write_copy(k.w, first, second, tensor)


def _write_stream(k: KernelWriter, instruction: Instruction[StreamInto]) -> None:
    source, target = k.values[instruction.operands[0]], k.element(k.addresses[instruction])
    tensor = buffer_of("streamInto", instruction.operands[0].type)
    write_stream(k.w, source, target, tensor)


def _write_reshape(k: KernelWriter, instruction: Instruction[ReshapeBuffer]) -> None:
    k.values[instruction.result] = k.values[instruction.operands[0]]


def _write_allocate(k: KernelWriter, instruction: Instruction[AllocateLocal]) -> None:
    type = instruction.op.type
    k.values[instruction.result] = k.w.allocate(memory_type(type.dtype), max(type.size, 1))


def _write_fma(k: KernelWriter, instruction: Instruction[Fma]) -> None:
    lanes = _lanes(instruction)
    operands = [k.register(operand, lanes) for operand in instruction.operands]
    k.values[instruction.result] = k.w.fma(*operands)


def _write_reduce(k: KernelWriter, instruction: Instruction[ReduceLanes]) -> None:
    dtype, value = instruction.result.tensor.dtype, k.values[instruction.operands[0]]
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        parts = [k.w.subvector(value, first, half) for first in (0, half)]
        value = combine(k.w, instruction.op.combinator, dtype, parts[0], parts[1])
    k.values[instruction.result] = value


def _write_shuffle(k: KernelWriter, instruction: Instruction[Shuffle]) -> None:
    x, y = (k.values[operand] for operand in instruction.operands)
    k.values[instruction.result] = k.w.shuffle(x, y, instruction.op.chosen)


def _write_index(k: KernelWriter, instruction: Instruction[AffineIndex]) -> None:
    expression = instruction.op.expression
    total = constant(I64, 0)
    for number, coefficient in expression.terms:
        term = multiply_constant(k.w, k.values[instruction.operands[number]], coefficient)
        total = term if total.is_constant and total.text == "0" else k.w.add(total, term)
    k.values[instruction.result] = add_constant(k.w, total, expression.constant)


def _write_lane_numbers(k: KernelWriter, instruction: Instruction[LaneNumbers]) -> None:
    op = instruction.op
    k.values[instruction.result] = constants("i64", [lane * op.step for lane in range(op.lanes)])


def _write_literal(k: KernelWriter, instruction: Instruction[Literal]) -> None:
    literal = instruction.op
    lanes, dtype = _lanes(instruction), literal.type.dtype
    if literal.is_splat or lanes == 1:
        k.values[instruction.result] = k.w.splat(splat_element(literal), lanes)
        return
    numbers = [number.item() for number in literal.evaluate().ravel()]
    k.values[instruction.result] = constants(register_type(dtype).scalar, numbers)


def _write_broadcast(k: KernelWriter, instruction: Instruction[Broadcast]) -> None:
    k.values[instruction.result] = k.register(instruction.operands[0], _lanes(instruction))


def _write_pointwise(k: KernelWriter, instruction: Instruction) -> None:
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


_RULES: Final[Mapping[type[Op], KernelRule]] = MappingProxyType(
    {
        Loop: write_loop,
        BoundedLoop: write_bounded_loop,
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
        StreamInto: _write_stream,
        ReshapeBuffer: _write_reshape,
        Literal: _write_literal,
        Broadcast: _write_broadcast,
    }
)
"""How the ops of kernels are written; all others are elementwise functions."""


def _rule_of(op: type[Op]) -> KernelRule:
    return _RULES.get(op, _write_pointwise)
