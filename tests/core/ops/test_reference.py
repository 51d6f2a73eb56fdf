"""Functions, variables, null and undefined as values."""

from __future__ import annotations

from nnkit.core.ops import Null, Reference, Undefined
from nnkit.core.types import (
    STACK,
    VOID,
    ArrayType,
    BoxType,
    FunctionType,
    OpaqueType,
    PointerType,
    TupleType,
    Type,
)

from .program_samples import EVERY_KIND, PAIR, ROWS, TREE, Refused, S, Typed

F = FunctionType((S, PAIR), TupleType((S, S)))
EVERYTHING: tuple[Type, ...] = (
    *EVERY_KIND, VOID, F, ArrayType(3, TREE), ArrayType(0, S), PointerType(PAIR), BoxType(TREE),
    OpaqueType("Hidden"), TupleType((ROWS, TupleType((STACK,)))),
)  # fmt: skip

SAMPLES = [
    Typed(Reference("f", F), (), (F,)),
    Typed(Reference("x", PointerType(PAIR)), (), (PointerType(PAIR),)),
    *(Typed(Undefined(type), (), (type,)) for type in EVERYTHING),
    *(
        Typed(Null(type), (), (type,))
        for type in (PointerType(S), PointerType(PointerType(TREE)), BoxType(PAIR), STACK, F)
    ),
]
ERRORS = [
    Refused(Reference("f", S), (), "@f is a function or the pointer to a variable, not a f32"),  # type: ignore[arg-type]
    *(
        Refused(Null(type), (), f"null is a pointer, a box, a stack or a function, not a {type}")
        for type in (S, ROWS, PAIR, TREE, VOID, ArrayType(2, PointerType(S)))
    ),
]
