"""Laws of matrix products."""

from __future__ import annotations

import pytest

from nnkit.core.ops import Dot
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import Law, check, rows

LAWS = rows(
    (
        "a sum of no products",
        [TensorType((2, 0), F32), TensorType((0, 3), F32)],
        lambda b, x, y: b.emit(Dot(), x, y),
        "",
    ),
    (
        "a sum of one product stays",
        [TensorType((2, 1), F32), TensorType((1, 3), F32)],
        lambda b, x, y: b.emit(Dot(), x, y),
        "dot",
    ),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)
