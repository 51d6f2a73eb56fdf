"""Functions that combine elements along axes, or along all axes before them: `sum` to `argmin`, `cumsum` to `cummin`.

`axis` is an int, a tuple of them, or None for all axes; `keepdims=True` leaves them with extent 1.
"""

from __future__ import annotations

from typing import Any

from .core import ops
from .core.ops import Combinator
from .core.types import BOOL, I64
from .reps import as_rep
from .staging import primitive
from .staging.rep import Rep


def sum(a: Any, axis: Any = None, *, keepdims: bool = False, accumulate: Any = None) -> Rep:
    """Σ along the axes; sums of floats are accumulated in the wider type `accumulate`.

    Example: `nk.sum(m, axis=1)`
    """
    return as_rep(a).sum(axis, keepdims=keepdims, accumulate=accumulate)


def prod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Π along the axes.

    Example: `nk.prod(m, axis=1)`
    """
    return as_rep(a).prod(axis, keepdims=keepdims)


def max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Largest element along the axes; NaN wins; −∞ or the smallest integer of none; ties share the derivative.

    Example: `nk.max(m, axis=0)`
    """
    return as_rep(a).max(axis, keepdims=keepdims)


def min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Smallest element along the axes; NaN wins; +∞ or the largest integer of none; ties share the derivative.

    Example: `nk.min(m, axis=0)`
    """
    return as_rep(a).min(axis, keepdims=keepdims)


def mean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Arithmetic mean along the axes (all by default)."""
    return as_rep(a).mean(axis, keepdims=keepdims)


def var(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Rep:
    """Variance along the axes (all by default): squared distances from the mean, over n − `ddof`."""
    return as_rep(a).var(axis, ddof=ddof, keepdims=keepdims)


def std(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Rep:
    """Standard deviation along the axes, the root of `var`; derivative 0 where all elements are equal.

    Example: `nk.std(m, axis=1, ddof=1)`
    """
    return as_rep(a).std(axis, ddof=ddof, keepdims=keepdims)


def all(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Whether all are true along the axes; true of none.

    Example: `nk.all(m > 1, axis=1)`
    """
    return as_rep(a).all(axis, keepdims=keepdims)


def any(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Whether any is true along the axes; false of none.

    Example: `nk.any(m > 1, axis=1)`
    """
    return as_rep(a).any(axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """How many elements along the axes are not 0 or are true, as i64; NaN is not 0.

    Example: `nk.count_nonzero(m > 2, axis=0)`
    """
    rep = as_rep(a)
    if primitive.tensor_of(rep.expression, "count_nonzero").dtype is not BOOL:
        rep = rep != 0
    return rep.cast(I64).sum(axis, keepdims=keepdims)


def argmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Index (i64) of the first largest element along an axis, or among all; of the first NaN if there is one.

    Example: `nk.argmax(m, axis=1)`
    """
    return as_rep(a).argmax(axis, keepdims=keepdims)


def argmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Index (i64) of the first smallest element along an axis, or among all; of the first NaN if there is one.

    Example: `nk.argmin(m, axis=1)`
    """
    return as_rep(a).argmin(axis, keepdims=keepdims)


def cumsum(a: Any, axis: Any = None) -> Rep:
    """Running sums along one axis; of all elements in row-major order without."""
    return _running("cumsum", Combinator.ADD, a, axis)


def cumprod(a: Any, axis: Any = None) -> Rep:
    """Running products along one axis; of all elements in row-major order without.

    Example: `nk.cumprod(m, axis=1)`
    """
    return _running("cumprod", Combinator.MULTIPLY, a, axis)


def cummax(a: Any, axis: Any = None) -> Rep:
    """The largest element so far along one axis, as `np.maximum.accumulate`; NaN from the first one on.

    Example: `nk.cummax(y)`
    """
    return _running("cummax", Combinator.MAX, a, axis)


def cummin(a: Any, axis: Any = None) -> Rep:
    """The smallest element so far along one axis, as `np.minimum.accumulate`; NaN from the first one on.

    Example: `nk.cummin(y)`
    """
    return _running("cummin", Combinator.MIN, a, axis)


def _running(name: str, combinator: Combinator, x: Any, axis: Any) -> Rep:
    rep = as_rep(x)
    rank = primitive.tensor_of(rep.expression, name).rank
    along = rep.ravel() if axis is None else rep
    position = 0 if axis is None else primitive.normalize_axis(axis, rank)
    return Rep(primitive.apply(ops.Scan(combinator, position), along.expression, name=name))
