"""Laws of indices: equal steps are a slice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nnkit.core.ir import Builder, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import (
    Add,
    DataTypeCast,
    Gather,
    Iota,
    Multiply,
    Negate,
    Scatter,
    ScatterAdd,
    Subtract,
    Update,
)
from nnkit.core.ops.literal import constant, dense
from nnkit.core.ops.nest import Bounds
from nnkit.core.passes import Simplify, apply_pass
from nnkit.core.types import F32, I8, I32, I64, TensorType, scalar
from tests.core.passes.laws import Law, check, module_of, rows

A = TensorType((5, 3), F32)
ROWS = TensorType((3, 3), F32)
COLUMNS = TensorType((5, 2), F32)
ROW = TensorType((3,), F32)
AT = TensorType((3,), I64)
LONG = TensorType((200,), F32)

Indices = Callable[[Builder], Value]


def numbers(*given: int) -> Indices:
    return lambda b: b.emit(dense(TensorType((len(given),), I64), given))


def at(number: int) -> Indices:
    return lambda b: constant(b, scalar(I64), number)


def counted(count: int, *, step: int = 1, first: int = 0) -> Indices:
    """first + step · iota."""

    def build(b: Builder) -> Value:
        made = b.emit(Iota((count,), 0, I64))
        if step == -1:
            return b.emit(Subtract(), constant(b, scalar(I64), first), made)
        made = b.emit(Multiply(), made, constant(b, scalar(I64), step))
        return b.emit(Add(), constant(b, scalar(I64), first), made)

    return build


def from_the_end(b: Builder) -> Value:
    """4, 3 … 0 as i32, by way of negative numbers."""
    down = b.emit(Negate(), b.emit(Iota((5,), 0, I32)))
    return b.emit(
        Subtract(), b.emit(Add(), down, constant(b, scalar(I32), 9)), constant(b, scalar(I32), 5)
    )


def cast(b: Builder) -> Value:
    return b.emit(DataTypeCast(I64), b.emit(Iota((3,), 0, I32)))


def overflowing(b: Builder) -> Value:
    """(0, 1, 2) + 2³¹ − 1, and minus that again, in i32, which wraps around and comes back."""
    up = constant(b, scalar(I32), 2**31 - 1)
    return b.emit(Subtract(), b.emit(Add(), b.emit(Iota((3,), 0, I32)), up), up)


def around(b: Builder) -> Value:
    """0 to 127, and from −128 on."""
    return b.emit(DataTypeCast(I32), b.emit(Iota((200,), 0, I8)))


def taken(indices: Indices, axis: int = 0, bounds: Bounds = Bounds.CHECK) -> Callable[..., Value]:
    return lambda b, x: b.emit(Gather(axis, bounds), x, indices(b))


def added(
    indices: Indices, axis: int = 0, *shape: int, bounds: Bounds = Bounds.CHECK
) -> Callable[..., Value]:
    return lambda b, u: b.emit(ScatterAdd(shape or (5, 3), axis, bounds), u, indices(b))


def written(indices: Indices, axis: int = 0, update: Update = Update.SET) -> Callable[..., Value]:
    return lambda b, u, x: b.emit(Scatter(axis, update), u, x, indices(b))


def strided(b: Builder, u: Value, x: Value) -> Value:
    """Of the other axis, every second element."""
    op = Scatter(0, Update.ADD, start=(0, 1), strides=(1, 2))
    return b.emit(op, u, x, numbers(1, 2, 3)(b))


EVERY_OTHER = TensorType((3, 1), F32)

LAWS = rows(
    ("all rows", [A], taken(counted(5)), ""),
    ("all rows from the last", [A], taken(counted(5, step=-1, first=4)), "reverse"),
    ("all rows from the last, by i32", [A], taken(from_the_end), "reverse"),
    ("some rows", [A], taken(counted(2, first=1)), "slice"),
    ("one row in two", [A], taken(counted(3, step=2)), "slice"),
    ("one row in two from the last", [A], taken(numbers(4, 2, 0)), "slice reverse"),
    ("columns", [A], taken(numbers(1, 2), 1), "slice"),
    ("a row", [A], taken(at(2)), "slice shapeCast"),
    ("one row of many", [A], taken(numbers(2)), "slice"),
    ("cast indices", [A], taken(cast), "slice"),
    ("whatever is outside", [A], taken(numbers(0, 1), 0, Bounds.ZERO), "slice"),
    ("rows outside", [A], taken(numbers(4, 5), 0, Bounds.ZERO), "gather"),
    ("rows before the first", [A], taken(numbers(1, 0, -1), 0, Bounds.CLIP), "gather"),
    ("the same row", [A], taken(numbers(1, 1), 0), "gather"),
    ("uneven steps", [A], taken(numbers(0, 1, 3), 0), "gather"),
    ("numbers that overflow", [A], taken(overflowing), "iota add subtract gather"),
    ("an iota that overflows", [LONG], taken(around, 0, Bounds.ZERO), "iota dataTypeCast gather"),
    ("no rows", [A], taken(numbers()), "gather"),
    ("rows at unknown places", [A, AT], lambda b, x, i: b.emit(Gather(0, Bounds.CLIP), x, i), "gather"),
    (
        "pairs of indices",
        [A],
        lambda b, x: b.emit(Gather(0), x, numbers(0, 1)(b), numbers(0, 1)(b)),
        "gather",
    ),
    ("added to all rows", [A], added(counted(5)), "add"),
    ("added to all rows from the last", [A], added(counted(5, step=-1, first=4)), "reverse add"),
    ("added to some rows", [ROWS], added(counted(3, first=1)), "add pad"),
    ("added to one row in two", [ROWS], added(counted(3, step=2)), "add pad"),
    ("added to one row in two from the last", [ROWS], added(numbers(4, 2, 0)), "reverse add pad"),
    ("added to columns", [COLUMNS], added(numbers(1, 2), 1), "add pad"),
    ("added to a row", [ROW], added(at(2)), "shapeCast add pad"),
    ("added to numbers", [ROW], added(numbers(0, 1, 2), 0, 5), "add pad"),
    ("integers need no zero", [TensorType((3, 3), I32)], added(numbers(1, 2, 3)), "pad"),
    ("added to the same row", [ROWS], added(numbers(1, 1, 1)), "scatterAdd"),
    ("added outside", [ROWS], added(numbers(3, 4, 5), bounds=Bounds.ZERO), "scatterAdd"),
    ("written to some rows", [ROWS, A], written(numbers(1, 2, 3)), "scatter"),
    ("written from the last", [ROWS, A], written(numbers(4, 2, 0)), "reverse scatter"),
    ("written to columns", [COLUMNS, A], written(numbers(0, 2), 1, Update.MAX), "scatter"),
    ("written to a row", [ROW, A], written(at(4), 0, Update.ADD), "shapeCast scatter"),
    ("written to some rows, and to one element in two", [EVERY_OTHER, A], strided, "scatter"),
    ("written twice", [ROWS, A], written(numbers(2, 2, 1)), "scatter"),
)  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)


WRITTEN = [law for law in LAWS if law.values[0].becomes.endswith("scatter")]


@pytest.mark.parametrize("law", WRITTEN)
def test_what_is_written_in_equal_steps_needs_no_indices(law: Law) -> None:
    module = module_of(law.parameters, law.build)
    apply_pass(Simplify(), module)
    (write,) = [i for i in walk(module.functions["main"].body) if isinstance(i.op, Scatter)]
    assert (len(write.operands) == 2) == (law.title != "written twice")
