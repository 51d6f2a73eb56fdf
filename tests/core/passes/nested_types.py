"""Types inside of each other, and a function of a pair, that tests of aggregates share."""

from __future__ import annotations

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import Aggregate, Extract
from nnkit.core.types import F32, I32, VOID, StructType, TensorType, TupleType

X = TensorType((11,), F32)
N = TensorType((9,), I32)
PAIR = TupleType((X, X))
POINT = StructType("Point", (("x", X), ("n", N)))
DEEP = TupleType((POINT, VOID, TupleType((X, POINT))))


def swap(b: Builder, pair: Value) -> Value:
    """(x, y) to (y, x)."""
    x, y = (b.emit(Extract((index,)), pair) for index in (0, 1))
    return b.emit(Aggregate(PAIR), y, x)
