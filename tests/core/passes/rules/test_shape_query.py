"""Laws of questions about shapes."""

from __future__ import annotations

import pytest

from nnkit.core.ops import Add, Rank, ShapeOf, UnitCount
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import Law, check, rows

X = TensorType((2, 3), F32)
EMPTY = TensorType((0, 3), F32)

LAWS = rows(
    ("rank", [X], lambda b, x: b.emit(Rank(), x), ""),
    ("shape", [X], lambda b, x: b.emit(ShapeOf(), x), ""),
    ("unitCount", [EMPTY], lambda b, x: b.emit(UnitCount(), x), ""),
    ("of what is computed", [X], lambda b, x: b.emit(Rank(), b.emit(Add(), x, x)), ""),
)


@pytest.mark.parametrize("law", LAWS)
def test_laws(law: Law) -> None:
    check(law)
