"""Laws for programs of which no derivative will be taken."""

from __future__ import annotations

import pytest

from nnkit.core.ops import Dot
from nnkit.core.ops.stopping import StopGradient
from nnkit.core.passes import Canonicalize
from nnkit.core.types import F32, I8, TensorType, Type
from tests.core.passes.laws import Law, check, rows


def matrices(u: tuple[int, ...], v: tuple[int, ...]) -> list[Type]:
    """Types of two operands."""
    return [TensorType(u, F32), TensorType(v, F32)]


LAWS = rows(
    ("u · vᵀ", matrices((11, 1), (1, 3)), lambda b, x, y: b.emit(Dot(), x, y), "multiply add"),
    (
        "a row",
        matrices((1,), (1, 3)),
        lambda b, x, y: b.emit(Dot(), x, y),
        "multiply add shapeCast",
    ),
    (
        "a column",
        matrices((11, 1), (1,)),
        lambda b, x, y: b.emit(Dot(), x, y),
        "multiply add shapeCast",
    ),
    (
        "two numbers",
        matrices((1,), (1,)),
        lambda b, x, y: b.emit(Dot(), x, y),
        "multiply add shapeCast",
    ),
    ("a batch", matrices((2, 3, 1), (1, 3)), lambda b, x, y: b.emit(Dot(), x, y), "multiply add"),
    (
        "of integers",
        [TensorType((9, 1), I8), TensorType((1, 9), I8)],
        lambda b, x, y: b.emit(Dot(), x, y),
        "multiply",
    ),
    ("a sum of two stays", matrices((11, 2), (2, 3)), lambda b, x, y: b.emit(Dot(), x, y), "dot"),
    ("stopGradient", [TensorType((2,), F32)], lambda b, x: b.emit(StopGradient(), x), ""),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law, Canonicalize(final=True))


def test_the_stop_stays_before() -> None:
    x = TensorType((2,), F32)
    check(Law("", [x], lambda b, x: b.emit(StopGradient(), x), "stopGradient"), Canonicalize())
