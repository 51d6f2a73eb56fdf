"""What one row says in the tables of ops that make programs: their operands may be of any type."""

from __future__ import annotations

from dataclasses import dataclass

from nnkit.core.errors import DTypeError, NNKitError
from nnkit.core.ir import Op
from nnkit.core.types import F32, I64, STACK, EnumType, StructType, TensorType, Type, scalar

S = scalar(F32)
N = scalar(I64)
ROWS = TensorType((3, 4), F32)
PAIR = StructType("Pair", (("w", ROWS), ("b", S)))
TREE = EnumType("Tree")
TREE.define([("leaf", (S,)), ("node", (TREE, TREE)), ("none", ())])

EVERY_KIND_BUT_MEMORY: tuple[Type, ...] = (S, ROWS, PAIR, TREE)
EVERY_KIND: tuple[Type, ...] = (*EVERY_KIND_BUT_MEMORY, STACK)


@dataclass(frozen=True)
class Typed:
    """An op on operands of `types` has results of types `results`."""

    op: Op
    types: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.op!r} {', '.join(map(str, self.types))}"


@dataclass(frozen=True)
class Refused:
    """An op on operands it must refuse, and what its message contains."""

    op: Op
    types: tuple[Type, ...]
    message: str
    error: type[NNKitError] = DTypeError

    def __str__(self) -> str:
        return f"{self.op!r} {', '.join(map(str, self.types))}"
