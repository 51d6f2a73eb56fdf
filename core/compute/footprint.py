"""Which elements of a buffer a nest touches, for each round of its outermost loop."""

from __future__ import annotations

import math

from ..lazy_dataclass import dataclass
from ..ops.nest import Access, Affine, Bounds, Output
from ..types import Shape
from .address import is_inside, linearize


@dataclass(frozen=True)
class Footprint:
    """Elements `stride · row + low … stride · row + high` of a buffer, for each of `rows`."""

    stride: int
    low: int
    high: int
    rows: int

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last element."""
        far = self.stride * (self.rows - 1)
        return self.low + min(far, 0), self.high + max(far, 0)

    @property
    def row(self) -> int | None:
        """Which of the rows of `stride` elements it is in, counted from the row that the loop is at."""
        if self.stride <= 0 or self.low // self.stride != self.high // self.stride:
            return None
        return self.low // self.stride

    def is_independent(self, other: Footprint) -> bool:
        """Whether different rows of both have no element in common."""
        (first, last), (start, stop) = self.reach, other.reach
        if last < start or stop < first:
            return True
        return self.stride == other.stride and self.row is not None and self.row == other.row


def footprint(shape: Shape, use: Access | Output, extents: Shape, outer: int) -> Footprint | None:
    """What is touched at most, if indices are affine, and inside where the outermost loop changes them.

    Where others leave the tensor, nothing is touched outside of it.
    """
    inside: list[Affine] = []
    least = most = 0
    for number, (index, extent) in enumerate(zip(use.indices, shape, strict=True)):
        if not isinstance(index, Affine):
            return None
        if use.bounds is Bounds.INSIDE or is_inside(index, extent, extents):
            inside.append(index)
            continue
        if index.coefficient(outer) or use.bounds is Bounds.CHECK or not extent:
            return None
        stride = math.prod(shape[number + 1 :])
        ends = [min(max(end, 0), extent - 1) * stride for end in index.bounds(extents)]
        inside.append(Affine())
        least, most = least + ends[0], most + ends[1]
    place = linearize(inside, shape)
    rest = Affine(place.constant, tuple(term for term in place.terms if term[0] != outer))
    low, high = rest.bounds(extents)
    return Footprint(place.coefficient(outer), low + least, high + most, extents[outer])
