"""Allocation, pointers and boxes: their types."""

from __future__ import annotations

from nnkit.core.errors import ShapeError
from nnkit.core.ops import (
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Copy,
    Deallocate,
    ElementPointer,
    Load,
    Offset,
    PointerCast,
    ProjectBox,
    Release,
    Retain,
    Store,
)
from nnkit.core.types import (
    F32,
    I32,
    ArrayType,
    BoxType,
    PointerType,
    TensorType,
    TupleType,
    scalar,
)

from .program_samples import EVERY_KIND, PAIR, ROWS, TREE, N, Refused, S, Typed

P = PointerType
PAIRS = ArrayType(5, TupleType((S, PAIR)))

SAMPLES = [
    *(Typed(AllocateStack(type, 2), (), (P(type),)) for type in EVERY_KIND),
    *(Typed(AllocateHeap(type), (N,), (P(type),)) for type in EVERY_KIND),
    *(Typed(AllocateBox(type), (), (BoxType(type),)) for type in EVERY_KIND),
    *(Typed(ProjectBox(), (BoxType(type),), (P(type),)) for type in EVERY_KIND),
    *(Typed(Load(), (P(type),), (type,)) for type in EVERY_KIND),
    *(Typed(Store(), (type, P(type)), ()) for type in EVERY_KIND),
    Typed(Load(), (P(P(BoxType(S))),), (P(BoxType(S)),)),
    Typed(Retain(), (BoxType(TREE),), ()),
    Typed(Release(), (BoxType(TREE),), ()),
    Typed(Deallocate(), (P(PAIR),), ()),
    Typed(Copy(), (P(PAIR), P(PAIR), N), ()),
    Typed(ElementPointer((1,)), (P(ROWS),), (P(TensorType((4,), F32)),)),
    Typed(ElementPointer((1, 2)), (P(ROWS),), (P(S),)),
    Typed(ElementPointer((None, 2)), (P(ROWS), N), (P(S),)),
    Typed(ElementPointer(("w", None, None)), (P(PAIR), N, N), (P(S),)),
    Typed(ElementPointer((None, 1, "b")), (P(PAIRS), N), (P(S),)),
    Typed(ElementPointer((4, 0)), (P(PAIRS),), (P(S),)),
    Typed(Offset(), (P(PAIR), N), (P(PAIR),)),
    *(Typed(PointerCast(P(type)), (P(S),), (P(type),)) for type in EVERY_KIND),
    Typed(PointerCast(N), (P(PAIR),), (N,)),
    Typed(PointerCast(P(PAIR)), (N,), (P(PAIR),)),
]
ERRORS = [
    Refused(
        AllocateStack(S, 0),
        (),
        "allocateStack makes room for at least one value, not 0",
        ShapeError,
    ),
    Refused(AllocateStack(S, -3), (), "at least one value, not -3", ShapeError),
    Refused(AllocateHeap(S), (scalar(I32),), "allocateHeap counts in i64, not in i32"),
    Refused(AllocateHeap(S), (TensorType((1,), F32),), "counts in i64, not in <1 x f32>"),
    Refused(ProjectBox(), (P(S),), "projectBox takes a box, not a *f32"),
    Refused(Retain(), (S,), "retain takes a box, not a f32"),
    Refused(Release(), (P(S),), "release takes a box, not a *f32"),
    Refused(Deallocate(), (BoxType(S),), "deallocate takes a pointer, not a box{f32}"),
    Refused(Load(), (S,), "load takes a pointer, not a f32"),
    Refused(Load(), (BoxType(S),), "load takes a pointer, not a box{f32}"),
    Refused(Store(), (S, P(N)), "cannot store a f32 where a i64 lies"),
    Refused(Store(), (P(S), S), "store takes a pointer, not a f32"),
    Refused(Copy(), (P(S), P(N), N), "cannot copy values of f32 where i64 lie"),
    Refused(Copy(), (P(S), P(S), S), "copy counts in i64, not in f32"),
    Refused(Copy(), (S, P(S), N), "copy takes a pointer, not a f32"),
    Refused(Offset(), (S, N), "offset takes a pointer, not a f32"),
    Refused(Offset(), (P(S), scalar(I32)), "offset counts in i64, not in i32"),
    Refused(ElementPointer((0,)), (ROWS,), "elementPointer takes a pointer, not a <3 x 4 x f32>"),
    Refused(ElementPointer((3,)), (P(ROWS),), "<3 x 4 x f32> has no element 3", ShapeError),
    Refused(ElementPointer((-1,)), (P(ROWS),), "<3 x 4 x f32> has no element -1", ShapeError),
    Refused(ElementPointer((0,)), (P(PAIR),), "$Pair has no element 0", ShapeError),
    Refused(
        ElementPointer((0,)), (P(P(PAIRS)),), "has no element 0: it is not an aggregate", ShapeError
    ),
    Refused(
        ElementPointer((None,)),
        (P(PAIR), N),
        "$Pair has no elements to count by a value",
        ShapeError,
    ),
    Refused(
        ElementPointer((None,)), (P(TupleType((S,))), N), "has no elements to count by", ShapeError
    ),
    Refused(
        ElementPointer((None,)), (P(S), N), "f32 has no elements to count by a value", ShapeError
    ),
    Refused(
        ElementPointer((None,)), (P(ROWS), scalar(I32)), "elementPointer takes keys of i64, not i32"
    ),
    Refused(ElementPointer((None, 1)), (P(ROWS),), "takes 1 keys from values, not 0", ShapeError),
    Refused(ElementPointer((1,)), (P(ROWS), N), "takes 0 keys from values, not 1", ShapeError),
    Refused(PointerCast(scalar(I32)), (P(S),), "to a i32: a pointer has the bytes of an i64"),
    Refused(PointerCast(P(S)), (ROWS,), "cannot bitCast a <3 x 4 x f32> to a *f32: a pointer has"),
    Refused(PointerCast(P(S)), (BoxType(S),), "cannot bitCast a box{f32} to a *f32"),
    Refused(PointerCast(PAIR), (P(S),), "cannot bitCast a *f32 to a $Pair"),
    Refused(PointerCast(N), (N,), "cannot bitCast a i64 to a i64"),
]
