"""Quotients rounded to integers, and remainders, of integers and floats; no operand makes the
process trap.

Integers: division by 0 gives 0, so does the remainder by 0, and the least integer divided by -1
wraps to itself. Floats: the remainder is exact and has the sign of the divisor, as Python's `%` and
`numpy.remainder`.
"""

from ..writer import FunctionWriter, Register, constant
from .floats import format_of, like, residual, residual_limit


def emit_divide(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u / v; of integers as `emit_truncate_divide`."""
    return emit_truncate_divide(w, u, v) if u.type.is_integer else w.fdiv(u, v)


def emit_truncate_divide(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u / v rounded toward zero."""
    if u.type.is_float:
        return w.intrinsic("trunc", u.type, [w.fdiv(u, v)])
    return _integer_quotient(w, u, v)


def emit_floor_divide(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u / v rounded toward -∞."""
    if u.type.is_float:
        return w.intrinsic("floor", u.type, [w.fdiv(u, v)])
    quotient = _integer_quotient(w, u, v)
    remainder = w.sub(u, w.mul(quotient, v))
    lower = _must_turn(w, remainder, v)
    return w.add(quotient, w.sext(lower, u.type.scalar))


def emit_modulo(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u - v ⌊u / v⌋, with the sign of v."""
    if u.type.is_float:
        return _float_modulo(w, u, v)
    zero = constant(u.type, 0)
    remainder = w.sub(u, w.mul(_integer_quotient(w, u, v), v))
    turned = w.add(remainder, w.select(_must_turn(w, remainder, v), v, zero))
    return w.select(w.icmp("eq", v, zero), zero, turned)


def _integer_quotient(w: FunctionWriter, u: Register, v: Register) -> Register:
    zero = constant(u.type, 0)
    by_zero = w.icmp("eq", v, zero)
    if u.type.lanes > 1 and u.type.bits <= 32:
        # There is no vector instruction for this, but a double holds both, and its quotient is too
        # close to the true one to be cut to another integer.
        divisor = w.sitofp(w.select(by_zero, constant(u.type, 1), v), "double")
        exact = w.fptosi_in_range(w.fdiv(w.sitofp(u, "double"), divisor), "i64")
        return w.select(by_zero, zero, w.trunc(exact, u.type.scalar))
    by_minus_one = w.icmp("eq", v, constant(u.type, -1))
    safe = w.select(w.or_(by_zero, by_minus_one), constant(u.type, 1), v)
    quotient = w.select(by_minus_one, w.sub(zero, u), w.sdiv(u, safe))
    return w.select(by_zero, zero, quotient)


def _must_turn(w: FunctionWriter, remainder: Register, v: Register) -> Register:
    """Whether an integer remainder is not 0 and its sign is not that of v, where v is not 0."""
    zero = constant(v.type, 0)
    opposite = w.icmp("slt", w.xor(remainder, v), zero)
    inexact = w.and_(w.icmp("ne", remainder, zero), w.icmp("ne", v, zero))
    return w.and_(opposite, inexact)


def _float_modulo(w: FunctionWriter, u: Register, v: Register) -> Register:
    """u - trunc(u / v) v by `residual`, which is exact while the quotient is; else `fmod` of the C
    library.

    The quotient may round up to the next integer. Then the remainder comes out with the other sign,
    and is turned as any other is.
    """
    quotient = w.fdiv(u, v)
    largest = 2.0 ** format_of(u).mantissa_bits
    summed = w.fadd(w.fabs(u), w.fabs(v))
    near = w.and_(
        w.fcmp("olt", w.fabs(quotient), like(u, largest)),
        w.fcmp("olt", summed, like(u, residual_limit(w, u))),
    )
    whole = w.intrinsic("trunc", u.type, [quotient])
    usual = residual(w, u, whole, v)
    name = "fmodf" if u.type.scalar == "float" else "fmod"
    remainder = w.replace_rarely(w.not_(near), usual, lambda: w.per_lane(name, [u, v]))
    zero = like(u, 0.0)
    opposite = w.xor(w.fcmp("olt", remainder, zero), w.fcmp("olt", v, zero))
    turned = w.select(opposite, w.fadd(remainder, v), remainder)
    is_zero = w.fcmp("oeq", remainder, zero)
    return w.select(is_zero, w.copysign(zero, v), turned)
