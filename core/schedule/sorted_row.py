"""A row that is sorted, as those see it who write the loops: its keys, and where the numbers go."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Value
from ..kernels.access_ops import buffer_of
from ..kernels.build import AnyIndex, KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.sort_keys import sort_key
from ..lazy_dataclass import dataclass
from ..types import BOOL, DType, TensorType


@dataclass(frozen=True)
class SortedRow:
    """The elements along the middle axis of `source`, and those of `result` that get their numbers, in order."""

    build: KernelBuilder
    source: Value
    result: Value
    outer: IndexSum
    inner: IndexSum
    descending: bool

    @property
    def type(self) -> TensorType:
        """That of the tensor, seen as what is before the axis, along it, and behind it."""
        return buffer_of("argSort", self.source.type)

    @property
    def extent(self) -> int:
        return self.type.shape[1]

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def in_vectors(self, lanes: int) -> Iterator[tuple[IndexSum, int, int]]:
        """Loops over the row, in which what is written at each step stands: indices, their lanes, and how many count.

        Elements go one by one, which is 0 lanes, where they do not lie side by side, or if `lanes` is 0.
        """
        if not lanes or self.type.shape[2] > 1:
            with self.build.loop(self.extent) as loop:
                yield IndexSum(0, {loop.index: 1}), 0, 0
            return
        whole = self.extent - self.extent % lanes
        if whole:
            with self.build.loop(whole, step=lanes) as loop:
                yield IndexSum(0, {loop.index: 1}), lanes, 0
        if whole < self.extent:
            yield IndexSum(whole, {}), lanes, self.extent - whole

    def key(self, at: IndexSum, lanes: int = 0, active: int = 0) -> Value:
        """The key of an element, or those of elements side by side."""
        indices = self.outer, at, self.inner
        steps = (0, 1, 0) if lanes else ()
        x = self.build.load(self.source, *indices, lanes=lanes, steps=steps, active=active)
        return sort_key(self.build, x, descending=self.descending)

    def write_numbers(self, numbers: Value, at: IndexSum, active: int = 0) -> None:
        """A number, or several, that come next in order."""
        indices = self.outer, at, self.inner
        steps = (0, 1, 0) if numbers.tensor.rank else ()
        self.build.store(numbers, self.result, *indices, steps=steps, active=active)

    def write_number_to(self, number: AnyIndex, place: Value) -> None:
        """A number that comes so far from the first, which is computed."""
        always = self.build.constant(BOOL, True)
        value = self.build.index_value(number)
        self.build.store_where(always, value, self.result, self.outer, place, self.inner)
