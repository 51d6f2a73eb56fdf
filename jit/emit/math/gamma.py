"""lgamma, digamma and trigamma.

lgamma is that of the C library, called for each lane; float by way of double.

ψ and ψ′, in double; float by way of it:
1. x ≤ 0 by reflection: ψ(x) = ψ(1 - x) - π / tan πx and ψ′(x) = (π / sin πx)² - ψ′(1 - x), where πx is
   taken of x less its nearest integer.
2. x below 10 by recurrence: ψ(x) = ψ(x + 10) - Σ 1/(x + k) and ψ′(x) = ψ′(x + 10) + Σ 1/(x + k)², each
   sum as one fraction.
3. ψ(x) ~ log x - 1/(2x) - Σ B₂ₖ / (2k x²ᵏ) and ψ′(x) ~ 1/x + 1/(2x²) + Σ B₂ₖ / x²ᵏ⁺¹, eight terms.

Greatest errors measured: digamma 11.6 ulp of max(|ψ|, 1) in double (ψ has its zero at 1.46, near which
the error stays absolute), trigamma 8.3 ulp of max(|ψ′|, 1); float 0.51 ulp of those.
Source: Abramowitz & Stegun 1964, 6.3.18 and 6.4.12.
"""

import math

from ..writer import FunctionWriter, Register
from .floats import horner, like
from .logarithm import emit_log
from .trigonometric import sine_of_small, tangent_of_small

_SHIFT = 10
# B₂ₖ for k = 1 … 8.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_DIGAMMA = tuple(-number / (2 * k) for k, number in enumerate(_BERNOULLI, 1))


def emit_lgamma(w: FunctionWriter, x: Register) -> Register:
    """log |Γ(x)|; inf at 0 and the negative integers. In double."""
    return w.per_lane("lgamma", [x])


def emit_digamma(w: FunctionWriter, x: Register) -> Register:
    """The derivative of lgamma; ∓inf at ±0, nan at the negative integers and -inf. In double."""
    negative = w.fcmp("ole", x, like(x, 0.0))
    result = _digamma_of_positive(w, w.select(negative, w.fsub(like(x, 1.0), x), x))
    fraction, turned = _half_turn(w, x)
    cotangent = w.fdiv(like(x, math.pi), tangent_of_small(w, turned))
    result = w.select(negative, w.fsub(result, cotangent), result)
    pole = w.and_(negative, w.fcmp("ueq", fraction, like(x, 0.0)))
    at_zero = w.copysign(like(x, math.inf), w.fneg(x))
    at_pole = w.select(w.fcmp("oeq", x, like(x, 0.0)), at_zero, like(x, math.nan))
    return w.select(pole, at_pole, result)


def emit_trigamma(w: FunctionWriter, x: Register) -> Register:
    """The derivative of digamma; inf at 0 and the negative integers, nan at -inf. In double."""
    negative = w.fcmp("ole", x, like(x, 0.0))
    result = _trigamma_of_positive(w, w.select(negative, w.fsub(like(x, 1.0), x), x))
    fraction, turned = _half_turn(w, x)
    cosecant = w.fdiv(like(x, math.pi), sine_of_small(w, turned))
    result = w.select(negative, w.fsub(w.fmul(cosecant, cosecant), result), result)
    pole = w.and_(negative, w.fcmp("oeq", fraction, like(x, 0.0)))
    return w.select(pole, like(x, math.inf), result)


def _half_turn(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """x less its nearest integer, nan at ±inf, and π times that."""
    fraction = w.fsub(x, w.intrinsic("roundeven", x.type, [x]))
    return fraction, w.fmul(fraction, like(x, math.pi))


def _digamma_of_positive(w: FunctionWriter, x: Register) -> Register:
    numerator, denominator = like(x, 1.0), x
    for step in range(1, _SHIFT):
        factor = w.fadd(x, like(x, float(step)))
        numerator = w.multiply_add(numerator, factor, denominator)
        denominator = w.fmul(denominator, factor)
    y, recurrence = _raised(w, x, w.fdiv(numerator, denominator))
    reciprocal = w.fdiv(like(x, 1.0), y)
    z = w.fmul(reciprocal, reciprocal)
    tail = w.multiply_add(z, horner(w, z, _DIGAMMA), w.fmul(reciprocal, like(x, -0.5)))
    return w.fadd(emit_log(w, y), w.fsub(tail, recurrence))


def _trigamma_of_positive(w: FunctionWriter, x: Register) -> Register:
    numerator, denominator = like(x, 1.0), w.fmul(x, x)
    for step in range(1, _SHIFT):
        factor = w.fadd(x, like(x, float(step)))
        factor = w.fmul(factor, factor)
        numerator = w.multiply_add(numerator, factor, denominator)
        denominator = w.fmul(denominator, factor)
    y, recurrence = _raised(w, x, w.fdiv(numerator, denominator))
    reciprocal = w.fdiv(like(x, 1.0), y)
    z = w.fmul(reciprocal, reciprocal)
    series = w.multiply_add(
        w.fmul(z, reciprocal), horner(w, z, _BERNOULLI), w.fmul(z, like(x, 0.5))
    )
    return w.fadd(recurrence, w.fadd(reciprocal, series))


def _raised(w: FunctionWriter, x: Register, sum: Register) -> tuple[Register, Register]:
    """x + 10 and the sum of the recurrence where x is below 10, x and 0 elsewhere."""
    low = w.fcmp("olt", x, like(x, float(_SHIFT)))
    raised = w.select(low, w.fadd(x, like(x, float(_SHIFT))), x)
    return raised, w.select(low, sum, like(x, 0.0))
