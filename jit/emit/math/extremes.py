"""The lesser and the greater of two numbers: of floats IEEE 754-2019's minimum and maximum.

NaN if either is, and −0 < +0, so that the order in which a reduction joins its elements makes no difference.  The
minimum instruction of x86 gives the second operand when the two are equal or one is NaN.  So does `select` here,
and both orders together tell: two zeros are joined by their signs, and a number with a NaN by their bits, as every
exponent with all bits set and a mantissa is a NaN.  `llvm.minimum` takes two instructions more.
"""

from __future__ import annotations

import math
import struct

from ..writer import FunctionWriter, Register
from .floats import format_of


def emit_min(w: FunctionWriter, u: Register, v: Register) -> Register:
    """The lesser; nan if either is."""
    if u.type.is_integer:
        return w.smin(u, v)
    number = v.number
    if number is not None and not math.isnan(number):
        return w.select(w.fcmp("oge" if _bits(number) == _bits(-0.0) else "ogt", u, v), v, u)
    bits = format_of(u).integer
    either = (w.select(w.fcmp("olt", x, y), x, y) for x, y in ((u, v), (v, u)))
    one, other = (w.bitcast(x, bits) for x in either)
    return w.bitcast(w.or_(one, other), u.type.scalar)


def emit_max(w: FunctionWriter, u: Register, v: Register) -> Register:
    """The greater; nan if either is.  Two instructions more than `emit_min`, as `and` would lose a nan."""
    if u.type.is_integer:
        return w.smax(u, v)
    number = v.number
    if number is not None and not math.isnan(number):
        return w.select(w.fcmp("ole" if _bits(number) == _bits(0.0) else "olt", u, v), v, u)
    bits = format_of(u).integer
    either = (w.select(w.fcmp("ogt", x, y), x, y) for x, y in ((u, v), (v, u)))
    one, other = (w.bitcast(x, bits) for x in either)
    is_nan = w.sext(w.fcmp("uno", u, v), bits)
    return w.bitcast(w.or_(w.and_(one, other), is_nan), u.type.scalar)


def _bits(number: float) -> bytes:
    return struct.pack(">d", number)
