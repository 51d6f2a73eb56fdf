"""Functions that choose among elements or ask about them: `where`, `clip`, `isnan`, `logical_and`, `isclose`, …"""

from __future__ import annotations

import math
from typing import Any

from .core import ops
from .core.ops import elementary
from .core.types import BOOL, DType
from .functions import select
from .reps import as_rep, operands_of
from .searching import where_nonzero
from .staging import primitive
from .staging.leafwise import is_aggregate
from .staging.primitive import dtype_error, staging_error
from .staging.rep import Rep
from .staging.rep_base import is_number


def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """x where the condition is true, else y; all three broadcast; the one not taken has no derivative.

    Without y it is 0, or False, of the element type of x, which is a tensor then.
    Of a condition alone, the indices of the first `size` true elements, as `nonzero`.
    Raises: StagingError for a condition and y, for two without a tensor, and for a condition alone without a size.
    Example: `nk.where(x > 1, x)`
    """
    if x is None and y is None:
        return where_nonzero(condition, size, fill_value)
    if x is None:
        raise staging_error(
            "where takes a condition and what to take where it is true: x is missing",
            "`where(condition, x, y)`, `where(condition, x)` with 0 elsewhere, or `where(~condition, y)`",
        )
    if size is not None or fill_value is not None:
        raise staging_error(
            "where(condition, x) and where(condition, x, y) have the shape of their arguments, and take no size "
            "and no fill_value",
            "`where(condition, size=n)` are the indices of what is true",
        )
    _check_condition(condition)
    return select(condition, x, _zero_beside(x) if y is None else y)


def _check_condition(condition: Any) -> None:
    """Raises: DTypeError for what is no truth values, as x is in the place of the condition."""
    if isinstance(condition, bool) or is_aggregate(as_rep(condition)):
        return
    if _dtype_of(as_rep(condition), "where") is not BOOL:
        raise dtype_error(
            f"the condition of where is boolean, not a {as_rep(condition).spec.words}",
            "compare, `where(x > 0, x, y)`; the condition comes first",
        )


def _zero_beside(x: Any) -> Any:
    """What `where` without y has where the condition is false.

    Raises: StagingError for a Python number, which has no element type.
    """
    if is_number(x):
        raise staging_error(
            f"where(condition, {x!r}) has no element type: x is a Python number",
            f"`where(condition, {x!r}, y)` has that of a tensor y; ones and zeros are `condition.cast(nk.f32)`",
        )
    rep = as_rep(x)
    if is_aggregate(rep):
        return rep  # `select` says what to do about structs
    dtype = _dtype_of(rep, "where")
    return Rep(primitive.literal(False if dtype is BOOL else 0, dtype))


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Rep:
    """a, not below `a_min` and not above `a_max`, which broadcast, or are None; NaN stays NaN.

    `min` and `max` are other names of the bounds.

    The derivative by a is 1 between the bounds, the ends included, and 0 outside, where that by the bound is 1.
    Example: `nk.clip(x, 1.5, 3.0)`
    """
    rep = as_rep(a)
    primitive.tensor_of(rep.expression, "clip")
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise staging_error("clip takes a bound once: as a_min or min, as a_max or max")
    min, max = (a_min if min is None else min), (a_max if max is None else max)
    if min is not None:
        rep, least = operands_of("clip", rep, min)
        rep = select((rep >= least) | (rep != rep), rep, least)
    if max is not None:
        rep, most = operands_of("clip", rep, max)
        rep = select((rep <= most) | (rep != rep), rep, most)
    return rep


def nan_to_num(
    x: Any, copy: Any = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Rep:
    """x with numbers for NaN, +∞ and −∞: by default 0 and the largest of the element type; derivative 0 there.

    It is a new value, whatever `copy` says.

    Example: `nk.nan_to_num(nk.log(y))`
    """
    rep = as_rep(x)
    if not isinstance(copy, bool):
        raise staging_error(
            f"copy is True or False, not {copy!r}", f"`nan_to_num(x, nan={copy!r})`"
        )
    dtype = _dtype_of(rep, "nan_to_num")
    if not dtype.is_float:
        return rep
    most = float(dtype.normal_range[1])
    low = _limited(-most if neginf is None else neginf, dtype)
    high = _limited(most if posinf is None else posinf, dtype)
    rep = select(rep == math.inf, high, rep)
    rep = select(rep == -math.inf, low, rep)
    return select(rep != rep, nan, rep)


def _limited(number: float, dtype: DType) -> Rep:
    return Rep(primitive.literal(number, dtype))


def isnan(x: Any, /) -> Rep:
    """Whether each element is NaN.

    Example: `nk.isnan(nk.log(y))`
    """
    rep = _numbers("isnan", x)
    return rep != rep


def isfinite(x: Any, /) -> Rep:
    """Whether each element is a number, not NaN and not ±∞.

    Example: `nk.isfinite(nk.log(y))`
    """
    rep = _numbers("isfinite", x)
    if not _dtype_of(rep, "isfinite").is_float:
        return rep == rep
    return (rep > -math.inf) & (rep < math.inf)


def isinf(x: Any, /) -> Rep:
    """Whether each element is ±∞.

    Example: `nk.isinf(nk.log(y))`
    """
    rep = _numbers("isinf", x)
    if not _dtype_of(rep, "isinf").is_float:
        return rep != rep
    return (rep == -math.inf) | (rep == math.inf)


def signbit(x: Any, /) -> Rep:
    """Whether each element has the sign −, of zeros and NaNs too.

    Example: `nk.signbit(-x * 0)`
    """
    rep = _numbers("signbit", x)
    return Rep(
        primitive.compose(
            "signbit", elementary.signbit, rep.expression, accepts=("float", "integer")
        )
    )


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Rep:
    """Whether |a − b| ≤ atol + rtol·|b|, for floats that broadcast; infinities are close to themselves.

    Example: `nk.isclose(x, x + 1e-7)`
    """
    one, other = operands_of("compare", a, b)
    if not _dtype_of(one, "isclose").is_float:
        raise dtype_error(
            "isclose takes floats: compare integers with ==", "cast it, `x.cast(dtype)`"
        )
    near = abs(one - other) <= atol + rtol * abs(other)
    close = (near & isfinite(other)) | (one == other)
    return close | ((one != one) & (other != other)) if equal_nan else close


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Rep:
    """Whether all elements are close: see `isclose`.

    Example: `nk.allclose(x, x + 1e-7)`
    """
    return isclose(a, b, rtol, atol, equal_nan).all()


def logical_and(x: Any, y: Any, /) -> Rep:
    """Whether both are true, or not 0.

    Example: `nk.logical_and(x > 1, y > 0)`
    """
    return _truth("logical_and", x) & _truth("logical_and", y)


def logical_or(x: Any, y: Any, /) -> Rep:
    """Whether one is true, or not 0.

    Example: `nk.logical_or(x > 1, y > 0)`
    """
    return _truth("logical_or", x) | _truth("logical_or", y)


def logical_xor(x: Any, y: Any, /) -> Rep:
    """Whether one is true, or not 0, and the other is not.

    Example: `nk.logical_xor(x > 1, y > 0)`
    """
    return _truth("logical_xor", x) ^ _truth("logical_xor", y)


def logical_not(x: Any, /) -> Rep:
    """Whether each element is false, or 0.

    Example: `nk.logical_not(x > 1)`
    """
    return ~_truth("logical_not", x)


def bitwise_and(x: Any, y: Any, /) -> Rep:
    """The bits that both integers have; of truth values, `logical_and`.

    Example: `nk.bitwise_and(i, 1)`
    """
    one, other = _bits("bitwise_and", x, y)
    return one & other


def bitwise_or(x: Any, y: Any, /) -> Rep:
    """The bits that either integer has; of truth values, `logical_or`.

    Example: `nk.bitwise_or(i, 1)`
    """
    one, other = _bits("bitwise_or", x, y)
    return one | other


def bitwise_xor(x: Any, y: Any, /) -> Rep:
    """The bits that one integer has and the other has not; of truth values, `logical_xor`.

    Example: `nk.bitwise_xor(i, 1)`
    """
    one, other = _bits("bitwise_xor", x, y)
    return one ^ other


def bitwise_not(x: Any, /) -> Rep:
    """The bits that an integer has not, −x − 1; of truth values, `logical_not`.

    Example: `nk.bitwise_not(i)`
    """
    return ~as_rep(x)


def left_shift(x: Any, y: Any, /) -> Rep:
    """x · 2ʸ of integers, wrapped around; 0 for a y that is negative or no less than the number of bits.

    Example: `nk.left_shift(i, 2)`
    """
    one, other = operands_of("shift", x, y)
    return Rep(primitive.elementwise(ops.ShiftLeft(), one.expression, other.expression))


def right_shift(x: Any, y: Any, /) -> Rep:
    """⌊x / 2ʸ⌋ of integers; 0, or −1 below 0, for a y that is negative or no less than the number of bits.

    Example: `nk.right_shift(i, 1)`
    """
    one, other = operands_of("shift", x, y)
    return Rep(primitive.elementwise(ops.ShiftRight(), one.expression, other.expression))


def _bits(name: str, x: Any, y: Any) -> tuple[Rep, Rep]:
    one, other = operands_of(name, x, y)
    if _dtype_of(one, name).is_float:
        raise dtype_error(
            f"{name} takes integers or truth values, not a {one.spec.words}",
            "cast it, `x.cast(i32)`",
        )
    return one, other


def _numbers(name: str, x: Any) -> Rep:
    rep = as_rep(x)
    if not _dtype_of(rep, name).is_numeric:
        raise dtype_error(f"{name} takes numbers, not a {rep.spec.words}", "`x.cast(f32)`")
    return rep


def _truth(name: str, x: Any) -> Rep:
    if isinstance(x, bool):
        return Rep(primitive.literal(x, BOOL))
    rep = as_rep(x)
    return rep if _dtype_of(rep, name) is BOOL else rep != 0


def _dtype_of(rep: Rep, name: str) -> DType:
    return primitive.tensor_of(rep.expression, name).dtype
