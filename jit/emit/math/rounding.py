"""Rounding to integers, signs and roots: the functions that are an instruction or three."""

from ..writer import FunctionWriter, Register, constant
from .floats import like


def emit_floor(w: FunctionWriter, x: Register) -> Register:
    """The greatest integer not above x."""
    return w.intrinsic("floor", x.type, [x])


def emit_ceil(w: FunctionWriter, x: Register) -> Register:
    """The least integer not below x."""
    return w.intrinsic("ceil", x.type, [x])


def emit_round(w: FunctionWriter, x: Register) -> Register:
    """The nearest integer, halves away from zero."""
    return w.intrinsic("round", x.type, [x])


def emit_rint(w: FunctionWriter, x: Register) -> Register:
    """The nearest integer, halves to even."""
    return w.intrinsic("roundeven", x.type, [x])


def emit_sqrt(w: FunctionWriter, x: Register) -> Register:
    """√x, correctly rounded; nan below 0."""
    return w.sqrt(x)


def emit_rsqrt(w: FunctionWriter, x: Register) -> Register:
    """1 / √x, within 1.5 ulp; inf at 0."""
    return w.fdiv(like(x, 1.0), w.sqrt(x))


def emit_negate(w: FunctionWriter, x: Register) -> Register:
    """-x; integers wrap."""
    return w.sub(constant(x.type, 0), x) if x.type.is_integer else w.fneg(x)


def emit_abs(w: FunctionWriter, x: Register) -> Register:
    """|x|; the least integer is its own."""
    if x.type.is_integer:
        return w.smax(x, w.sub(constant(x.type, 0), x))
    return w.fabs(x)


def emit_sign(w: FunctionWriter, x: Register) -> Register:
    """-1, 0 or 1; nan of nan, +0 of -0."""
    zero, one, minus_one = (constant(x.type, value) for value in (0, 1, -1))
    if x.type.is_integer:
        return w.smax(w.smin(x, one), minus_one)
    result = w.select(w.fcmp("ogt", x, zero), one, zero)
    result = w.select(w.fcmp("olt", x, zero), minus_one, result)
    return w.select(w.fcmp("uno", x, x), x, result)


def emit_square(w: FunctionWriter, x: Register) -> Register:
    """x²; integers wrap."""
    return w.mul(x, x) if x.type.is_integer else w.fmul(x, x)


def emit_add(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u + v; integers wrap."""
    return w.add(u, v) if u.type.is_integer else w.fadd(u, v)


def emit_subtract(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u - v; integers wrap."""
    return w.sub(u, v) if u.type.is_integer else w.fsub(u, v)


def emit_multiply(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u · v; integers wrap."""
    return w.mul(u, v) if u.type.is_integer else w.fmul(u, v)
