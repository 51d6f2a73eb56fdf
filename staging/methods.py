"""The methods of a Rep that NumPy's arrays have too: each is the function of its name, and gives a new value.

`repeat(…)` is `nk.repeat(x, …)`: arguments and defaults are said there.  Reductions are in `staging.reductions`.
"""

from __future__ import annotations

from typing import Any, Self, cast

from . import primitive
from .primitive import rank_error
from .reductions import Reductions
from .rep_base import function_of
from .static import core_dtype
from .tracebacks import public_methods


@public_methods
class Methods(Reductions):
    """A staged value with the methods of arrays."""

    __slots__ = ()

    def _by(self, name: str, *arguments: Any, **options: Any) -> Self:
        return cast("Self", function_of(self, name)(self, *arguments, **options))

    def __divmod__(self, other: object) -> tuple[Self, Self]:
        x: Any = self
        return x // other, x % other

    def __rdivmod__(self, other: object) -> tuple[Self, Self]:
        x: Any = self
        return other // x, other % x

    def argsort(self, axis: int | None = -1, *, descending: bool = False) -> Self:
        """The indices that sort along an axis.

        Example: `y.argsort()`
        """
        return self._by("argsort", axis, descending=descending)

    def sort(self, axis: int | None = -1, *, descending: bool = False) -> Self:
        """The elements in order along an axis, as a new value.

        Example: `y.sort(descending=True)`
        """
        return self._by("sort", axis, descending=descending)

    def searchsorted(self, v: Any, side: str = "left") -> Self:
        """Where each element of v goes in this sorted vector.

        Example: `x.searchsorted(y)`
        """
        return self._by("searchsorted", v, side)

    def nonzero(self, *, size: Any = None, fill_value: Any = None) -> tuple[Self, ...]:
        """The indices of the first `size` elements that are not 0.

        Example: `y.nonzero(size=3)[0]`
        """
        found: Any = self._by("nonzero", size=size, fill_value=fill_value)
        return cast("tuple[Self, ...]", found)

    def clip(self, min: Any = None, max: Any = None) -> Self:
        """The elements, not below `min` and not above `max`.

        Example: `x.clip(1.5, 3.0)`
        """
        return self._by("clip", min, max)

    def cumsum(self, axis: Any = None) -> Self:
        """Running sums along an axis, or of all elements in a row.

        Example: `m.cumsum(axis=1)`
        """
        return self._by("cumsum", axis)

    def cumprod(self, axis: Any = None) -> Self:
        """Running products along an axis, or of all elements in a row.

        Example: `m.cumprod()`
        """
        return self._by("cumprod", axis)

    def take(
        self, indices: Any, axis: int = 0, *, mode: str = "error", fill_value: Any = None
    ) -> Self:
        """The elements at `indices` along an axis.

        Example: `m.take(i, axis=1)`
        """
        return self._by("take", indices, axis, mode=mode, fill_value=fill_value)

    def scatter(
        self, indices: Any, values: Any, axis: int = -1, *, reduce: str = "set", mode: str = "error"
    ) -> Self:
        """A new value with `values` written at indices along an axis, or joined with what is there.

        Example: `x.scatter(i, y, reduce="add")`
        """
        return self._by("scatter", indices, values, axis, reduce=reduce, mode=mode)

    def repeat(self, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None) -> Self:
        """Each element several times.

        Example: `x.repeat(2)`
        """
        return self._by("repeat", repeats, axis, total_repeat_length=total_repeat_length)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The elements of a diagonal.

        Example: `m.diagonal(1)`
        """
        return self._by("diagonal", offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The sum of a diagonal.

        Example: `s.trace()`
        """
        return self._by("trace", offset, axis1, axis2)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """With two axes in each other's place.

        Example: `m.swapaxes(0, 1)`
        """
        return self._by("swapaxes", axis1, axis2)

    def round(self, decimals: int = 0) -> Self:
        """The nearest numbers of so many decimals, halves to even.

        Example: `x.round()`
        """
        return self._by("round", decimals)

    def flatten(self) -> Self:
        """All elements in row-major order, along one axis: as `ravel`.

        Example: `m.flatten()`
        """
        return self.ravel()

    @property
    def mT(self) -> Self:  # NumPy's name
        """The transposed matrices, of the last two axes.

        Example: `m.mT`
        """
        rank = primitive.tensor_of(self.expression, "mT").rank
        if rank < 2:
            raise rank_error(f"mT takes matrices, of rank 2 or more, not a {self.spec.words}")
        order = (*range(rank - 2), rank - 1, rank - 2)
        return self._made(primitive.transpose(self.expression, order))

    def astype(self, dtype: Any) -> Self:
        """As `cast`.

        Example: `x.astype(i32)`
        """
        return self._made(primitive.cast(self.expression, core_dtype(dtype)))
