"""Reductions of the elements that are not NaN, as `np.nansum` and its like.

What is left out has derivative 0.  Integers have no NaN: of them these are `sum`, `prod`, `max` and `min`.
"""

from __future__ import annotations

import math
from typing import Any

from .choices import where
from .elementwise import maximum, sqrt
from .functions import select
from .reductions import count_nonzero
from .reps import as_rep
from .scattering import take_along_axis
from .sorting import sort
from .staging import primitive
from .staging.extents import product
from .staging.primitive import dtype_error
from .staging.rep import Rep
from .tensors import DTYPES, f32


def nansum(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Σ along the axes of what is not NaN; 0 of none.

    Example: `nk.nansum(nk.log(y))`
    """
    rep = as_rep(a)
    return where(_is_number(rep, "nansum"), rep).sum(axis, keepdims=keepdims)  # type: ignore[no-any-return]  # a Rep


def nanprod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Π along the axes of what is not NaN; 1 of none.

    Example: `nk.nanprod(nk.sqrt(y))`
    """
    rep = as_rep(a)
    return select(_is_number(rep, "nanprod"), rep, 1).prod(axis, keepdims=keepdims)


def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Largest element along the axes that is not NaN; NaN of none; ties share the derivative.

    Example: `nk.nanmax(nk.log(y))`
    """
    rep = as_rep(a)
    there = _is_number(rep, "nanmax")
    if not _is_float(rep):
        return rep.max(axis, keepdims=keepdims)
    found = select(there, rep, -math.inf).max(axis, keepdims=keepdims)
    return select(there.any(axis, keepdims=keepdims), found, math.nan)


def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Smallest element along the axes that is not NaN; NaN of none; ties share the derivative.

    Example: `nk.nanmin(nk.log(y))`
    """
    rep = as_rep(a)
    there = _is_number(rep, "nanmin")
    if not _is_float(rep):
        return rep.min(axis, keepdims=keepdims)
    found = select(there, rep, math.inf).min(axis, keepdims=keepdims)
    return select(there.any(axis, keepdims=keepdims), found, math.nan)


def nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """Arithmetic mean along the axes of what is not NaN; NaN of none.

    Example: `nk.nanmean(nk.log(y))`
    """
    rep = _floats(a, "nanmean")
    return _rounded(_mean(_wide(rep), axis, keepdims), rep)


def nanvar(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Rep:
    """Variance along the axes of the n elements that are not NaN, over n − `ddof`; NaN unless that is positive.

    Example: `nk.nanvar(nk.log(m - 1), axis=1)`
    """
    rep = _floats(a, "nanvar")
    return _rounded(_variance(_wide(rep), axis, ddof, keepdims), rep)


def nanstd(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Rep:
    """Standard deviation along the axes of what is not NaN, the root of `nanvar`; derivative 0 where it is 0.

    Example: `nk.nanstd(nk.log(m - 1), axis=1)`
    """
    rep = _floats(a, "nanstd")
    square = _variance(_wide(rep), axis, ddof, keepdims)
    root = select(square == 0.0, 0.0, sqrt(select(square == 0.0, 1.0, square)))
    return _rounded(root, rep)


def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """The middle element along the axes of what is not NaN, the mean of two; NaN of none.

    Example: `nk.nanmedian(nk.log(y))`
    """
    rep = _floats(a, "nanmedian")
    rank = primitive.tensor_of(rep.expression, "nanmedian").rank
    axes = primitive.normalize_axes(axis, rank)
    others = [k for k in range(rank) if k not in axes]
    rows = rep.transpose(*others, *axes).reshape(
        *(rep.shape[k] for k in others), product([rep.shape[k] for k in axes])
    )
    ordered = sort(select(rows == rows, rows, math.inf))
    count = count_nonzero(rows == rows, -1, keepdims=True)
    low, high = (
        take_along_axis(ordered, place, -1, mode="fill")
        for place in (maximum((count - 1) // 2, 0), count // 2)
    )
    found = select(count % 2 == 1, low, 0.5 * low + 0.5 * high)
    found = select(count > 0, found, math.nan).squeeze(-1)
    if keepdims:
        for k in sorted(axes):
            found = found.expand_dims(k)
    return found


def _mean(wide: Rep, axis: Any, keepdims: bool) -> Rep:
    return nansum(wide, axis, keepdims=keepdims) / _count(wide, axis, keepdims)


def _variance(wide: Rep, axis: Any, ddof: float, keepdims: bool) -> Rep:
    centered = wide - _mean(wide, axis, True)
    total = where(wide == wide, centered * centered).sum(axis, keepdims=keepdims)
    count = _count(wide, axis, keepdims) - ddof
    return select(count > 0.0, total / count, math.nan)


def _count(wide: Rep, axis: Any, keepdims: bool) -> Rep:
    """How many elements are not NaN, in the type of the elements."""
    dtype = primitive.tensor_of(wide.expression, "a mean").dtype
    return count_nonzero(wide == wide, axis, keepdims=keepdims).cast(DTYPES[dtype])


def _is_number(rep: Rep, name: str) -> Rep:
    if not primitive.tensor_of(rep.expression, name).dtype.is_numeric:
        raise dtype_error(f"{name} takes numbers, not a {rep.spec.words}", "`x.cast(f32)`")
    return rep == rep


def _is_float(rep: Rep) -> bool:
    return primitive.tensor_of(rep.expression, "a reduction").dtype.is_float


def _floats(a: Any, name: str) -> Rep:
    rep = as_rep(a)
    if not primitive.tensor_of(rep.expression, name).dtype.is_float:
        raise dtype_error(f"{name} takes floats, not a {rep.spec.words}", "`x.cast(f32)`")
    return rep


def _wide(rep: Rep) -> Rep:
    """Halves as f32, in which their means are computed."""
    bits = primitive.tensor_of(rep.expression, "a mean").dtype.bits
    return rep.cast(f32) if bits == 16 else rep


def _rounded(found: Rep, like: Rep) -> Rep:
    return found.cast(DTYPES[primitive.tensor_of(like.expression, "a mean").dtype])
