"""What scalar expressions cost, to decide between computing twice and storing.

Units: one add or multiply of a vector whose operands are in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Op
from ..ops.arithmetic import Divide, FloorDivide, Modulo, StrongMultiply, TruncateDivide
from ..ops.literal import Literal
from ..ops.random import Threefry
from ..ops.special import Digamma, Erf, Erfc, Lgamma, Trigamma
from ..ops.transcendental import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Exp,
    Expm1,
    Log,
    Log1p,
    Power,
    Rsqrt,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from ..types import Shape
from .scalars import Computed, Coordinate, Read, Scalar, axes_of, operands_of

LOAD = 1.0
"""A load from the nearest cache."""

STORE = 2.0
"""A store, and the room in the cache that it takes from others."""

_NEAR, _FAR = 1 << 15, 1 << 20
"""Bytes that the first and the second cache hold, roughly, on any machine."""

_DIVISIONS = (Divide, FloorDivide, TruncateDivide, Modulo, Sqrt, Rsqrt)
_DIVISION = 5.0
_TRANSCENDENTAL = (
    *(Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan),
    *(Sinh, Cosh, Tanh, Asinh, Acosh, Atanh),
)
_POLYNOMIAL = 15.0
_STRONG = 3.0
"""A product and two comparisons."""
_SPECIAL = (Power, Erf, Erfc, Lgamma, Digamma, Trigamma, Threefry)
_SEVERAL_POLYNOMIALS = 40.0


def cost_of_op(op: Op) -> float:
    """The cost of one scalar op."""
    match op:
        case Literal():
            return 0.0
        case _ if isinstance(op, _DIVISIONS):
            return _DIVISION
        case _ if isinstance(op, _TRANSCENDENTAL):
            return _POLYNOMIAL
        case _ if isinstance(op, _SPECIAL):
            return _SEVERAL_POLYNOMIALS
        case StrongMultiply():
            return _STRONG
        case _:
            return 1.0


def traffic(size: int) -> tuple[float, float]:
    """The cost of a load from, and a store to, a tensor of `size` bytes that is walked through."""
    factor = 1.0 if size <= _NEAR else 1.5 if size <= _FAR else 3.0
    return factor * LOAD, factor * STORE


def cost_of(parts: Sequence[Scalar], extents: Shape) -> float:
    """The cost per point of `parts`, operands before users, in loops of which the last axis is innermost.

    What does not change along that axis is computed once per walk along it.  The first load counts as the
    one that the expression replaces.
    """
    axis, walk = len(extents) - 1, max(extents[-1] if extents else 1, 1)
    varying: set[Scalar] = set()
    cost, loads = 0.0, 0
    for part in parts:
        operands = operands_of(part)
        varies = not varying.isdisjoint(operands) or (
            isinstance(part, Coordinate | Read) and axis in axes_of(part)
        )
        if varies:
            varying.add(part)
        if isinstance(part, Computed):
            cost += cost_of_op(part.op) / (1 if varies else walk)
        loads += isinstance(part, Read) and varies
    return cost + LOAD * max(loads - 1, 0)
