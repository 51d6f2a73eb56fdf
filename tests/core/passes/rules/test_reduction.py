"""Laws of reductions and scans."""

from __future__ import annotations

import pytest

from nnkit.core.ir import Builder, Op, Value
from nnkit.core.ops import Broadcast, Multiply, Reduce, Scan, StrongMultiply
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.literal import dense
from nnkit.core.passes.rules.reduction import merged_axes
from nnkit.core.types import BOOL, F32, I8, TensorType
from tests.core.passes.laws import Law, check, rows

ADD, MULTIPLY, MIN, MAX, AND, OR = Combinator

X = TensorType((2, 3, 4), F32)
N = TensorType((2, 3, 4), I8)
P = TensorType((3, 2), BOOL)
UNITS = TensorType((1, 11, 1), F32)
ROW = TensorType((1, 4), F32)

STRONG = StrongMultiply()


def by(b: Builder, x: Value, numbers: list[float], product: Op = STRONG) -> Value:
    """The products of x with numbers along its middle axis."""
    return b.emit(product, b.emit(dense(TensorType((3, 1), F32), [[n] for n in numbers])), x)


LAWS = rows(
    ("over no axes", [X], lambda b, x: b.emit(Reduce(ADD), x), ""),
    ("over some axes stays", [X], lambda b, x: b.emit(Reduce(ADD, (1,)), x), "reduce"),
    (
        "a sum over axes of one element",
        [UNITS],
        lambda b, x: b.emit(Reduce(ADD, (0, 2)), x),
        "shapeCast add",
    ),
    (
        "a product over axes of one element",
        [UNITS],
        lambda b, x: b.emit(Reduce(MULTIPLY, (0,)), x),
        "shapeCast",
    ),
    (
        "a maximum over axes of one element",
        [UNITS],
        lambda b, x: b.emit(Reduce(MAX, (2,)), x),
        "shapeCast",
    ),
    ("one of several axes", [UNITS], lambda b, x: b.emit(Reduce(MAX, (0, 1)), x), "reduce"),
    (
        "a sum of integers over one element",
        [TensorType((1, 9), I8)],
        lambda b, x: b.emit(Reduce(ADD, (0,)), x),
        "shapeCast",
    ),
    (
        "the minimum of what is repeated",
        [ROW],
        lambda b, x: b.emit(Reduce(MIN, (0, 1)), b.emit(Broadcast((2, 3, 4)), x)),
        "shapeCast",
    ),
    (
        "with an axis that is kept",
        [ROW],
        lambda b, x: b.emit(Reduce(MAX, (0,)), b.emit(Broadcast((2, 3, 4)), x)),
        "broadcast",
    ),
    (
        "of different elements",
        [ROW],
        lambda b, x: b.emit(Reduce(MAX, (2,)), b.emit(Broadcast((2, 3, 4)), x)),
        "broadcast reduce",
    ),
    (
        "of none",
        [ROW],
        lambda b, x: b.emit(Reduce(MAX, (0,)), b.emit(Broadcast((0, 3, 4)), x)),
        "broadcast reduce",
    ),
    (
        "a sum of what is repeated stays",
        [ROW],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Broadcast((3, 4)), x)),
        "broadcast reduce",
    ),
    (
        "x + … + x = n · x, of integers",
        [TensorType((1, 9), I8)],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Broadcast((3, 9)), x)),
        "shapeCast multiply",
    ),
    (
        "more of them than the element type can count",
        [TensorType((9,), I8)],
        lambda b, x: b.emit(Reduce(ADD, (0, 1)), b.emit(Broadcast((20, 10, 9)), x)),
        "multiply",
    ),
    (
        "a sum of different integers stays",
        [TensorType((9, 1), I8)],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Broadcast((9, 3)), x)),
        "broadcast reduce",
    ),
    (
        "Σᵢ Σⱼ of integers",
        [N],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Reduce(ADD, (1,)), x)),
        "reduce",
    ),
    (
        "Σᵢ Σⱼ of floats stays",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Reduce(ADD, (1,)), x)),
        "reduce reduce",
    ),
    (
        "all of all",
        [P],
        lambda b, x: b.emit(Reduce(AND, (0,)), b.emit(Reduce(AND, (1,)), x)),
        "reduce",
    ),
    (
        "some of all stays",
        [P],
        lambda b, x: b.emit(Reduce(OR, (0,)), b.emit(Reduce(AND, (1,)), x)),
        "reduce reduce",
    ),
    (
        "a sum of products with a unit vector",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (1,)), by(b, x, [0, 1, 0])),
        "slice slice strongMultiply shapeCast",
    ),
    (
        "a sum over other axes, too, stays",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (1, 2)), by(b, x, [0, 1, 0])),
        "strongMultiply reduce",
    ),
    (
        "a sum of products with two numbers stays",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (1,)), by(b, x, [0, 1, 1])),
        "strongMultiply reduce",
    ),
    (
        "a sum of products that may be NaN stays",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (1,)), by(b, x, [0, 1, 0], Multiply())),
        "multiply reduce",
    ),
    (
        "the largest product with a unit vector stays",
        [X],
        lambda b, x: b.emit(Reduce(MAX, (1,)), by(b, x, [0, 1, 0])),
        "strongMultiply reduce",
    ),
    ("a scan of one element", [UNITS], lambda b, x: b.emit(Scan(ADD, 0), x), ""),
    (
        "an exclusive scan of one stays",
        [UNITS],
        lambda b, x: b.emit(Scan(ADD, 0, exclusive=True), x),
        "scan",
    ),
    ("a scan stays", [UNITS], lambda b, x: b.emit(Scan(ADD, 1), x), "scan"),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)


def test_axes_are_counted_before_the_first_reduction() -> None:
    assert merged_axes((1,), (0, 1), 4) == (0, 1, 2)
    assert merged_axes((0, 2), (1,), 4) == (0, 2, 3)
