"""`i64` index arithmetic with constant folding while the code is emitted."""

from __future__ import annotations

from .writer import FunctionWriter, Register, constant


def add_constant(w: FunctionWriter, x: Register, number: int) -> Register:
    """x + number."""
    if number == 0:
        return x
    if x.is_constant:
        return constant(x.type, int(x.text) + number)
    return w.add(x, constant(x.type, number))


def multiply_constant(w: FunctionWriter, x: Register, factor: int) -> Register:
    """x · factor, of one index or of one per lane."""
    if factor == 1:
        return x
    if x.is_constant and x.type.lanes == 1:
        return constant(x.type, int(x.text) * factor)
    return w.mul(x, constant(x.type, factor))


def is_inside(w: FunctionWriter, x: Register, extent: int) -> Register:
    """Whether x is one of 0 … extent - 1: as unsigned numbers, negative ones are large."""
    return w.icmp("ult", x, constant(x.type, extent))
