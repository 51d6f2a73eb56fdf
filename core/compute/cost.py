"""What scalar expressions cost, to decide between computing twice and storing.

Units: one add or multiply of a vector whose operands are in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Op
from ..ops.arithmetic import Divide, FloorDivide, Modulo, TruncateDivide
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
from .scalars import Computed, Read, Scalar

LOAD = 1.0
"""A load from the nearest cache."""

STORE = 2.0
"""A store, and the room in the cache that it takes from others."""

_DIVISIONS = (Divide, FloorDivide, TruncateDivide, Modulo, Sqrt, Rsqrt)
_DIVISION = 5.0
_TRANSCENDENTAL = (
    *(Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan),
    *(Sinh, Cosh, Tanh, Asinh, Acosh, Atanh),
)
_POLYNOMIAL = 15.0
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
        case _:
            return 1.0


def cost_of(parts: Sequence[Scalar]) -> float:
    """The cost of computing all parts of an expression; its first load counts as the one it replaces."""
    loads = sum(isinstance(part, Read) for part in parts)
    computed = sum(cost_of_op(part.op) for part in parts if isinstance(part, Computed))
    return computed + LOAD * max(loads - 1, 0)
