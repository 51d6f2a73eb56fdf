"""Writes the bodies of kernels: what is known at a place in the loops, and the addresses that begin there.

An address is that of the buffer plus a number of bytes for each coordinate.  What does not change in a loop is added
outside of it: at the start of each body all sums are written that begin there, also those of loops further inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from ...core.ir import Block, Instruction, Op, Value
from ...core.kernels.access_ops import LoadAt, StoreAt, buffer_of
from ...core.kernels.guarded_ops import LoadWhere, StoreWhere
from ...core.kernels.ops import AllocateLocal
from ...core.lazy_dataclass import dataclass
from .checks import Checks
from .element_access import Pointers, element_address, offset_bytes
from .elements import memory_type
from .indices import multiply_constant
from .kernel_addresses import AccessAddress, AddressSum, lane_stride
from .parallel import ParallelLoops
from .sites import CheckSite
from .values import YMM_BYTES
from .writer import FunctionWriter, Register, constants


class PrivateCopies(NamedTuple):
    """Of a buffer: how many threads have one, and how many bytes apart these are."""

    threads: int
    apart: int


@dataclass(eq=False)
class KernelWriter:
    """Writes one kernel.

    `addresses` are those of all loads and stores, `begun` the sums that begin in the body of a loop, by its index or
    what it carries;
    `sums` and `splats` are what has been written and is known where the writer is.
    """

    w: FunctionWriter
    rule_of: Callable[[type[Op]], KernelRule]
    """How the instructions of an op are written."""
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
    private: dict[Value, PrivateCopies] = field(
        default_factory=lambda: dict[Value, PrivateCopies]()
    )
    """The buffers of which threads have copies."""
    has_loops: bool = True

    def write(self, block: Block) -> list[Register]:
        """The instructions of a body; what it yields."""
        for instruction in block.instructions[:-1]:
            self.rule_of(type(instruction.op))(self, instruction)
            for result in instruction.results:
                if result in self.begun:
                    self.write_sums([result])
        for instruction in block.instructions:
            if isinstance(instruction.op, AllocateLocal):
                self.w.release(self.values[instruction.result])
        return [self.values[value] for value in block.terminator.operands]

    def enter(self, block: Block, arguments: Sequence[Register]) -> list[Register]:
        """A body of a loop; the addresses that are written in it are known there only."""
        known = dict(self.sums), dict(self.splats)
        self.values.update(zip(block.arguments, arguments, strict=True))
        for argument in block.arguments:
            for begun in self.begun.get(argument, ()):
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

    def within(self, w: FunctionWriter, values: dict[Value, Register]) -> KernelWriter:
        """The writer of a function of its own for a part of the kernel, which knows these values."""
        return KernelWriter(
            w, self.rule_of, self.addresses, self.begun, site=self.site, values=values
        )


KernelRule: TypeAlias = Callable[[KernelWriter, Instruction[Any]], None]
"""Writes an instruction, and keeps the registers of its results."""
