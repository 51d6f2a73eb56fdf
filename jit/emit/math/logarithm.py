"""log, log1p, asinh, acosh and atanh.

1. x = 2ᵏ m with m between √½ and √2, from the bits; subnormal x is scaled up before.
2. f = m - 1, exact. float: log m = f - f²/2 + f³ P(f). double: with s = f / (2 + f), log m = 2s +
   s³ P(s²), summed so that f, which is exact, brings the leading term.
3. log x = k ln 2 + log m, the small parts first.

Greatest errors measured, in ulp of float / double: log 0.93 / 0.90, log1p 1.51 / 1.38. asinh, acosh
and atanh of float go by way of double, 0.501 ulp; in double they are good to 1.77, 1.82 and 1.35.
"""

import math

from ..writer import FunctionWriter, Register, constant
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

# minimax polynomials P of step 2, for m between √½ and √2
_LOG_FLOAT = (
    0.3333333134651184, -0.250008225440979, 0.20001262426376343, -0.16623321175575256,
    0.1420084685087204, -0.13159450888633728, 0.12766948342323303, -0.07642567157745361,
)  # fmt: skip
_LOG_DOUBLE = (
    0.6666666666666735, 0.3999999999940875, 0.28571428743910615, 0.22222198398946108,
    0.18183574218058002, 0.15313777789036503, 0.1479886287101159,
)  # fmt: skip
# After 2s + 2/3 s³: the rest is s⁵ times this polynomial in s².
_LOG_EXTENDED = (
    0.39999999999999974, 0.28571428571447044, 0.22222222217070106, 0.18181818927115698,
    0.1538455302439411, 0.13336464315862187, 0.11671858749931843, 0.12013478071823551,
)  # fmt: skip
# as a double and what is left of it
_TWO_THIRDS = (2 / 3, 3.700743415417188e-17)

_ATANH_BORDER = 0.17
"""Just below the largest s of a logarithm, (√2 - 1) / (√2 + 1) = 0.1716, up to which `_LOG_DOUBLE` was fitted."""


def emit_log(w: FunctionWriter, x: Register) -> Register:
    """The natural logarithm; -inf at ±0, nan below."""
    k, m = _split(w, x)
    result = _log_of_parts(w, w.fsub(m, like(x, 1.0)), k)
    return _special_log(w, x, x, result)


def emit_log1p(w: FunctionWriter, x: Register) -> Register:
    """log(1 + x), accurate near 0; -inf at -1, nan below."""
    return keep_tiny(w, x, _log1p(w, x, None))


def emit_atanh(w: FunctionWriter, x: Register) -> Register:
    """½ log((1 + x) / (1 - x)) = ½ log1p(2x / (1 - x)); up to 0.17 the series, which is that of log
    in s.

    ±inf at ±1, nan beyond. In double.
    """
    magnitude = w.fabs(x)
    doubled = w.fadd(magnitude, magnitude)
    divisor, divisor_low = quick_two_sum(w, like(x, 1.0), w.fneg(magnitude))
    quotient = w.fdiv(doubled, divisor)
    remainder = residual(w, doubled, quotient, divisor)
    remainder = w.multiply_add(w.fneg(quotient), divisor_low, remainder)
    low = w.fdiv(remainder, divisor)
    low = w.select(w.fcmp("olt", magnitude, like(x, 1.0)), low, like(x, 0.0))
    large = w.fmul(like(x, 0.5), _log1p(w, quotient, low))
    z = w.fmul(x, x)
    series = w.fmul(horner(w, z, _LOG_DOUBLE), like(x, 0.5))
    small = w.multiply_add(w.fmul(magnitude, z), series, magnitude)
    is_small = w.fcmp("olt", magnitude, like(x, _ATANH_BORDER))
    return keep_tiny(w, x, w.copysign(w.select(is_small, small, large), x))


def emit_asinh(w: FunctionWriter, x: Register) -> Register:
    """log1p(a + a² / (1 + √(a² + 1))) for a = |x|. In double."""
    magnitude = w.fabs(x)
    square = w.fmul(magnitude, magnitude)
    root = w.sqrt(w.fadd(square, like(x, 1.0)))
    argument = w.fadd(magnitude, w.fdiv(square, w.fadd(root, like(x, 1.0))))
    result = _log1p_or_log_of_double(w, magnitude, argument, like(x, 0.0))
    return keep_tiny(w, x, w.copysign(result, x))


def emit_acosh(w: FunctionWriter, x: Register) -> Register:
    """log1p(t + √(2t + t²)) for t = x - 1; nan below 1. In double."""
    t = w.fsub(x, like(x, 1.0))
    square = w.multiply_add(t, t, w.fadd(t, t))
    root = w.sqrt(square)
    root_low = w.fdiv(residual(w, square, root, root), w.fadd(root, root))
    root_low = w.select(w.fcmp("ogt", root, like(x, 0.0)), root_low, like(x, 0.0))
    argument, low = quick_two_sum(w, root, t)
    result = _log1p_or_log_of_double(w, x, argument, w.fadd(low, root_low))
    return w.select(w.fcmp("olt", x, like(x, 1.0)), like(x, math.nan), result)


def log_extended(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """log x as an unevaluated sum of two doubles, good to 2⁻⁶⁴; x finite, positive. For power."""
    format = format_of(x)
    k, m = _split(w, x)
    f = w.fsub(m, like(x, 1.0))
    s, s_low = _quotient_extended(w, f)
    z, z_low = two_product(w, s, s)
    z_low = w.multiply_add(w.fadd(s, s), s_low, z_low)
    cube, cube_low = two_product(w, s, z)
    cube_low = w.multiply_add(s, z_low, w.multiply_add(s_low, z, cube_low))
    tail = w.fmul(z, horner(w, z, _LOG_EXTENDED))
    series, series_low = quick_two_sum(w, like(x, _TWO_THIRDS[0]), tail)
    series_low = w.fadd(series_low, like(x, _TWO_THIRDS[1]))
    term, term_low = two_product(w, cube, series)
    term_low = w.multiply_add(cube, series_low, w.multiply_add(cube_low, series, term_low))
    exponent = w.sitofp(k, x.type.scalar)
    total, low = quick_two_sum(w, w.fmul(exponent, like(x, format.ln2_high)), w.fadd(s, s))
    total, lower = quick_two_sum(w, total, term)
    rest = w.multiply_add(exponent, like(x, format.ln2_low), w.fadd(s_low, s_low))
    rest = w.fadd(w.fadd(rest, term_low), w.fadd(low, lower))
    return quick_two_sum(w, total, rest)


def _quotient_extended(w: FunctionWriter, f: Register) -> tuple[Register, Register]:
    """f / (2 + f) as a sum of two."""
    divisor, divisor_low = quick_two_sum(w, like(f, 2.0), f)
    reciprocal = w.fdiv(like(f, 1.0), divisor)
    quotient = w.fmul(f, reciprocal)
    remainder = residual(w, f, quotient, divisor)
    remainder = w.multiply_add(w.fneg(quotient), divisor_low, remainder)
    return quotient, w.fmul(remainder, reciprocal)


def _split(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """k as an integer and m, where x = 2ᵏ m and √½ ≤ m < √2, for positive finite x."""
    format = format_of(x)
    subnormal = w.fcmp("olt", x, like(x, format.smallest_normal))
    scaled = w.fmul(x, like(x, 2.0**format.mantissa_bits))
    bits = w.bitcast(w.select(subnormal, scaled, x), format.integer)
    type = bits.type
    shifted = w.add(bits, constant(type, format.bits(1.0) - format.bits(math.sqrt(0.5))))
    biased = w.ashr(shifted, constant(type, format.mantissa_bits))
    bias = w.select(
        subnormal,
        constant(type, format.bias + format.mantissa_bits),
        constant(type, format.bias),
    )
    fraction = w.and_(shifted, constant(type, (1 << format.mantissa_bits) - 1))
    m = w.add(fraction, constant(type, format.bits(math.sqrt(0.5))))
    return w.sub(biased, bias), w.bitcast(m, x.type.scalar)


def _log_of_parts(w: FunctionWriter, f: Register, k: Register) -> Register:
    format = format_of(f)
    exponent = w.sitofp(k, f.type.scalar)
    rest = w.fmul(exponent, like(f, format.ln2_low))
    if f.type.scalar == "float":
        tail = w.multiply_add(f, horner(w, f, _LOG_FLOAT), like(f, -0.5))
        sum = w.fadd(f, w.multiply_add(w.fmul(f, f), tail, rest))
    else:
        sum = w.fadd(f, w.fadd(rest, _log_tail_double(w, f)))
    return w.multiply_add(exponent, like(f, format.ln2_high), sum)


def _log_tail_double(w: FunctionWriter, f: Register) -> Register:
    """log(1 + f) - f = s (f²/2 + s² P(s²)) - f²/2."""
    s = w.fdiv(f, w.fadd(f, like(f, 2.0)))
    z = w.fmul(s, s)
    half_square = w.fmul(w.fmul(f, f), like(f, 0.5))
    return w.fsub(w.fmul(s, w.multiply_add(z, horner(w, z, _LOG_DOUBLE), half_square)), half_square)


def _special_log(w: FunctionWriter, u: Register, x: Register, result: Register) -> Register:
    """The logarithm of u, which is x or 1 + x, where it is not that of a positive number."""
    result = w.select(w.fcmp("olt", x, like(x, math.inf)), result, x)
    result = w.select(w.fcmp("olt", u, like(x, 0.0)), like(x, math.nan), result)
    return w.select(w.fcmp("oeq", u, like(x, 0.0)), like(x, -math.inf), result)


def _log1p(w: FunctionWriter, x: Register, low: Register | None) -> Register:
    """log(1 + x + low): what rounding 1 + x lost is added to f, scaled as m is."""
    u, lost = two_sum(w, like(x, 1.0), x)
    if low is not None:
        lost = w.fadd(lost, low)
    k, m = _split(w, u)
    format = format_of(x)
    biased = w.sub(constant(k.type, format.bias), w.smin(k, constant(k.type, format.bias)))
    power = w.bitcast(w.shl(biased, constant(k.type, format.mantissa_bits)), x.type.scalar)
    f = w.multiply_add(lost, power, w.fsub(m, like(x, 1.0)))
    return _special_log(w, u, x, _log_of_parts(w, f, k))


def _log1p_or_log_of_double(
    w: FunctionWriter, x: Register, argument: Register, low: Register
) -> Register:
    """log1p(argument + low), or log 2x where x is above 2⁵⁴ and the argument would be 2x but for rounding."""
    large = w.fcmp("ogt", x, like(x, 2.0**54))
    low = w.select(large, like(x, 0.0), low)
    result = _log1p(w, w.select(large, x, argument), low)
    return w.fadd(result, w.select(large, like(x, math.log(2)), like(x, 0.0)))
