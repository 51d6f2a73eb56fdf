"""exp, expm1, sinh, cosh, tanh and the logistic function.

1. x = n ln 2 + r, |r| ≤ ln 2 / 2; n is rounded by adding and subtracting 1.5 · 2^mantissa.
2. exp r = 1 + r + r² q(r), q a minimax polynomial.
3. exp x = 2ⁿ exp r, with one rounding even where the result is subnormal.

Greatest errors measured, in ulp of float / double: exp 1.01 / 1.00, expm1 1.49 / 1.92, sinh 1.60 /
1.63, cosh 1.44 / 1.45, tanh 1.89 / 1.75, logistic 1.46 / 1.42.
"""

import math

from ....core.lazy_dataclass import dataclass
from ..writer import FunctionWriter, Register, ScalarName, constant
from .floats import by_fours, clamp, format_of, horner, keep_tiny, like, quick_two_sum

_TANH_BORDER = 0.55
"""Where (e²ˣ + 1) / 2 is 2: the quotient that is subtracted from 1 is less than a half from here on, so that its error
does not count more than once."""


@dataclass(frozen=True, slots=True)
class _Exponential:
    overflow: float
    """Where exp is infinite, with a little margin, so that n stays small."""
    underflow: float
    """Where exp is zero, likewise."""
    flush: float
    """Below this the flushed exponential is zero."""
    minus_one: float
    """Where expm1 is -1."""
    one: float
    """Where tanh is 1."""
    exp: tuple[float, ...]
    expm1: tuple[float, ...]
    sinh: tuple[float, ...]
    """sinh x = x + x³ P(x²) for |x| ≤ 1."""


_EXPONENTIAL: dict[ScalarName, _Exponential] = {
    "float": _Exponential(
        overflow=89.0,
        underflow=-104.0,
        flush=-80.0,
        minus_one=-20.0,
        one=10.0,
        exp=(
            0.4999999403953552, 0.16666516661643982, 0.04166810214519501, 0.00836916547268629,
            0.0013837979640811682,
        ),
        expm1=(
            0.5, 0.1666666716337204, 0.04166635498404503, 0.008333273231983185,
            0.0013941050274297595, 0.0001991422614082694,
        ),
        sinh=(
            0.1666666716337204, 0.008333311416208744, 0.00019842635083477944, 2.783925765470485e-06,
        ),
    ),
    "double": _Exponential(
        overflow=710.0,
        underflow=-746.0,
        flush=-700.0,
        minus_one=-40.0,
        one=20.0,
        exp=(
            0.5000000000000011, 0.16666666666666435, 0.04166666666652579, 0.008333333333475832,
            0.0013888888944848872, 0.000198412695548996, 2.4801491785821842e-05,
            2.7557536845879087e-06, 2.7630726295502704e-07, 2.5017458484052478e-08,
        ),
        expm1=(
            0.5, 0.16666666666666677, 0.04166666666666667, 0.008333333333321386,
            0.0013888888888886049, 0.0001984126988681656, 2.480158731783279e-05,
            2.755724345145978e-06, 2.755728317371019e-07, 2.510932095110012e-08,
            2.0910795689609227e-09,
        ),
        sinh=(
            0.16666666666666669, 0.008333333333332915, 0.0001984126984158925,
            2.7557319108483662e-06, 2.505213067563985e-08, 1.60566871275265e-10,
            7.775689254721877e-13,
        ),
    ),
}  # fmt: skip


def emit_exp(w: FunctionWriter, x: Register) -> Register:
    """eˣ."""
    m, n = exp_parts(w, x)
    return scale(w, w.fadd(m, like(x, 1.0)), n)


def emit_flushed_exp(w: FunctionWriter, x: Register) -> Register:
    """eˣ, and 0 where x is small; what is not chosen there holds anything, so that no bound has to be taken below."""
    data = _EXPONENTIAL[x.type.scalar]
    bounded = w.select(w.fcmp("ogt", x, like(x, data.overflow)), like(x, data.overflow), x)
    n, r = _reduce(w, bounded, None)
    power = scale(w, w.fadd(_exp_of_remainder_less_one(w, r), like(x, 1.0)), n)
    return w.select(w.fcmp("olt", x, like(x, data.flush)), like(x, 0.0), power)


def exp_parts(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """m and an integer n with eˣ = (1 + m) · 2ⁿ, |m| < 0.42.

    By the instructions of `emit_exp`, so that LLVM computes them once where a body needs eˣ too.
    """
    data = _EXPONENTIAL[x.type.scalar]
    n, r = _reduce(w, clamp(w, x, data.underflow, data.overflow), None)
    return _exp_of_remainder_less_one(w, r), n


def emit_expm1(w: FunctionWriter, x: Register) -> Register:
    """eˣ - 1, accurate near 0: 2ⁿ (p + 1) - 1 = 2ⁿ p + (2ⁿ - 1), halved so that 2ⁿ does not overflow."""
    data = _EXPONENTIAL[x.type.scalar]
    n, r = _reduce(w, clamp(w, x, data.minus_one, data.overflow), None)
    p = w.multiply_add(w.fmul(r, r), horner(w, r, data.expm1), r)
    half_power = _power_of_two(w, x, n, -1)
    half = w.multiply_add(half_power, p, w.fsub(half_power, like(x, 0.5)))
    return keep_tiny(w, x, w.fadd(half, half))


def emit_sinh(w: FunctionWriter, x: Register) -> Register:
    """(eˣ - e⁻ˣ) / 2; a polynomial up to 1, where the difference would cancel."""
    large = w.fsub(*_half_exponentials(w, x))
    z = w.fmul(x, x)
    small = w.multiply_add(w.fmul(x, z), horner(w, z, _EXPONENTIAL[x.type.scalar].sinh), x)
    is_small = w.fcmp("olt", w.fabs(x), like(x, 1.0))
    return keep_tiny(w, x, w.select(is_small, small, w.copysign(large, x)))


def emit_cosh(w: FunctionWriter, x: Register) -> Register:
    """(eˣ + e⁻ˣ) / 2."""
    return w.fadd(*_half_exponentials(w, x))


def emit_tanh(w: FunctionWriter, x: Register) -> Register:
    """k - k · k / d for |x|, where d = (e²ˣ + 1) / 2 and k is d - 1 or 1, the smaller of these."""
    data = _EXPONENTIAL[x.type.scalar]
    magnitude = w.fabs(x)
    is_large = w.fcmp("ogt", magnitude, like(x, data.one))
    magnitude = w.select(is_large, like(x, data.one), magnitude)
    power, half = _half_of_exponential(w, magnitude)
    d = w.multiply_add(half, power, w.multiply_add(power, like(x, 0.5), like(x, 0.5)))
    m = w.multiply_add(half, power, w.multiply_add(power, like(x, 0.5), like(x, -0.5)))
    # the least of two is one instruction; of f64, in few lanes, a choice by what is there earlier waits less
    is_double = x.type.scalar == "double"
    first, border = (magnitude, _TANH_BORDER) if is_double else (m, 1.0)
    k = w.select(w.fcmp("olt", first, like(x, border)), m, like(x, 1.0))
    return w.copysign(w.multiply_add(w.fneg(k), w.fdiv(k, d), k), x)


def emit_logistic(w: FunctionWriter, x: Register) -> Register:
    """1 / (1 + e⁻ˣ), as eˣ / (1 + eˣ) for negative x, so that small results are not lost.

    With e = e^-|x| and its rounding error, and that of d = 1 + e: each would be half an ulp.
    """
    one = like(x, 1.0)
    data = _EXPONENTIAL[x.type.scalar]
    n, r = _reduce(w, clamp(w, w.fneg(w.fabs(x)), data.underflow, data.overflow), None)
    high, low = quick_two_sum(w, one, _exp_of_remainder_less_one(w, r))
    e, e_low = scale(w, high, n), scale(w, low, n)
    d, d_low = quick_two_sum(w, one, e)
    negative = w.fcmp("olt", x, like(x, 0.0))
    quotient = w.fdiv(w.select(negative, e, one), d)
    reciprocal = w.select(negative, w.fsub(one, quotient), quotient)
    from_e = w.fmul(w.select(negative, e_low, w.fneg(e_low)), reciprocal)
    from_d = w.fmul(quotient, d_low)
    return w.multiply_add(reciprocal, w.fsub(from_e, from_d), quotient)


def scaled_exp(
    w: FunctionWriter, x: Register, *, low: Register | None = None, power: int = 0
) -> Register:
    """2ᵖ exp(x + low), |low| far less than 1; x must lie within `emit_exp`'s bounds or be nan."""
    n, r = _reduce(w, x, low)
    if power:
        n = w.add(n, constant(n.type, power))
    return scale(w, _exp_of_remainder(w, r), n)


def scale(w: FunctionWriter, x: Register, n: Register) -> Register:
    """x · 2ⁿ for any sum of two exponents that are in range; one rounding when |x| is near 1."""
    if w.scalef:
        return w.ldexp(x, n if n.type.scalar == "i32" else w.trunc(n, "i32"))
    first = w.ashr(n, constant(n.type, 1))
    return w.fmul(w.fmul(x, _power_of_two(w, x, first, 0)), _power_of_two(w, x, w.sub(n, first), 0))


def _half_exponentials(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """e^|x| / 2 and e^-|x| / 2; the first does not overflow before sinh and cosh do."""
    overflow = _EXPONENTIAL[x.type.scalar].overflow + 1.0
    half = scaled_exp(w, clamp(w, w.fabs(x), 0.0, overflow), power=-1)
    return half, w.fdiv(like(x, 0.25), half)


def _reduce(w: FunctionWriter, x: Register, low: Register | None) -> tuple[Register, Register]:
    """n as an integer and r, where x + low = n ln 2 + r."""
    format = format_of(x)
    shifted = w.multiply_add(x, like(x, math.log2(math.e)), like(x, format.round_constant))
    rounded = w.fsub(shifted, like(x, format.round_constant))
    r = w.multiply_add(rounded, like(x, -format.ln2_high), x)
    if low is None:
        r = w.multiply_add(rounded, like(x, -format.ln2_low), r)
    else:
        r = w.fadd(r, w.multiply_add(rounded, like(x, -format.ln2_low), low))
    base = format.bits(format.round_constant)
    n = w.sub(
        w.bitcast(shifted, format.integer), constant(x.type.with_scalar(format.integer), base)
    )
    return n, r


def _half_of_exponential(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """2ⁿ and h with e²ˣ = 2ⁿ (1 + 2 h), |h| < 0.21, for |x| so small that 2ⁿ is a normal number.

    By the reduction of 2 x with all numbers halved, which saves the sum; the bias of 2ⁿ is a part of what is added to
    round, which saves another.
    """
    format = format_of(x)
    round_and_bias = like(x, format.round_constant + format.bias)
    shifted = w.multiply_add(x, like(x, 2 * math.log2(math.e)), round_and_bias)
    rounded = w.fsub(shifted, round_and_bias)
    high, low = _half_of_remainder(w, x, rounded)
    r = high if low is None else w.fadd(high, low)
    coefficients = [c * 2.0 ** (n + 1) for n, c in enumerate(_EXPONENTIAL[x.type.scalar].exp)]
    square = w.fmul(r, r)
    polynomial = by_fours(w, r, square, coefficients)
    half = w.multiply_add(square, polynomial, high if low is None else low)
    half = half if low is None else w.fadd(high, half)
    # n + bias in the low bits, and nothing above that stays
    bits = w.bitcast(shifted, format.integer)
    power = w.shl(bits, constant(bits.type, format.mantissa_bits))
    return w.bitcast(power, x.type.scalar), half


def _half_of_remainder(
    w: FunctionWriter, x: Register, n: Register
) -> tuple[Register, Register | None]:
    """x - n ln 2 / 2 for tanh, of f64 as two parts: rounding the sum of them would count for half an ulp.

    Of f32 by one rounding, if the target does so: ln 2 is then off by a 30th of an ulp, and n · 2⁻ⁿ of that is left
    in 1 - 1 / d.
    """
    format = format_of(x)
    is_double = x.type.scalar == "double"
    if w.has_fma and not is_double:
        return w.fma(n, like(x, -0.5 * math.log(2)), x), None
    high = w.multiply_add(n, like(x, -0.5 * format.ln2_high), x)  # exact
    low = like(x, -0.5 * format.ln2_low)
    return (high, w.fmul(n, low)) if is_double else (w.multiply_add(n, low, high), None)


def _exp_of_remainder(w: FunctionWriter, r: Register) -> Register:
    return w.fadd(_exp_of_remainder_less_one(w, r), like(r, 1.0))


def _exp_of_remainder_less_one(w: FunctionWriter, r: Register) -> Register:
    square = w.fmul(r, r)
    polynomial = by_fours(w, r, square, _EXPONENTIAL[r.type.scalar].exp)
    return w.multiply_add(square, polynomial, r)


def _power_of_two(w: FunctionWriter, x: Register, n: Register, offset: int) -> Register:
    """2^(n + offset) by writing the exponent field; for normal results only."""
    format = format_of(x)
    biased = w.add(n, constant(n.type, format.bias + offset))
    bits = w.shl(biased, constant(n.type, format.mantissa_bits))
    return w.bitcast(bits, x.type.scalar)
