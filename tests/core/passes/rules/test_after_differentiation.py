"""Laws for programs of which no derivative will be taken."""

from __future__ import annotations

import pytest

from nnkit.core.ops.stop_gradient import StopGradient
from nnkit.core.passes import Canonicalize
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import Law, check, rows

LAWS = rows(
    ("stopGradient", [TensorType((2,), F32)], lambda b, x: b.emit(StopGradient(), x), ""),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law, Canonicalize(final=True))


def test_the_stop_stays_before() -> None:
    x = TensorType((2,), F32)
    check(Law("", [x], lambda b, x: b.emit(StopGradient(), x), "stopGradient"), Canonicalize())
