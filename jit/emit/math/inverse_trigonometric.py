"""asin, acos and atan.

1. asin x = x + x³ P(x²) up to ½; beyond, π/2 - 2 asin √((1 - x)/2), with what the rounding of the
   root lost.
2. atan x = atan t + c, t = x, (x - 1)/(x + 1) or -1/x and c = 0, π/4 or π/2, so that |t| ≤ tan π/8;
   one division.
3. The constants are held as two doubles.

Greatest errors measured: asin 0.63, acos 0.60, atan 1.88 ulp of double; float goes by way of
double: 0.501 ulp.
"""

import math

from ..writer import FunctionWriter, Register
from .floats import horner, keep_tiny, like, residual

# as a double and what is left of it
_HALF_PI = (math.pi / 2, 6.123233995736766e-17)
# minimax polynomials P of steps 1 and 2, for |x| ≤ ½ and |t| ≤ tan π/8
_ASIN = (
    0.16666666666666763, 0.07499999999970118, 0.04464285717527126, 0.030381942675886797,
    0.022372215890595112, 0.01735159575395025, 0.013981015665843264, 0.011397315513600946,
    0.010789199478948323, 0.003672632307078051, 0.021789582729811283, -0.021115239814362606,
    0.03270125031499693,
)  # fmt: skip
_ATAN = (
    -0.333333333333332, 0.1999999999995377, -0.14285714280212497, 0.11111110784169767,
    -0.09090897775953262, 0.07692060502227312, -0.06663106900783385, 0.05847907034542299,
    -0.050393710699617976, 0.03806590938565644, -0.01790832585003765,
)  # fmt: skip


def emit_asin(w: FunctionWriter, x: Register) -> Register:
    """The angle between -π/2 and π/2 whose sine is x; nan beyond ±1. In double."""
    magnitude = w.fabs(x)
    is_small, angle, rest = _half_angle(w, magnitude)
    doubled, rest_doubled = w.fadd(angle, angle), w.fadd(rest, rest)
    turned = w.fsub(like(x, _HALF_PI[0]), doubled)
    lost = w.fsub(w.fsub(like(x, _HALF_PI[0]), turned), doubled)
    large = w.fadd(turned, w.fadd(lost, w.fsub(like(x, _HALF_PI[1]), rest_doubled)))
    result = w.select(is_small, w.fadd(angle, rest), large)
    return keep_tiny(w, x, w.copysign(result, x))


def emit_acos(w: FunctionWriter, x: Register) -> Register:
    """The angle between 0 and π whose cosine is x; nan beyond ±1. In double.

    π/2 - asin x for |x| ≤ ½; beyond, 2 asin √((1 - |x|)/2), subtracted from π where x is negative.
    """
    magnitude = w.fabs(x)
    is_small, angle, rest = _half_angle(w, magnitude)
    factor = w.select(is_small, like(x, 1.0), like(x, 2.0))
    angle, rest = w.fmul(angle, factor), w.fmul(rest, factor)
    negative = w.fcmp("olt", x, like(x, 0.0))
    # Small: base - angle or, for negative x, base + angle. Large: angle, or base - angle for negative x.
    added = w.or_(w.and_(is_small, negative), w.and_(w.not_(is_small), w.not_(negative)))
    flipped = w.select(added, angle, w.fneg(angle))
    rest = w.select(added, rest, w.fneg(rest))
    high, low = _acos_base(w, is_small, negative, x)
    total = w.fadd(high, flipped)
    lost = w.fadd(w.fsub(high, total), flipped)
    return w.fadd(total, w.fadd(lost, w.fadd(low, rest)))


def emit_atan(w: FunctionWriter, x: Register) -> Register:
    """The angle between -π/2 and π/2 whose tangent is x. In double."""
    magnitude = w.fabs(x)
    middle = w.fcmp("ogt", magnitude, like(x, math.sqrt(2) - 1))
    far = w.fcmp("ogt", magnitude, like(x, math.sqrt(2) + 1))
    numerator = w.select(middle, w.fsub(magnitude, like(x, 1.0)), magnitude)
    numerator = w.select(far, like(x, -1.0), numerator)
    denominator = w.select(middle, w.fadd(magnitude, like(x, 1.0)), like(x, 1.0))
    denominator = w.select(far, magnitude, denominator)
    t = w.fdiv(numerator, denominator)
    z = w.fmul(t, t)
    tail = w.fmul(w.fmul(t, z), horner(w, z, _ATAN))
    high, low = (
        w.select(far, like(x, part), w.select(middle, like(x, part / 2), like(x, 0.0)))
        for part in _HALF_PI
    )
    result = w.fadd(high, w.fadd(t, w.fadd(tail, low)))
    return keep_tiny(w, x, w.copysign(result, x))


def _half_angle(w: FunctionWriter, magnitude: Register) -> tuple[Register, Register, Register]:
    """Whether a ≤ ½, and as a sum of two asin a there, asin √((1 - a)/2) elsewhere."""
    is_small = w.fcmp("ole", magnitude, like(magnitude, 0.5))
    half = like(magnitude, 0.5)
    z = w.select(
        is_small, w.fmul(magnitude, magnitude), w.multiply_add(magnitude, w.fneg(half), half)
    )
    root = w.sqrt(z)
    angle = w.select(is_small, magnitude, root)
    # √z - root = (z - root²) / (root + √z); 0 where root is.
    remainder = residual(w, z, root, root)
    lost = w.fdiv(remainder, w.fadd(root, root))
    exact = w.or_(is_small, w.fcmp("oeq", root, like(root, 0.0)))
    lost = w.select(exact, like(root, 0.0), lost)
    rest = w.multiply_add(w.fmul(angle, z), horner(w, z, _ASIN), lost)
    return is_small, angle, rest


def _acos_base(
    w: FunctionWriter, is_small: Register, negative: Register, x: Register
) -> tuple[Register, Register]:
    """π/2 for small x, else π or 0, as a sum of two."""
    high, low = (
        w.select(
            is_small,
            like(x, part),
            w.select(negative, like(x, 2 * part), like(x, 0.0)),
        )
        for part in _HALF_PI
    )
    return high, low
