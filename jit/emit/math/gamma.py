"""lgamma, digamma (ψ) and trigamma (ψ′), in double; float by way of it.

With u = x, or 1 - x for x ≤ 0 (|x| for lgamma):
1. u < 6 is raised by recurrence: Γ(u) = Γ(u + 6) / P, P = u (u + 1) … (u + 5).  Its factors pair off: with t =
   u (u + 5), P = t (t + 4) (t + 6), so that Σ 1/(u + k) = (2u + 5) P′(t) / P(t), and Σ 1/(u + k)² is the sum of
   (2t + 25 - 2c) / (t + c)² for c = 0, 4, 6: few operations, none of which cancels.
2. Asymptotic series around m = u - ½, or u + 5½ where it was raised, which have every other power only: log Γ =
   m (log m - 1) + ½ log 2π + R(1/m²) / m, ψ = log m + G(1/m²) / m², ψ′ = 1/m + H(1/m²) / m³, with minimax polynomials
   for m ≥ 5½.
3. x ≤ 0 by reflection, in a branch for vectors that have such a lane: log |Γ(x)| = log π - log |x sin πx| - log Γ(|x|),
   ψ(x) = ψ(1 - x) - π cot πx and ψ′(x) = (π / sin πx)² - ψ′(1 - x), where sin and cot are of x less its nearest
   integer, which is exact.
4. Near 0, where the sums would overflow, they are -log |x|, -1/x and 1/x².

lgamma and ψ have roots, at 1, 2 and 1.46 and between all negative integers, where terms cancel that are not
small: sums are pairs of doubles (`double_double`) to the end, so that the error is less than 2⁻⁵⁶ of the terms.  For ψ
and ψ′ of floats doubles are enough.

Greatest errors measured in double stand in docs/vector-math.md.
Source: Luke 1969, "The special functions and their approximations", 2.11, for the series around u - ½.
"""

import math

from ..writer import FunctionWriter, Register
from .double_double import Pair, add, add_float, divide, multiply, multiply_float, negate, select
from .floats import horner, like, quick_two_sum, residual, two_sum
from .logarithm import emit_log, log_extended
from .trigonometric import cotpi_extended, sinpi_extended

_RAISED = 6
"""The least number of steps that leaves m ≥ 5½, where nine coefficients have the errors below; its factors pair off."""
_TINY = 2.0**-60
"""Below this the leading term is the function: the next one is less than half a unit of a double beside it."""

# Relative errors 2⁻⁵⁴, 2⁻⁵³ and 2⁻⁵⁰, of terms that are 2⁻⁷, 2⁻⁹ and 2⁻¹¹ at most.
_LGAMMA = (
    -0.041666666666666664, 0.0024305555555547745, -0.0007688492057140911, 0.0005905875973125163,
    -0.0008400748396457574, 0.0019136836779453934, -0.006250114514299177, 0.02419137185249196,
    -0.06974164648666045,
)  # fmt: skip
_DIGAMMA = (
    0.041666666666666664, -0.007291666666653307, 0.003844246020873802, -0.004134111149177782,
    0.0075604119061120885, -0.021032332138882583, 0.08055462629792567, -0.34902956155955017,
    1.0743624174461703,
)  # fmt: skip
_TRIGAMMA = (
    -0.08333333333333329, 0.02916666666642686, -0.023065475995158322, 0.0330728548748231,
    -0.0755997026972045, 0.2520811410016922, -1.1160133666277432, 5.351152168094862,
    -17.463822276781276,
)  # fmt: skip
# The sum for c = 4 and 6 of the second step, as one fraction of polynomials in t, but for the square of the divisor.
_LATER = (820.0, 412.0, 70.0, 4.0)
_LATER_SLOPE = (412.0, 140.0, 12.0)
_LATER_DIVISOR = (24.0, 10.0, 1.0)
# as a double and what is left of it, to twice the digits
_PI = (3.141592653589793, 1.2246467991473532e-16)
_LOG_PI = (1.1447298858494002, 1.0265951162707826e-17)
_HALF_LOG_TWO_PI = (0.9189385332046728, -3.8782941580672414e-17)
_LARGE = 2.0**100
"""From here on lgamma is u (log u - 1), scaled by 2⁻³⁰ so that no product overflows before the result does. From 2⁶⁰
on, the rest is less than half a unit beside it."""


def emit_lgamma(w: FunctionWriter, x: Register) -> Register:
    """log |Γ(x)|; inf at 0, the negative integers and ±inf. In double."""
    u = w.fabs(x)
    large = w.fcmp("ogt", u, like(x, _LARGE))
    positive = _lgamma_of_positive(w, u, large)
    result = w.fadd(*positive)
    result = w.fmul(result, w.select(large, like(x, 2.0**30), like(x, 1.0)))
    reflected = w.fcmp("olt", x, like(x, -_TINY))
    result = w.replace_rarely(reflected, result, lambda: _lgamma_of_negative(w, u, positive))
    infinity = like(x, math.inf)
    infinite = w.or_(w.fcmp("oeq", u, infinity), w.fcmp("oeq", u, like(x, 0.0)))
    result = w.select(infinite, infinity, result)
    is_root = w.or_(w.fcmp("oeq", x, like(x, 1.0)), w.fcmp("oeq", x, like(x, 2.0)))
    return w.select(is_root, like(x, 0.0), result)


def emit_digamma(w: FunctionWriter, x: Register) -> Register:
    """The derivative of lgamma; ∓inf at ±0, nan at the negative integers and -inf. In double."""
    u = _reflected(w, x)
    positive = _digamma_of_positive(w, u)
    return _finish_digamma(w, x, positive)


def emit_digamma_of_float(w: FunctionWriter, x: Register) -> Register:
    """`emit_digamma` of a double that is a float, good enough to be rounded to one."""
    zero = like(x, 0.0)
    negative = w.fcmp("ole", x, zero)
    u = w.select(negative, w.fsub(like(x, 1.0), x), x)
    return _finish_digamma(w, x, (_short_digamma_of_positive(w, u), zero))


def emit_trigamma(w: FunctionWriter, x: Register) -> Register:
    """The derivative of digamma; inf at 0 and the negative integers, nan at -inf. In double."""
    u = _reflected(w, x)
    high, low = _trigamma_of_positive(w, u)
    usual = w.fadd(high, low)
    usual = w.select(w.fcmp("oeq", u[0], like(x, math.inf)), like(x, 0.0), usual)
    negative = w.fcmp("olt", x, like(x, 0.0))
    result = w.replace_rarely(negative, usual, lambda: _trigamma_of_negative(w, x, (high, low)))
    return w.select(_is_tiny(w, x), _reciprocal_of_square(w, x), result)


def emit_trigamma_of_float(w: FunctionWriter, x: Register) -> Register:
    """`emit_trigamma` of a double that is a float, good enough to be rounded to one."""
    zero, one = like(x, 0.0), like(x, 1.0)
    negative = w.fcmp("olt", x, zero)
    u = w.select(negative, w.fsub(one, x), x)
    usual = _short_trigamma_of_positive(w, u)
    usual = w.select(w.fcmp("oeq", u, like(x, math.inf)), zero, usual)
    result = w.replace_rarely(negative, usual, lambda: _trigamma_of_negative(w, x, (usual, zero)))
    reciprocal = w.fdiv(one, x)
    return w.select(_is_tiny(w, x), w.fmul(reciprocal, reciprocal), result)


def _is_tiny(w: FunctionWriter, x: Register) -> Register:
    return w.fcmp("olt", w.fabs(x), like(x, _TINY))


def _reciprocal_of_square(w: FunctionWriter, x: Register) -> Register:
    """1/x² for |x| < 1, without the digits that a subnormal square would lose where the result is finite."""
    scaled = w.fmul(x, like(x, 2.0**100))
    return w.fmul(w.fdiv(like(x, 1.0), w.fmul(scaled, scaled)), like(x, 2.0**200))


def _distance_to_integer(w: FunctionWriter, x: Register) -> Register:
    """x less its nearest integer, exactly; nan at ±inf."""
    return w.fsub(x, w.intrinsic("roundeven", x.type, [x]))


def _reflected(w: FunctionWriter, x: Register) -> Pair:
    """x, or 1 - x where x is negative, exactly."""
    zero, one = like(x, 0.0), like(x, 1.0)
    negative = w.fcmp("olt", x, zero)
    return select(w, negative, two_sum(w, one, w.fneg(x)), (x, zero))


def _raised(w: FunctionWriter, u: Pair) -> tuple[Register, Pair]:
    """Whether u is below 6, and m."""
    small = w.fcmp("olt", u[0], like(u[0], float(_RAISED)))
    shift = w.select(small, like(u[0], _RAISED - 0.5), like(u[0], -0.5))
    return small, add_float(w, u, shift)


def _shifted_product(w: FunctionWriter, u: Pair) -> tuple[Pair, Pair]:
    """t = u (u + 5) and t + 10, of which P and P′ are made."""
    t = multiply(w, u, add_float(w, u, like(u[0], _RAISED - 1.0)))
    return t, add_float(w, t, like(u[0], 10.0))


def _log(w: FunctionWriter, x: Pair, reciprocal: Register) -> Pair:
    """log(high + low), where `reciprocal` is near 1 / high."""
    high, low = log_extended(w, x[0])
    return high, w.multiply_add(x[1], reciprocal, low)


def _lgamma_of_positive(w: FunctionWriter, u: Register, large: Register) -> Pair:
    """log Γ(u); where u is `large`, 2⁻³⁰ times that."""
    zero, one = like(u, 0.0), like(u, 1.0)
    small, m = _raised(w, (u, zero))
    t, t_and_10 = _shifted_product(w, (u, zero))
    p = multiply(w, t, add_float(w, multiply(w, t, t_and_10), like(u, 24.0)))
    p = select(w, small, p, (one, zero))
    reciprocal = w.fdiv(one, m[0])
    logarithm = add_float(w, _log(w, m, reciprocal), like(u, -1.0))
    scale = w.select(large, like(u, 2.0**-30), one)
    product = multiply(w, (w.fmul(m[0], scale), w.fmul(m[1], scale)), logarithm)
    z = w.fmul(reciprocal, reciprocal)
    rest = w.multiply_add(reciprocal, horner(w, z, _LGAMMA), like(u, _HALF_LOG_TWO_PI[1]))
    total = add(w, product, (like(u, _HALF_LOG_TWO_PI[0]), rest))
    # The reciprocal of a subnormal may be infinite.
    weight = w.select(w.fcmp("ogt", u, like(u, _TINY)), w.fdiv(one, p[0]), zero)
    return add(w, total, negate(w, _log(w, p, weight)))


def _lgamma_of_negative(w: FunctionWriter, u: Register, positive: Pair) -> Register:
    """log π - log (u |sin πu|) - log Γ(u); inf where u is whole, as all above 2⁵² are."""
    distance = w.fabs(_distance_to_integer(w, u))
    sine = multiply_float(w, sinpi_extended(w, distance), u)
    logarithm = add(w, _log(w, sine, w.fdiv(like(u, 1.0), sine[0])), positive)
    log_pi = like(u, _LOG_PI[0]), like(u, _LOG_PI[1])
    result = w.fadd(*add(w, log_pi, negate(w, logarithm)))
    return w.select(w.fcmp("oeq", distance, like(u, 0.0)), like(u, math.inf), result)


def _digamma_of_positive(w: FunctionWriter, u: Pair) -> Pair:
    zero, one = like(u[0], 0.0), like(u[0], 1.0)
    small, m = _raised(w, u)
    t, t_and_10 = _shifted_product(w, u)
    p_over_t = add_float(w, multiply(w, t, t_and_10), like(zero, 24.0))
    derivative = add(w, p_over_t, multiply(w, t, add(w, t, t_and_10)))
    factor = add_float(w, (w.fadd(u[0], u[0]), w.fadd(u[1], u[1])), like(zero, _RAISED - 1.0))
    recurrence = divide(w, multiply(w, factor, derivative), multiply(w, t, p_over_t))
    recurrence = select(w, small, recurrence, (zero, zero))
    reciprocal = w.fdiv(one, m[0])
    z = w.fmul(reciprocal, reciprocal)
    high, low = _log(w, m, reciprocal)
    return add(w, (high, w.multiply_add(z, horner(w, z, _DIGAMMA), low)), negate(w, recurrence))


def _short_digamma_of_positive(w: FunctionWriter, u: Register) -> Register:
    small = w.fcmp("olt", u, like(u, float(_RAISED)))
    m = w.fadd(u, w.select(small, like(u, _RAISED - 0.5), like(u, -0.5)))
    t = w.fmul(u, w.fadd(u, like(u, _RAISED - 1.0)))
    doubled = w.fadd(t, t)
    p_over_t = w.multiply_add(t, w.fadd(t, like(u, 10.0)), like(u, 24.0))
    derivative = w.multiply_add(t, w.fadd(doubled, like(u, 10.0)), p_over_t)
    factor = w.fadd(w.fadd(u, u), like(u, _RAISED - 1.0))
    recurrence = w.fdiv(w.fmul(factor, derivative), w.fmul(t, p_over_t))
    recurrence = w.select(small, recurrence, like(u, 0.0))
    reciprocal = w.fdiv(like(u, 1.0), m)
    z = w.fmul(reciprocal, reciprocal)
    return w.fadd(emit_log(w, m), w.fsub(w.fmul(z, horner(w, z, _DIGAMMA)), recurrence))


def _finish_digamma(w: FunctionWriter, x: Register, positive: Pair) -> Register:
    """ψ(x) by ψ(x), or ψ(1 - x) where x is negative."""
    high, low = positive
    usual = w.fadd(high, low)
    usual = w.select(w.fcmp("oeq", x, like(x, math.inf)), x, usual)
    negative = w.fcmp("olt", x, like(x, 0.0))
    result = w.replace_rarely(negative, usual, lambda: _digamma_of_negative(w, x, positive))
    return w.select(_is_tiny(w, x), w.fdiv(like(x, -1.0), x), result)


def _digamma_of_negative(w: FunctionWriter, x: Register, positive: Pair) -> Register:
    distance = _distance_to_integer(w, x)
    cotangent = cotpi_extended(w, w.fabs(distance))
    product = multiply(w, cotangent, (like(x, _PI[0]), like(x, _PI[1])))
    above = w.fcmp("ogt", distance, like(x, 0.0))
    result = w.fadd(*add(w, positive, select(w, above, negate(w, product), product)))
    # The distance of -inf is nan already.
    return w.select(w.fcmp("oeq", distance, like(x, 0.0)), like(x, math.nan), result)


def _trigamma_of_positive(w: FunctionWriter, u: Pair) -> Pair:
    zero, one = like(u[0], 0.0), like(u[0], 1.0)
    small, m = _raised(w, u)
    t, t_and_10 = _shifted_product(w, u)
    doubled = w.fadd(t[0], t[0]), w.fadd(t[1], t[1])
    first = divide(w, add_float(w, doubled, like(zero, 25.0)), multiply(w, t, t))
    q = add_float(w, multiply(w, t, t_and_10), like(zero, _LATER_DIVISOR[0]))
    # Of the other numerator, the lesser, a double is enough.
    lost = w.fmul(horner(w, t[0], _LATER_SLOPE), t[1])
    numerator = horner(w, t[0], _LATER), lost
    high, low = add(w, first, divide(w, numerator, multiply(w, q, q)))
    reciprocal = w.fdiv(one, m[0])
    z = w.fmul(reciprocal, reciprocal)
    lost = w.multiply_add(w.fneg(reciprocal), m[1], residual(w, one, reciprocal, m[0]))
    rest = w.fmul(reciprocal, w.multiply_add(z, horner(w, z, _TRIGAMMA), lost))
    # Beyond, 1/m is all, and the residual may overflow on its way.
    rest = w.select(w.fcmp("olt", m[0], like(zero, _LARGE)), rest, zero)
    recurrence = select(w, small, (high, low), (zero, zero))
    total, error = two_sum(w, recurrence[0], reciprocal)
    return quick_two_sum(w, total, w.fadd(error, w.fadd(recurrence[1], rest)))


def _short_trigamma_of_positive(w: FunctionWriter, u: Register) -> Register:
    small = w.fcmp("olt", u, like(u, float(_RAISED)))
    m = w.fadd(u, w.select(small, like(u, _RAISED - 0.5), like(u, -0.5)))
    t = w.fmul(u, w.fadd(u, like(u, _RAISED - 1.0)))
    q = horner(w, t, _LATER_DIVISOR)
    first = w.multiply_add(t, like(u, 2.0), like(u, 25.0))
    square, q_square = w.fmul(t, t), w.fmul(q, q)
    others = w.fmul(square, horner(w, t, _LATER))
    numerator = w.multiply_add(first, q_square, others)
    recurrence = w.fdiv(numerator, w.fmul(square, q_square))
    recurrence = w.select(small, recurrence, like(u, 0.0))
    reciprocal = w.fdiv(like(u, 1.0), m)
    z = w.fmul(reciprocal, reciprocal)
    series = w.multiply_add(w.fmul(z, reciprocal), horner(w, z, _TRIGAMMA), reciprocal)
    return w.fadd(recurrence, series)


def _trigamma_of_negative(w: FunctionWriter, x: Register, positive: Pair) -> Register:
    distance = _distance_to_integer(w, x)
    sine = sinpi_extended(w, w.fabs(distance))
    cosecant = divide(w, (like(x, _PI[0]), like(x, _PI[1])), sine)
    square = multiply(w, cosecant, cosecant)
    result = w.fadd(*add(w, square, negate(w, positive)))
    return w.select(w.fcmp("oeq", distance, like(x, 0.0)), like(x, math.inf), result)
