"""sin, cos and tan.

1. x = n π/2 + r + r_low: π/2 is held as three doubles. x - n·(first) is exact, the second is
   subtracted as a sum of two, so that the digits lost where x is near a multiple of π/2 are made up
   for.
2. sin r and cos r by minimax polynomials on |r| ≤ π/4; n mod 4 says which, and the sign.
3. Beyond 2³⁰ the C library does it, in a loop over the lanes that is entered only if there is such
   a lane.

Greatest errors measured: sin and cos 0.78, tan 0.94 ulp of double; float goes by way of double,
with shorter polynomials and two parts of π/2: 0.51 ulp.
"""

import math
from collections.abc import Callable

from ....core.lazy_dataclass import dataclass
from ..writer import FunctionWriter, Register, constant
from .double_double import Pair, divide, select
from .floats import (
    format_of,
    horner,
    keep_tiny,
    like,
    quick_two_sum,
    residual,
    two_product,
    two_sum,
)

# as a double, and twice what is left
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_LARGEST = 2.0**30
"""n has 30 digits up to here, no double is nearer to a multiple of π/2 than 2⁻⁶¹, and 53 digits are wanted: 144 of the
161 that three doubles have."""


@dataclass(frozen=True, slots=True)
class _Circle:
    """sin r = r + r³ S(r²) and cos r = 1 - r²/2 + r⁴ C(r²) on |r| ≤ π/4."""

    sin: tuple[float, ...]
    cos: tuple[float, ...]


# Relative errors 2⁻³⁷ and 2⁻³³; 2⁻⁵⁸ and 2⁻⁶⁴.
_FOR_FLOAT = _Circle(
    sin=(
        -0.16666666641526925, 0.008333329374121968, -0.00019839330996745028, 2.718274472743418e-06,
    ),
    cos=(0.04166664561896794, -0.0013887313069605742, 2.4432785764385784e-05),
)  # fmt: skip
_FOR_DOUBLE = _Circle(
    sin=(
        -0.16666666666666632, 0.008333333333322472, -0.0001984126982983568, 2.755731369733744e-06,
        -2.5050758488638242e-08, 1.5896796281411524e-10,
    ),
    cos=(
        0.041666666666666595, -0.0013888888888873325, 2.480158728898368e-05,
        -2.755731421006692e-07, 2.0875704268018738e-09, -1.1358683049095981e-11,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reduced:
    """x = n π/2 + r + low; `low` is None where r alone is good enough."""

    n: Register
    r: Register
    low: Register | None
    circle: _Circle


def emit_sin(w: FunctionWriter, x: Register) -> Register:
    """The sine of x radians; nan at ±inf."""
    return _emit(w, x, "sin", lambda wide, short: _turned_sine(w, _reduce(w, wide, short), 0))


def emit_cos(w: FunctionWriter, x: Register) -> Register:
    """The cosine of x radians; nan at ±inf."""
    return _emit(w, x, "cos", lambda wide, short: _turned_sine(w, _reduce(w, wide, short), 1))


def emit_tan(w: FunctionWriter, x: Register) -> Register:
    """The tangent of x radians, sin / cos or -cos / sin; nan at ±inf."""
    return _emit(w, x, "tan", lambda wide, short: _tangent(w, _reduce(w, wide, short)))


def sinpi_extended(w: FunctionWriter, x: Register) -> Pair:
    """sin πx for double x between 0 and ½, as a sum of two."""
    near, (sine, cosine) = _quarter_turn(w, x)
    return select(w, near, sine, cosine)


def cotpi_extended(w: FunctionWriter, x: Register) -> Pair:
    """cot πx for double x between 0 and ½, as a sum of two; inf or nan at 0."""
    near, (sine, cosine) = _quarter_turn(w, x)
    return divide(w, select(w, near, cosine, sine), select(w, near, sine, cosine))


def _emit(
    w: FunctionWriter, x: Register, name: str, evaluate: Callable[[Register, bool], Register]
) -> Register:
    short = x.type.scalar == "float"
    wide = w.fpext(x, "double")
    far = w.fcmp("oge", w.fabs(wide), like(wide, _LARGEST))
    result = w.replace_rarely(far, evaluate(wide, short), lambda: w.per_lane(name, [wide]))
    if name != "cos":
        result = keep_tiny(w, wide, result)
    return w.fptrunc(result, "float") if short else result


def _reduce(w: FunctionWriter, x: Register, short: bool) -> _Reduced:
    format = format_of(x)
    first = like(x, _HALF_PI[0])
    second, third = (like(x, -part) for part in _HALF_PI[1:])
    shifted = w.multiply_add(x, like(x, 2 / math.pi), like(x, format.round_constant))
    rounded = w.fsub(shifted, like(x, format.round_constant))
    n = w.bitcast(shifted, format.integer)
    r = residual(w, x, rounded, first)
    if short:
        return _Reduced(n, w.multiply_add(rounded, second, r), None, _FOR_FLOAT)
    product, error = two_product(w, rounded, second)
    r, low = two_sum(w, r, product)
    low = w.fadd(low, w.multiply_add(rounded, third, error))
    return _Reduced(n, r, low, _FOR_DOUBLE)


def _sine(w: FunctionWriter, x: _Reduced) -> tuple[Register, Register]:
    """sin(r + low) as r and what is to be added to it."""
    z = w.fmul(x.r, x.r)
    cube = w.fmul(x.r, z)
    series = horner(w, z, x.circle.sin)
    if x.low is None:
        return x.r, w.fmul(cube, series)
    low = w.multiply_add(w.fmul(z, like(z, -0.5)), x.low, x.low)
    return x.r, w.multiply_add(cube, series, low)


def _cosine(w: FunctionWriter, x: _Reduced, *, extended: bool = False) -> tuple[Register, Register]:
    """cos(r + low) as 1 - r²/2 and what is to be added to it, with what rounding r² lost where `extended`."""
    z, z_low = two_product(w, x.r, x.r) if extended else (w.fmul(x.r, x.r), None)
    one = like(z, 1.0)
    series = horner(w, z, x.circle.cos)
    begin = w.multiply_add(z, like(z, -0.5), one)
    if x.low is None:
        return begin, w.fmul(w.fmul(z, z), series)
    lost = w.multiply_add(z, like(z, -0.5), w.fsub(one, begin))
    rest = w.multiply_add(w.fneg(x.r), x.low, w.fmul(w.fmul(z, z), series))
    if z_low is not None:
        rest = w.multiply_add(z_low, like(z, -0.5), rest)
    return begin, w.fadd(lost, rest)


def _turned_sine(w: FunctionWriter, x: _Reduced, quarters: int) -> Register:
    """sin(x + quarters · π/2)."""
    type = x.n.type
    n = w.add(x.n, constant(type, quarters))
    odd = w.icmp("ne", w.and_(n, constant(type, 1)), constant(type, 0))
    result = w.select(odd, w.fadd(*_cosine(w, x)), w.fadd(*_sine(w, x)))
    return _flip(w, result, w.and_(n, constant(type, 2)), 62)


def _quarter_turn(w: FunctionWriter, x: Register) -> tuple[Register, tuple[Pair, Pair]]:
    """Whether x ≤ ¼, and sin πy and cos πy for y = x there and ½ - x elsewhere."""
    near = w.fcmp("ole", x, like(x, 0.25))
    y = w.select(near, x, w.fsub(like(x, 0.5), x))
    r, error = two_product(w, y, like(x, 2 * _HALF_PI[0]))
    low = w.multiply_add(y, like(x, 2 * _HALF_PI[1]), error)
    reduced = _Reduced(constant(x.type.with_scalar("i64"), 0), r, low, _FOR_DOUBLE)
    sine, cosine = _sine(w, reduced), _cosine(w, reduced, extended=True)
    return near, (quick_two_sum(w, *sine), quick_two_sum(w, *cosine))


def _tangent(w: FunctionWriter, x: _Reduced) -> Register:
    """sin / cos, both as sums of two, so that the quotient has one rounding in effect."""
    parity = w.and_(x.n, constant(x.n.type, 1))
    odd = w.icmp("ne", parity, constant(x.n.type, 0))
    sine, sine_low = quick_two_sum(w, *_sine(w, x))
    cosine, cosine_low = quick_two_sum(w, *_cosine(w, x))
    over, over_low = w.select(odd, cosine, sine), w.select(odd, cosine_low, sine_low)
    under, under_low = w.select(odd, sine, cosine), w.select(odd, sine_low, cosine_low)
    reciprocal = w.fdiv(like(x.r, 1.0), under)
    quotient = w.fmul(over, reciprocal)
    remainder = w.fadd(
        residual(w, over, quotient, under), w.multiply_add(w.fneg(quotient), under_low, over_low)
    )
    return _flip(w, w.multiply_add(remainder, reciprocal, quotient), parity, 63)


def _flip(w: FunctionWriter, x: Register, bit: Register, shift: int) -> Register:
    """x with its sign flipped where the bit is set."""
    sign = w.shl(bit, constant(bit.type, shift))
    return w.bitcast(w.xor(w.bitcast(x, "i64"), sign), "double")
