"""Laws of movement: what only rearranges elements."""

from __future__ import annotations

import pytest

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import (
    Add,
    Broadcast,
    Concatenate,
    Negate,
    Pad,
    PadShape,
    Reverse,
    ShapeCast,
    Slice,
    SqueezeShape,
    StrongMultiply,
    Transpose,
)
from nnkit.core.ops.literal import dense
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import Law, check, number, rows

X = TensorType((2, 3, 4), F32)
A = TensorType((3, 4), F32)
ROW = TensorType((1, 4), F32)
COLUMN = TensorType((3, 1), F32)
V = TensorType((6,), F32)
EMPTY = TensorType((0, 4), F32)
ZERO = TensorType((), F32)


def padded(b: Builder, x: Value, low: int, high: int, value: float = 0.0) -> Value:
    """A vector between copies of `value`."""
    return b.emit(Pad((low,), (high,)), x, number(b, x, value))


def by_numbers(b: Builder, x: Value) -> Value:
    """x ⊗ (0, 1, 2, −1), along the last axis."""
    return b.emit(StrongMultiply(), b.emit(dense(TensorType((4,), F32), [0, 1, 2, -1])), x)


def columns(b: Builder, x: Value, *, whole: bool = False) -> Value:
    """The first column of a matrix and the third, or all of it, added up."""
    first = b.emit(Slice((0, 0), (3, 1)), x)
    return b.emit(Add(), first, x if whole else b.emit(Slice((0, 2), (3, 3)), x))


LAWS = rows(
    ("(Aᵀ)ᵀ = A", [A], lambda b, x: b.emit(Transpose(), b.emit(Transpose(), x)), ""),
    (
        "(Xᵖ)ᵠ = Xᵖᵠ",
        [X],
        lambda b, x: b.emit(Transpose((1, 0, 2)), b.emit(Transpose((1, 2, 0)), x)),
        "transpose",
    ),
    ("Aᵀ stays", [A], lambda b, x: b.emit(Transpose(), x), "transpose"),
    ("the identity permutation", [X], lambda b, x: b.emit(Transpose((0, 1, 2)), x), ""),
    ("(1, n)ᵀ is a view", [ROW], lambda b, x: b.emit(Transpose(), x), "shapeCast"),
    ("a view under the same shape", [A], lambda b, x: b.emit(ShapeCast((3, 4)), x), ""),
    (
        "a view of a view",
        [A],
        lambda b, x: b.emit(ShapeCast((2, 6)), b.emit(ShapeCast((12,)), x)),
        "shapeCast",
    ),
    (
        "a view and back",
        [A],
        lambda b, x: b.emit(ShapeCast((3, 4)), b.emit(ShapeCast((12,)), x)),
        "",
    ),
    ("a view stays", [A], lambda b, x: b.emit(ShapeCast((12,)), x), "shapeCast"),
    (
        "a view of a transpose stays",
        [A],
        lambda b, x: b.emit(ShapeCast((12,)), b.emit(Transpose(), x)),
        "transpose shapeCast",
    ),
    ("padShape is a view", [A], lambda b, x: b.emit(PadShape(1), x), "shapeCast"),
    ("squeezeShape is a view", [ROW], lambda b, x: b.emit(SqueezeShape(0), x), "shapeCast"),
    (
        "squeezing what was padded",
        [A],
        lambda b, x: b.emit(SqueezeShape(1), b.emit(PadShape(1), x)),
        "",
    ),
    ("broadcast to its own shape", [A], lambda b, x: b.emit(Broadcast((3, 4)), x), ""),
    ("broadcast to (1, n) is a view", [V], lambda b, x: b.emit(Broadcast((1, 6)), x), "shapeCast"),
    (
        "broadcasting twice",
        [ROW],
        lambda b, x: b.emit(Broadcast((2, 3, 4)), b.emit(Broadcast((3, 4)), x)),
        "broadcast",
    ),
    (
        "broadcast after padShape in front",
        [V],
        lambda b, x: b.emit(Broadcast((2, 6)), b.emit(PadShape(0), x)),
        "broadcast",
    ),
    (
        "broadcast after padShape behind",
        [V],
        lambda b, x: b.emit(Broadcast((6, 2)), b.emit(PadShape(1), x)),
        "shapeCast broadcast",
    ),
    ("broadcast stays", [ROW], lambda b, x: b.emit(Broadcast((3, 4)), x), "broadcast"),
    ("broadcast of nothing", [EMPTY], lambda b, x: b.emit(Broadcast((2, 0, 4)), x), "broadcast"),
    ("reversing twice", [X], lambda b, x: b.emit(Reverse((0, 1)), b.emit(Reverse((1, 0)), x)), ""),
    (
        "reversing other axes",
        [X],
        lambda b, x: b.emit(Reverse((0, 1)), b.emit(Reverse((1, 2)), x)),
        "reverse",
    ),
    ("reversing one element", [ROW], lambda b, x: b.emit(Reverse((0,)), x), ""),
    ("reversing no axes", [A], lambda b, x: b.emit(Reverse(()), x), ""),
    ("reverse stays", [A], lambda b, x: b.emit(Reverse((1,)), x), "reverse"),
    ("a slice of everything", [A], lambda b, x: b.emit(Slice((0,), (3,)), x), ""),
    ("a slice stays", [A], lambda b, x: b.emit(Slice((1,), (3,)), x), "slice"),
    (
        "a slice of a slice",
        [V],
        lambda b, x: b.emit(Slice((1,), (3,), (2,)), b.emit(Slice((0,), (6,), (2,)), x)),
        "slice",
    ),
    (
        "an empty slice of a slice",
        [V],
        lambda b, x: b.emit(Slice((2,), (2,)), b.emit(Slice((1,), (5,), (2,)), x)),
        "slice",
    ),
    (
        "a slice of a broadcast",
        [V],
        lambda b, x: b.emit(Slice((1, 2), (3, 5)), b.emit(Broadcast((4, 6)), x)),
        "slice broadcast",
    ),
    (
        "a slice of what is repeated",
        [V],
        lambda b, x: b.emit(Slice((1,), (3,)), b.emit(Broadcast((4, 6)), x)),
        "broadcast",
    ),
    (
        "a slice of a part",
        [A, A],
        lambda b, x, y: b.emit(Slice((0, 5), (3, 8)), b.emit(Concatenate(1), x, y)),
        "slice",
    ),
    (
        "a slice that is a part",
        [A, A],
        lambda b, x, y: b.emit(Slice((3,), (6,)), b.emit(Concatenate(0), x, y)),
        "",
    ),
    (
        "a slice of two parts",
        [A, A],
        lambda b, x, y: b.emit(Slice((2,), (4,)), b.emit(Concatenate(0), x, y)),
        "concatenate slice",
    ),
    (
        "a slice of what was padded",
        [V],
        lambda b, x: b.emit(Slice((2,), (5,)), padded(b, x, 1, 2)),
        "slice",
    ),
    (
        "a slice that is what was padded",
        [V],
        lambda b, x: b.emit(Slice((1,), (7,)), padded(b, x, 1, 2)),
        "",
    ),
    (
        "a slice with padding",
        [V],
        lambda b, x: b.emit(Slice((0,), (5,)), padded(b, x, 1, 2)),
        "pad slice",
    ),
    (
        "a slice of what is computed with a literal",
        [A],
        lambda b, x: b.emit(Slice((0, 1), (3, 2)), by_numbers(b, x)),
        "slice slice strongMultiply",
    ),
    (
        "slices of what is repeated by a literal",
        [COLUMN],
        lambda b, x: columns(b, by_numbers(b, x)),
        "slice strongMultiply slice strongMultiply add",
    ),
    (
        "a slice of what others read stays",
        [A],
        lambda b, x: columns(b, by_numbers(b, x), whole=True),
        "strongMultiply slice add",
    ),
    (
        "slices that take all of it twice stay",
        [A],
        lambda b, x: b.emit(
            Add(),
            b.emit(Slice((0,), (2,)), y := by_numbers(b, x)),
            b.emit(Slice((1,), (3,)), y),
        ),
        "strongMultiply slice slice add",
    ),
    ("padding by nothing", [V], lambda b, x: padded(b, x, 0, 0), ""),
    (
        "gaps between no neighbours",
        [TensorType((1,), F32)],
        lambda b, x: b.emit(Pad((0,), (0,), (3,)), x, number(b, x, 0)),
        "",
    ),
    ("padding twice", [V], lambda b, x: padded(b, padded(b, x, 1, 0), 0, 2), "pad"),
    (
        "padding by other values",
        [V],
        lambda b, x: padded(b, padded(b, x, 1, 0), 0, 2, -0.0),
        "pad pad",
    ),
    (
        "padding with gaps",
        [V],
        lambda b, x: b.emit(Pad((0,), (0,), (1,)), padded(b, x, 1, 0), number(b, x, 0)),
        "pad pad",
    ),
    ("concatenating one", [A], lambda b, x: b.emit(Concatenate(0), x), ""),
    ("concatenating nothing", [A, EMPTY], lambda b, x, y: b.emit(Concatenate(0), y, x, y), ""),
    ("concatenating only empty", [EMPTY], lambda b, y: b.emit(Concatenate(0), y, y), ""),
    (
        "concatenating two",
        [A, A, EMPTY],
        lambda b, x, y, z: b.emit(Concatenate(0), x, z, y),
        "concatenate",
    ),
    (
        "an unrelated op between",
        [A],
        lambda b, x: b.emit(Transpose(), b.emit(Negate(), b.emit(Transpose(), x))),
        "transpose negate transpose",
    ),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)
