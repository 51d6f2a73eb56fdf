"""x to the power y, of floats and of integers.

1. log |x| as an unevaluated sum of two doubles, good to 2⁻⁶⁴, since its error is multiplied by up
   to 745.
2. times y, again as a sum of two, and the exponential of that.
3. The sign, and the special values, as C's `pow` has them.

Greatest errors measured: 1.2 ulp of double; float goes by way of double, with a plain logarithm:
0.501 ulp.
"""

import math

from ..writer import I64, FunctionWriter, Register, constant
from .exponential import scaled_exp
from .floats import clamp, like, residual_limit, two_product
from .logarithm import emit_log, log_extended

_LARGEST_EXPONENT = 745.2
"""Beyond ± this the exponential is infinite or zero in double.  f64 ends at 2⁻¹⁰⁷⁵."""

_REGULAR_EXPONENT = 1000.0
"""Any number above `_LARGEST_EXPONENT`: beyond, what rounding the exponent lost is not needed, and may be no number."""


def emit_power(w: FunctionWriter, x: Register, y: Register) -> Register:
    """xʸ; 1 where y is 0 or x is 1, even by nan; nan for negative x and broken y. Integers wrap."""
    if x.type.is_integer:
        return _integer_power(w, x, y)
    if x.type.scalar == "float":
        wide = _double_power(w, w.fpext(x, "double"), w.fpext(y, "double"), extended=False)
        return w.fptrunc(wide, "float")
    return _double_power(w, x, y, extended=True)


def _double_power(w: FunctionWriter, x: Register, y: Register, *, extended: bool) -> Register:
    magnitude = w.fabs(x)
    logarithm = emit_log(w, magnitude)
    if extended:
        exponent, low = _product_with_log(w, magnitude, logarithm, y)
        bounded = clamp(w, exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        result = scaled_exp(w, bounded, low=low)
    else:
        exponent = w.fmul(y, logarithm)
        result = scaled_exp(w, clamp(w, exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
    return _special_power(w, x, y, result)


def _product_with_log(
    w: FunctionWriter, magnitude: Register, logarithm: Register, y: Register
) -> tuple[Register, Register]:
    """y log |x| as a sum of two; where that is infinite or nan, the second is 0."""
    high, low = log_extended(w, magnitude)
    regular = w.fcmp("olt", w.fabs(logarithm), like(y, math.inf))
    product, error = two_product(w, y, w.select(regular, high, logarithm))
    error = w.multiply_add(y, low, error)
    small = w.and_(regular, w.fcmp("olt", w.fabs(product), like(y, _REGULAR_EXPONENT)))
    if not w.has_fma:  # halves of a huge y are no numbers; its product is small for |x| = 1 alone, without any error
        small = w.and_(small, w.fcmp("olt", w.fabs(y), like(y, residual_limit(w, y))))
    return product, w.select(small, error, like(y, 0.0))


def _special_power(w: FunctionWriter, x: Register, y: Register, result: Register) -> Register:
    whole = w.fcmp("oeq", w.intrinsic("trunc", y.type, [y]), y)
    half = w.fmul(y, like(y, 0.5))
    odd = w.and_(whole, w.fcmp("une", w.intrinsic("trunc", y.type, [half]), half))
    # An odd power has the sign of x, that of zeros and infinities too.
    result = w.select(odd, w.copysign(result, x), result)
    finite = w.fcmp("ogt", x, like(x, -math.inf))
    broken = w.and_(w.and_(w.fcmp("olt", x, like(x, 0.0)), finite), w.not_(whole))
    result = w.select(broken, like(x, math.nan), result)
    endless = w.fcmp("oeq", w.fabs(y), like(y, math.inf))
    minus_one = w.and_(endless, w.fcmp("oeq", x, like(x, -1.0)))
    one = w.or_(w.fcmp("oeq", y, like(y, 0.0)), w.fcmp("oeq", x, like(x, 1.0)))
    return w.select(w.or_(one, minus_one), like(x, 1.0), result)


def _integer_power(w: FunctionWriter, x: Register, y: Register) -> Register:
    """By squaring, a round for each bit of y; a negative power is the reciprocal cut to an integer."""
    one, zero = constant(x.type, 1), constant(x.type, 0)
    with w.loop(
        constant(I64, 0), constant(I64, x.type.bits), constant(I64, 1), [one, x, y], hint="power"
    ) as loop:
        result, square, rest = loop.values
        odd = w.icmp("ne", w.and_(rest, one), zero)
        result = w.select(odd, w.mul(result, square), result)
        loop.carry(result, w.mul(square, square), w.lshr(rest, one))
    negative = w.icmp("slt", y, zero)
    sign = w.select(w.icmp("ne", w.and_(y, one), zero), x, one)
    unit = w.icmp("ult", w.add(x, one), constant(x.type, 3))
    reciprocal = w.select(w.and_(unit, w.icmp("ne", x, zero)), sign, zero)
    return w.select(negative, reciprocal, loop.results[0])
