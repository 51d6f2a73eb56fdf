"""Programs of one nest or a few, of each kind that kernels have a form for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import (
    Abs,
    Add,
    Bounds,
    Broadcast,
    Combinator,
    Concatenate,
    DataTypeCast,
    Gather,
    Iota,
    LessThan,
    Multiply,
    Pad,
    PadShape,
    Reduce,
    Reverse,
    Scatter,
    ScatterAdd,
    Select,
    Slice,
    Sqrt,
    Transpose,
    Update,
    splat,
)
from nnkit.core.types import BF16, F16, F32, F64, I8, I32, I64, TensorType
from tests.core.compute.building import f32

Build: TypeAlias = Callable[..., Value | Sequence[Value]]


def with_bias(b: Builder, x: Value, y: Value) -> list[Value]:
    z = b.emit(Add(), b.emit(Multiply(), x, y), x)
    return [z, b.emit(LessThan(), z, x)]


def transposed(b: Builder, x: Value) -> Value:
    return b.emit(Add(), x, b.emit(Transpose(), x))


def strided(b: Builder, x: Value) -> Value:
    part = b.emit(Slice((0, 1), x.tensor.shape, (2, 3)), x)
    return b.emit(Abs(), b.emit(Reverse((1,)), part))


def numbered(b: Builder, x: Value) -> Value:
    numbers = b.emit(Iota(x.tensor.shape, 1, I64))
    low = b.emit(LessThan(), numbers, b.emit(splat(numbers.tensor, 40)))
    return b.emit(Select(), x, b.emit(DataTypeCast(x.tensor.dtype), numbers), low)


def repeated(b: Builder, x: Value) -> Value:
    return b.emit(Abs(), b.emit(Broadcast((5, 3)), x))


def widened(b: Builder, x: Value) -> Value:
    return b.emit(DataTypeCast(F32), b.emit(Multiply(), x, x))


def total(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0,)), x)


def reduced(b: Builder, x: Value) -> list[Value]:
    """Of rows and of columns: a sum of products, the largest, and one of what was stored as well."""
    y = b.emit(Abs(), x)
    product = b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), x, y))
    least = b.emit(Reduce(Combinator.MIN, (0,)), b.emit(Add(), x, y))
    return [y, product, b.emit(Reduce(Combinator.MAX, (1,)), x), least]


def any_and_all(b: Builder, x: Value) -> list[Value]:
    low = b.emit(LessThan(), x, b.emit(splat(x.tensor, -0.9)))
    return [b.emit(Reduce(by, (0, 1)), low) for by in (Combinator.OR, Combinator.AND)]


def padded(b: Builder, x: Value) -> list[Value]:
    """Between zeros, and between ones with one between each two."""
    low, high = (2,) * x.tensor.rank, (3,) * x.tensor.rank
    zero, one = [b.emit(splat(TensorType((), x.tensor.dtype), n)) for n in (0, 1)]
    apart = b.emit(Pad(low, high, (1,) * x.tensor.rank), x, one)
    return [b.emit(Abs(), b.emit(Pad(low, high), x, zero)), b.emit(Abs(), apart)]


def rolled(b: Builder, x: Value) -> Value:
    size = x.tensor.shape[0]
    parts = [b.emit(Slice((k,), (n,)), x) for k, n in ((size - 3, size), (0, size - 3))]
    return b.emit(Multiply(), x, b.emit(Concatenate(0), *parts))


def gathered(b: Builder, x: Value, i: Value) -> list[Value]:
    """Of elements or of rows, each way to go on where there is none."""
    more = b.emit(Multiply(), i, b.emit(splat(i.tensor, 9)))
    return [
        b.emit(Abs(), b.emit(Gather(0, Bounds.CHECK), x, i)),
        b.emit(Abs(), b.emit(Gather(0, Bounds.CLIP), x, more)),
        b.emit(Abs(), b.emit(Gather(0, Bounds.ZERO), x, more)),
    ]


def updated(b: Builder, x: Value, u: Value, i: Value) -> list[Value]:
    """Elements or rows of x are set, added to and joined with others; and sums alone."""
    y = b.emit(Abs(), x)
    return [
        b.emit(Scatter(), u, y, i),
        b.emit(Scatter(0, Update.ADD), u, y, i),
        b.emit(Scatter(0, Update.MAX, bounds=Bounds.CLIP), u, x, i),
        b.emit(ScatterAdd(x.tensor.shape, 0, Bounds.ZERO), u, i),
    ]


def set_in_slice(b: Builder, x: Value, u: Value) -> Value:
    return b.emit(Scatter(0, Update.SET, (1, 2), (2, 1)), u, b.emit(Abs(), x))


def put_together(b: Builder, x: Value) -> Value:
    pieces = [x]
    for _ in range(6):
        pieces.append(b.emit(Multiply(), pieces[-1], x))
    return b.emit(Concatenate(0), *pieces[1:])


def columns(b: Builder, x: Value) -> Value:
    """Rows are only added, a few of them in registers."""
    return b.emit(Reduce(Combinator.ADD, (0,)), x)


def weighted(b: Builder, x: Value, w: Value) -> list[Value]:
    """Rows have more to them than to be added: they are added in memory."""
    y = b.emit(Multiply(), x, b.emit(Abs(), w))
    return [y, b.emit(Reduce(Combinator.ADD, (0,)), y)]


def weighted_inside(b: Builder, x: Value, w: Value) -> Value:
    """The same for each of the outermost rows, which threads share: what one adds up is no other's."""
    weights = b.emit(PadShape(2), b.emit(Sqrt(), w))
    return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), weights, x))


def selected_by_place(b: Builder, x: Value, y: Value) -> Value:
    place = b.emit(LessThan(), b.emit(Iota(x.tensor.shape, 0, I64)), b.emit(splat(x.tensor, 3)))
    return b.emit(Select(), b.emit(DataTypeCast(I32), x), y, place)


KINDS: tuple[tuple[Build, tuple[TensorType, ...]], ...] = (
    (reduced, (f32(5, 70),)),
    (reduced, (TensorType((70, 6), F64),)),
    (reduced, (TensorType((3, 45), BF16),)),
    (reduced, (TensorType((4, 20), I32),)),
    (reduced, (f32(3, 1000),)),  # sums of blocks
    (total, (f32(5003),)),  # and of blocks of blocks, with compensation
    (total, (TensorType((3000,), F16),)),
    (any_and_all, (f32(20, 3),)),
    (with_bias, (f32(7, 45), f32(45))),
    (with_bias, (TensorType((7, 1), F64), TensorType((7, 150), F64))),
    (with_bias, (TensorType((3, 2, 21), F16), TensorType((), F16))),
    (with_bias, (TensorType((70,), I8), TensorType((70,), I8))),
    (with_bias, (f32(), f32())),
    (transposed, (f32(20, 20),)),
    (strided, (f32(9, 50),)),
    (strided, (TensorType((4, 40), BF16),)),
    (numbered, (f32(3, 100),)),
    (numbered, (f32(5, 7),)),
    (repeated, (f32(5, 3),)),
    (widened, (TensorType((33,), BF16),)),
    (total, (f32(0),)),
    (padded, (f32(61),)),
    (padded, (TensorType((3, 21), F16),)),
    (padded, (TensorType((4, 9), I32),)),
    (rolled, (f32(77),)),
    (rolled, (TensorType((20,), I64),)),
    (gathered, (f32(30), TensorType((45,), I64))),
    (gathered, (TensorType((30,), F64), TensorType((7,), I32))),
    (gathered, (TensorType((6, 21), BF16), TensorType((9,), I64))),
    (updated, (f32(9), f32(40), TensorType((40,), I64))),
    (updated, (TensorType((6, 21), F64), TensorType((9, 21), F64), TensorType((9,), I64))),
    (updated, (TensorType((9,), I32), TensorType((40,), I32), TensorType((40,), I64))),
    (updated, (TensorType((5, 3), F16), TensorType((4, 3), F16), TensorType((4,), I64))),
    (set_in_slice, (f32(8, 30), f32(3, 20))),
    (put_together, (f32(33),)),
    (columns, (f32(90, 21),)),
    (columns, (TensorType((47, 9), F64),)),
    (weighted, (f32(90, 21), f32(90, 1))),
    (weighted, (TensorType((47, 9), F64), TensorType((47, 1), F64))),
    (weighted_inside, (TensorType((2, 70, 30), F64), TensorType((2, 70), F64))),
    (selected_by_place, (TensorType((8,), I64), TensorType((8,), I32))),
)
"""Programs, and the types of their parameters."""
