"""Integer division by a constant: shifts for powers of two, a product of the high half for others.

The general case, which also looks at what the divisor is, is in `math.division`.
"""

from __future__ import annotations

import re

from .writer import FunctionWriter, Register, constant


def divide_by_constant(w: FunctionWriter, x: Register, y: Register) -> Register | None:
    """⌊x / y⌋; None unless y is a positive constant integer."""
    divisor = _positive(y)
    if divisor is None:
        return None
    if divisor & (divisor - 1) == 0:
        return w.ashr(x, constant(x.type, divisor.bit_length() - 1))
    quotient, remainder = _truncated(w, x, y)
    return w.add(quotient, w.sext(w.icmp("slt", remainder, constant(x.type, 0)), x.type.scalar))


def modulo_by_constant(w: FunctionWriter, x: Register, y: Register) -> Register | None:
    """x − y ⌊x / y⌋; None unless y is a positive constant integer."""
    divisor = _positive(y)
    if divisor is None:
        return None
    if divisor & (divisor - 1) == 0:
        return w.and_(x, constant(x.type, divisor - 1))
    _, remainder = _truncated(w, x, y)
    is_negative = w.icmp("slt", remainder, constant(x.type, 0))
    return w.select(is_negative, w.add(remainder, y), remainder)


def _truncated(w: FunctionWriter, x: Register, y: Register) -> tuple[Register, Register]:
    """LLVM turns the division by a constant into a multiplication."""
    quotient = w.sdiv(x, y)
    return quotient, w.sub(x, w.mul(quotient, y))


def _positive(y: Register) -> int | None:
    if not y.type.is_integer or not y.is_constant:
        return None
    found = re.fullmatch(r"(?:splat \(i\d+ )?(\d+)\)?", y.text)
    return int(found[1]) or None if found else None
