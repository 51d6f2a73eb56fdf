"""Differences, sums between points, values between points, polynomials."""

from __future__ import annotations

from typing import Any

from .core import ops
from .core.ir import Builder, Value
from .core.types import BOOL
from .elementwise import maximum
from .functions import broadcast_to, concat, select, take
from .reductions import sum as total
from .reps import as_rep
from .sorting import argsort, searchsorted
from .staging import primitive
from .staging.extents import Size
from .staging.primitive import dtype_error, is_index, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Rep:
    """Each element less the one before it along an axis, `n` times; of truth values, whether they differ.

    `prepend` and `append` go before and after a along the axis first: a number, or tensors of its rank.
    Example: `nk.diff(x)`
    """
    rep = as_rep(a)
    spec = primitive.tensor_of(rep.expression, "diff")
    position = primitive.normalize_axis(axis, spec.rank)
    if not is_index(n) or int(n) < 0:
        raise shape_error(f"diff is taken a number of times, at least 0, not {n!r}")
    before = (slice(None),) * position
    ends = [None if end is None else _end(rep, end, position) for end in (prepend, append)]
    if ends != [None, None] and int(n) > 0:
        rep = concat([part for part in (ends[0], rep, ends[1]) if part is not None], position)
    for _ in range(int(n)):
        later, earlier = rep[(*before, slice(1, None))], rep[(*before, slice(None, -1))]
        rep = later != earlier if spec.dtype is BOOL else later - earlier
    return rep


def _end(x: Rep, given: Any, axis: int) -> Rep:
    """What goes before or after x along an axis; a number is broadcast to one row of it."""
    end = Rep(x.lift(given, "diff"))
    if primitive.tensor_of(end.expression, "diff").rank:
        return end
    shape: list[Size] = [*x.shape]
    shape[axis] = 1
    return broadcast_to(end, shape)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Rep:
    """∫ y along an axis by the trapezoidal rule, y being given at the points x, or at distances `dx`.

    x is a vector, or like y.
    Example: `nk.trapezoid(y, x)`
    """
    rep = as_rep(y)
    spec = primitive.tensor_of(rep.expression, "trapezoid")
    position = primitive.normalize_axis(axis, spec.rank)
    whole = (slice(None),) * position
    heights = rep[(*whole, slice(1, None))] + rep[(*whole, slice(None, -1))]
    if x is None:
        return total(heights, position) * (0.5 * dx)
    points = as_rep(x)
    rank = primitive.tensor_of(points.expression, "trapezoid").rank
    if rank == 1:
        widths = diff(points)
        for _ in range(spec.rank - 1 - position):
            widths = widths.expand_dims(-1)
    elif rank == spec.rank:
        widths = diff(points, axis=position)
    else:
        raise rank_error(f"trapezoid takes x as a vector or like y, not a {points.spec.words}")
    return total(widths * heights, position) * 0.5


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Rep:
    """The piecewise linear function through the points (xp, fp) at x; xp increases.

    Below and above all xp it is `left` and `right`, by default the first and the last of fp.  The derivative by x at
    one of xp is the slope to the right of it; it is 0 outside.
    With a `period`, all x and xp are taken modulo it, xp in any order, and `left` and `right` do not count.
    Shapes: x (…), xp (n), fp (n) → (…), n ≥ 1.
    Example: `nk.interp(y, x - 1, x * 10)`
    """
    points, values = as_rep(xp), as_rep(fp)
    at = Rep(points.lift(x, "interp"))
    for one, name in ((points, "xp"), (values, "fp")):
        spec = primitive.tensor_of(one.expression, "interp")
        if spec.rank != 1 or not spec.dtype.is_float:
            raise rank_error(f"interp takes {name} as a vector of floats, not a {spec.words}")
    if not primitive.tensor_of(at.expression, "interp").dtype.is_float:
        raise dtype_error(f"interp takes floats, not a {at.spec.words}", "cast it, `x.cast(dtype)`")
    if period is not None:
        at, points, values = _periodic(at, points, values, period)
        left = right = None
    number = searchsorted(points, at, side="right")
    before = maximum(number - 1, 0)
    low = take(points, before, mode="clip")
    high = take(points, number, mode="clip")
    f_low = take(values, before, mode="clip")
    f_high = take(values, number, mode="clip")
    width = high - low
    is_inside = width > 0.0
    part = (at - low) / select(is_inside, width, 1.0)
    inside = f_low + (f_high - f_low) * part
    result = select(is_inside | (at != at), inside, f_low)
    if left is not None:
        result = select(at < points[0], Rep(values.lift(left, "interp")), result)
    if right is not None:
        result = select(at > points[-1], Rep(values.lift(right, "interp")), result)
    return result


def _periodic(x: Rep, xp: Rep, fp: Rep, period: Any) -> tuple[Rep, Rep, Rep]:
    """All in one period, the points in order, and one more beyond each end."""
    if not is_number(period) or period == 0:
        raise shape_error(f"interp takes a period that is a number and not 0, not {period!r}")
    length = abs(period)
    x, xp = x % length, xp % length
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concat([xp[-1:] - length, xp, xp[:1] + length])
    return x, xp, concat([fp[-1:], fp, fp[:1]])


def polyval(p: Any, x: Any) -> Rep:
    """The polynomial p[0]·xⁿ⁻¹ + … + p[n − 1] at x, by Horner's rule; 0 for no coefficients.

    p is a vector, or a list of Python numbers; its extent is how many steps the code has.
    Example: `nk.polyval([1.0, -2.0, 3.0], x)`
    """
    at = as_rep(x)
    spec = primitive.tensor_of(at.expression, "polyval")
    numbers: list[Any] = [*p] if isinstance(p, list | tuple) else [p]
    if isinstance(p, list | tuple) and all(map(is_number, numbers)):
        result = at * 0
        for one in numbers:
            result = result * at + one
        return result
    given = as_rep(p)
    if primitive.tensor_of(given.expression, "polyval").rank != 1:
        raise rank_error(f"polyval takes a vector of coefficients, not a {given.spec.words}")

    def build(b: Builder, coefficients: Value, where: Value) -> Value:
        found = b.emit(ops.splat(where.tensor, 0))
        for k in range(coefficients.tensor.shape[0]):
            one = b.emit(ops.Slice((k,), (k + 1,), (1,)), coefficients)
            one = b.emit(ops.ShapeCast(()), one)
            found = b.emit(ops.Add(), b.emit(ops.Multiply(), found, where), one)
        return found

    operands = (given.expression, at.expression)
    return Rep(primitive.shape_dependent("polyval", build, operands, spec))
