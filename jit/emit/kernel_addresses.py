"""The addresses of a kernel's accesses, as sums of a buffer and so many bytes for each coordinate.

Terms of a sum stand in the order in which they are known, so that accesses share what is the same of theirs outside of
a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...core.ir import Block, Instruction, Value
from ...core.kernels.access_ops import IndexedAccess, buffer_of
from ...core.lazy_dataclass import dataclass
from ...core.types import Shape, TensorType


@dataclass(eq=False, slots=True)
class AddressSum:
    """The address of a buffer, or another sum, with so many elements added for each of a coordinate."""

    start: AddressSum | Value
    coordinate: Value
    elements: int
    buffer: Value

    def terms(self) -> set[Value]:
        """The buffer and all coordinates."""
        start = self.start.terms() if isinstance(self.start, AddressSum) else {self.buffer}
        return {*start, self.coordinate}


class AccessAddress(NamedTuple):
    """An address as a sum, or a buffer, and a constant number of elements."""

    sum: AddressSum | Value
    constant: int
    tensor: TensorType
    apart: tuple[tuple[Value, int], ...] = ()
    """Coordinates that differ from lane to lane, and so many elements for each."""


def addresses_in(
    block: Block,
) -> tuple[dict[Instruction, AccessAddress], dict[Value, list[AddressSum]]]:
    """The addresses of all loads and stores of a kernel, and the sums that begin in each loop, by its index or
    what it carries."""
    depths: dict[Value, float] = {}
    found: dict[Instruction, AccessAddress] = {}
    known: dict[tuple[AddressSum | Value, Value, int], AddressSum] = {}
    pending = [(block, 0)]
    while pending:
        inner, depth = pending.pop()
        if depth:  # what a loop carries may be a coordinate, too
            depths.update(dict.fromkeys(inner.arguments, depth))
        for instruction in inner.instructions:
            for result in instruction.results:  # which may be a coordinate
                depths[result] = depth + _COMPUTED
            if isinstance(instruction.op, IndexedAccess):
                found[instruction] = _address_of(instruction, instruction.op, depths, known)
            pending += [(region.entry, depth + 1) for region in instruction.regions]
    begun: dict[Value, list[AddressSum]] = {}
    for sum in known.values():
        begun.setdefault(sum.coordinate, []).append(sum)
    return found, begun


def _address_of(
    instruction: Instruction,
    op: IndexedAccess,
    depths: Mapping[Value, float],
    known: dict[tuple[AddressSum | Value, Value, int], AddressSum],
) -> AccessAddress:
    """Terms stand in the order in which they are known, outer loops first; sums with the same terms are one."""
    buffer, *coordinates = instruction.operands[op.first_buffer :]
    tensor = buffer_of(op.name, buffer.type)
    counts: dict[Value, int] = {}
    constant = 0
    for index, stride in zip(op.indices, strides(tensor.shape), strict=True):
        constant += index.constant * stride
        for number, coefficient in index.terms:
            coordinate = coordinates[number]
            counts[coordinate] = counts.get(coordinate, 0) + coefficient * stride
    sum: AddressSum | Value = buffer
    apart = tuple([(value, n) for value, n in counts.items() if value.tensor.rank and n])
    for value, _ in apart:
        del counts[value]
    for value in sorted(counts, key=depths.__getitem__):
        if elements := counts[value]:
            key = sum, value, elements
            sum = known.get(key) or known.setdefault(key, AddressSum(sum, value, elements, buffer))
    return AccessAddress(sum, constant, tensor, apart)


def lane_stride(tensor: TensorType, steps: Sequence[int]) -> int:
    """Elements from one lane to the next."""
    return sum(s * step for s, step in zip(strides(tensor.shape), steps, strict=False))


_COMPUTED: Final = 0.5
"""Behind the index of the loop that it is computed in, before those of loops inside."""


def strides(shape: Shape) -> tuple[int, ...]:
    """Elements from one index to the next, per axis, row-major."""
    found: list[int] = []
    stride = 1
    for extent in reversed(shape):
        found.append(stride)
        stride *= extent
    return tuple(reversed(found))
