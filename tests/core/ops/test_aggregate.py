"""Tuples, structs, arrays and rows of tensors; calls."""

from __future__ import annotations

from nnkit.core.errors import DTypeError, ShapeError
from nnkit.core.ops import Aggregate, Apply, ApplyValue, Extract, Insert
from nnkit.core.types import (
    F32,
    VOID,
    ArrayType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
)

from .program_samples import PAIR, ROWS, TREE, N, Refused, S, Typed

ROW = TensorType((4,), F32)
THREE = ArrayType(3, PAIR)
NESTED = TupleType((THREE, TupleType((ROWS,)), S))
F = FunctionType((S, PAIR), TupleType((S, S)))

SAMPLES = [
    Typed(Aggregate(TupleType((S, N))), (S, N), (TupleType((S, N)),)),
    Typed(Aggregate(TupleType((S,))), (S,), (TupleType((S,)),)),
    Typed(Aggregate(VOID), (), (VOID,)),
    Typed(Aggregate(PAIR), (ROWS, S), (PAIR,)),
    Typed(Aggregate(ArrayType(2, TREE)), (TREE, TREE), (ArrayType(2, TREE),)),
    Typed(Aggregate(ArrayType(0, S)), (), (ArrayType(0, S),)),
    Typed(Extract((1,)), (TupleType((S, N)),), (N,)),
    Typed(Extract(("b",)), (PAIR,), (S,)),
    Typed(Extract((0, 2, "w", 1, 3)), (NESTED,), (S,)),
    Typed(Extract((1, 0)), (NESTED,), (ROWS,)),
    Typed(Extract((2,)), (ROWS,), (ROW,)),
    Typed(Extract((2, 0)), (ROWS,), (S,)),
    Typed(Insert((1,)), (N, TupleType((S, N))), (TupleType((S, N)),)),
    Typed(Insert((0, 1, "w", 1)), (ROW, NESTED), (NESTED,)),
    Typed(Insert((0,)), (ROW, ROWS), (ROWS,)),
    Typed(Insert((0, 3)), (S, ROWS), (ROWS,)),
    Typed(Apply("f", F), (S, PAIR), (S, S)),
    Typed(Apply("g", FunctionType((), VOID)), (), ()),
    Typed(Apply("h", FunctionType((), TupleType((S,)))), (), (TupleType((S,)),)),
    Typed(ApplyValue(F), (F, S, PAIR), (S, S)),
    Typed(ApplyValue(FunctionType((F,), VOID)), (FunctionType((F,), VOID), F), ()),
]
ERRORS = [
    Refused(Aggregate(PAIR), (S, ROWS), "$Pair is made of (<3 x 4 x f32>, f32), not (f32, <3 x 4"),
    Refused(Aggregate(VOID), (S,), "void is made of (), not (f32)"),
    Refused(Aggregate(ArrayType(2, S)), (S,), "[2 x f32] is made of 2 elements, not 1", ShapeError),
    Refused(Aggregate(ArrayType(2, S)), (S, N), "[2 x f32] is made of f32, not i64", DTypeError),
    # an array as large as memory is not counted out
    Refused(Aggregate(ArrayType(1 << 60, S)), (S,), "elements, not 1", ShapeError),
    Refused(
        Extract((2,)), (TupleType((S, N)),), "(f32, i64) has no element 2: it has 2", ShapeError
    ),
    Refused(Extract((-1,)), (TupleType((S, N)),), "(f32, i64) has no element -1", ShapeError),
    Refused(Extract((0,)), (VOID,), "void has no element 0: it is empty", ShapeError),
    Refused(Extract(("w",)), (TupleType((S,)),), "(f32) has no field #w", ShapeError),
    Refused(Extract(("x",)), (PAIR,), "$Pair has no field #x: it has #w, #b", ShapeError),
    Refused(Extract((0,)), (PAIR,), "$Pair has no element 0: it has #w, #b", ShapeError),
    Refused(
        Extract((0,)), (StructType("No", ()),), "has no element 0: it has no fields", ShapeError
    ),
    Refused(Extract((3,)), (ROWS,), "<3 x 4 x f32> has no element 3: it has 3", ShapeError),
    Refused(Extract((0, -1)), (ROWS,), "<4 x f32> has no element -1: it has 4", ShapeError),
    Refused(Extract((0,)), (TensorType((0, 2), F32),), "has no element 0: it is empty", ShapeError),
    Refused(
        Extract((0, 0, 0)), (ROWS,), "f32 has no element 0: it is not an aggregate", ShapeError
    ),
    Refused(Extract(("w",)), (ROWS,), "<3 x 4 x f32> has no field #w", ShapeError),
    Refused(Extract((3,)), (THREE,), "[3 x $Pair] has no element 3: it has 3", ShapeError),
    Refused(Extract((0,)), (TREE,), "$Tree has no element 0: it is not an aggregate", ShapeError),
    Refused(Extract((0,)), (PointerType(PAIR),), "it is not an aggregate", ShapeError),
    Refused(Insert((3,)), (ROW, ROWS), "<3 x 4 x f32> has no element 3", ShapeError),
    Refused(Insert((0,)), (S, ROWS), "0 of <3 x 4 x f32> is a <4 x f32>, not a f32"),
    Refused(
        Insert((0, 0, "b")), (N, NESTED), "0, 0, #b of ([3 x $Pair], (<3 x 4 x f32>), f32) is a f32"
    ),
    Refused(Apply("f", F), (S,), "@f takes (f32, $Pair), not (f32)", ShapeError),
    Refused(ApplyValue(F), (S, S, PAIR), "apply calls a function, not a f32"),
    Refused(ApplyValue(F), (PointerType(F), S, PAIR), "apply calls a function, not a *(f32"),
    Refused(
        ApplyValue(F),
        (FunctionType((S,), S), S),
        "a (f32) -> f32 is called as (f32, $Pair) -> (f32, f32)",
    ),
    Refused(ApplyValue(F), (F, S), "takes (f32, $Pair), not (f32)", ShapeError),
]
