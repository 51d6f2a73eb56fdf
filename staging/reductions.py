"""The methods of a Rep that combine elements along axes.

`axis` is one, several, or all of them (None); `keepdims` leaves them with extent 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self, cast

from ..core.ops import ArgMax, ArgMin, Combinator, composed
from ..core.types import BOOL
from . import primitive
from .accumulation import accumulated
from .expression import Expression
from .rep_base import RepBase, rep_of
from .tracebacks import public_methods


@public_methods
class Reductions(RepBase):
    """A staged value, whose elements can be combined."""

    __slots__ = ()

    def _made(self, expression: Expression) -> Self:
        return cast("Self", rep_of(expression))

    def sum(self, axis: Any = None, *, keepdims: bool = False, accumulate: Any = None) -> Self:
        """Σ along the axes (all by default).

        Sums of floats are accumulated in the wider type `accumulate`, and so are those of derivatives; rounded once.
        """

        def compute(x: Expression) -> Expression:
            return primitive.reduce(x, Combinator.ADD, axis, keepdims)

        return self._made(accumulated("sum", accumulate, compute, self.expression))

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Π along the axes (all by default)."""
        return self._reduce(Combinator.MULTIPLY, axis, keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Largest element along the axes; NaN wins; −∞ or the smallest integer of none."""
        return self._reduce(Combinator.MAX, axis, keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Smallest element along the axes; NaN wins; +∞ or the largest integer of none."""
        return self._reduce(Combinator.MIN, axis, keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Whether all are true; true of none."""
        return self._reduce(Combinator.AND, axis, keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Whether any is true; false of none."""
        return self._reduce(Combinator.OR, axis, keepdims)

    def _reduce(self, combinator: Combinator, axis: Any, keepdims: bool) -> Self:
        return self._made(primitive.reduce(self.expression, combinator, axis, keepdims))

    def mean(self, axis: Any = None, *, keepdims: bool = False, accumulate: Any = None) -> Self:
        """Arithmetic mean; NaN of none.  16-bit floats are summed in f32; `accumulate` is that of `sum`."""

        def compute(x: Expression) -> Expression:
            return primitive.compose_along("mean", composed.mean, x, axis, keepdims=keepdims)

        if (spec := primitive.tensor_of(self.expression, "mean")).dtype == BOOL:
            raise primitive.dtype_error(
                f"mean takes float elements, not {spec.words}",
                "`x.cast(f32).mean()` is the share that is true",
            )
        return self._made(accumulated("mean", accumulate, compute, self.expression))

    def var(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Self:
        """Variance: squared distances from the mean, over the number of elements less `ddof`."""
        return self._spread("var", composed.variance, axis, ddof, keepdims)

    def std(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Self:
        """Standard deviation, the root of `var`; derivative 0 where it is 0.

        Example: `m.std(axis=1, ddof=1)`
        """
        return self._spread("std", composed.standard_deviation, axis, ddof, keepdims)

    def _spread(self, name: str, rule: Any, axis: Any, ddof: float, keepdims: bool) -> Self:
        by_ddof = partial(rule, ddof=ddof)
        x = self.expression
        return self._made(primitive.compose_along(name, by_ddof, x, axis, keepdims=keepdims))

    def argmax(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Index (i64) of the first largest element, or of the first NaN; of all in row-major order by default."""
        return self._made(primitive.arg_extremum(self.expression, ArgMax, axis, keepdims))

    def argmin(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Index (i64) of the first smallest element, or of the first NaN; of all in row-major order by default."""
        return self._made(primitive.arg_extremum(self.expression, ArgMin, axis, keepdims))

    def ravel(self) -> Self:
        """All elements in row-major order, along one axis.

        Example: `m.ravel()`
        """
        return self._made(primitive.reshape(self.expression, (-1,)))
