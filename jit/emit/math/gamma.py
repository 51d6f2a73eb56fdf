"""lgamma and digamma.

lgamma is that of the C library, called for each lane; float by way of double.

digamma, in double:
1. Negative x by reflection: ψ(x) = ψ(1 - x) - π / tan πx, where πx is taken of x less its nearest integer.
2. x below 10 by recurrence: ψ(x) = ψ(x + 10) - Σ 1/(x + k), the sum as one fraction.
3. ψ(x) ~ log x - 1/(2x) - Σ B₂ₖ / (2k x²ᵏ), eight terms.

Greatest error measured of digamma: 8 ulp of max(|ψ|, 1) in double (ψ has its zero at 1.46, near which the error stays
absolute), 1 ulp of that in float.
"""

import math

from ..writer import FunctionWriter, Register
from .floats import horner, like
from .logarithm import emit_log
from .trigonometric import tangent_of_small

_SHIFT = 10
# -B₂ₖ / 2k for k = 1 … 8.
_ASYMPTOTIC = (
    -1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12, 3617 / 8160,
)  # fmt: skip


def emit_lgamma(w: FunctionWriter, x: Register) -> Register:
    """log |Γ(x)|; inf at 0 and the negative integers. In double."""
    return w.per_lane("lgamma", [x])


def emit_digamma(w: FunctionWriter, x: Register) -> Register:
    """The derivative of lgamma; nan at 0, the negative integers and -inf. In double."""
    negative = w.fcmp("ole", x, like(x, 0.0))
    reflected = w.select(negative, w.fsub(like(x, 1.0), x), x)
    result = _digamma_of_positive(w, reflected)
    fraction = w.fsub(x, w.intrinsic("roundeven", x.type, [x]))
    tangent = tangent_of_small(w, w.fmul(fraction, like(x, math.pi)))
    cotangent = w.fdiv(like(x, math.pi), tangent)
    result = w.select(negative, w.fsub(result, cotangent), result)
    pole = w.and_(negative, w.fcmp("ueq", fraction, like(x, 0.0)))
    return w.select(pole, like(x, math.nan), result)


def _digamma_of_positive(w: FunctionWriter, x: Register) -> Register:
    numerator, denominator = like(x, 1.0), x
    for step in range(1, _SHIFT):
        factor = w.fadd(x, like(x, float(step)))
        numerator = w.fma(numerator, factor, denominator)
        denominator = w.fmul(denominator, factor)
    low = w.fcmp("olt", x, like(x, float(_SHIFT)))
    recurrence = w.select(low, w.fdiv(numerator, denominator), like(x, 0.0))
    y = w.select(low, w.fadd(x, like(x, float(_SHIFT))), x)
    reciprocal = w.fdiv(like(x, 1.0), y)
    z = w.fmul(reciprocal, reciprocal)
    tail = w.fma(z, horner(w, z, _ASYMPTOTIC), w.fmul(reciprocal, like(x, -0.5)))
    return w.fadd(emit_log(w, y), w.fsub(tail, recurrence))
