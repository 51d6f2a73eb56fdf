"""Laws of reductions and scans."""

from __future__ import annotations

import pytest

from nnkit.core.ops import Broadcast, Reduce, Scan
from nnkit.core.ops.combinator import Combinator
from nnkit.core.passes.rules.reduction import merged_axes
from nnkit.core.types import BOOL, F32, I8, TensorType
from tests.core.passes.laws import Law, check, rows

ADD, MULTIPLY, MIN, MAX, AND, OR = Combinator

X = TensorType((2, 3, 4), F32)
N = TensorType((2, 3, 4), I8)
P = TensorType((3, 2), BOOL)
UNITS = TensorType((1, 11, 1), F32)
ROW = TensorType((1, 4), F32)

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
