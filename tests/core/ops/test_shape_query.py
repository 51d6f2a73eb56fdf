"""Questions about shapes: samples for the laws, and that the answer is a constant."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.ir import Builder
from nnkit.core.ops import Literal, Rank, ShapeOf, ShapeQuery, UnitCount
from nnkit.core.types import TensorType

from .samples import ErrorSample, Sample, boolean, f64, i32

SAMPLES = [
    Sample(op, (type,), numpy=rule)
    for op, rule in (
        (Rank(), lambda x: np.int64(x.ndim)),
        (ShapeOf(), lambda x: np.array(x.shape, np.int64)),
        (UnitCount(), lambda x: np.int64(x.size)),
    )
    for type in (f64(), f64(2, 3), i32(4, 0, 1), boolean(3))
]
ERRORS: list[ErrorSample] = []


@pytest.mark.parametrize("op", [Rank(), ShapeOf(), UnitCount()], ids=str)
@pytest.mark.parametrize("type", [f64(), f64(2, 3), f64(5, 0)], ids=str)
def test_the_answer_is_a_literal(op: ShapeQuery, type: TensorType) -> None:
    b = Builder()
    answer = op.nest(b, b.argument(type))
    assert isinstance(answer.op, Literal)
    expected = op.evaluate(np.zeros(type.shape))
    np.testing.assert_array_equal(answer.op.evaluate(), expected)
    assert answer.type == op.infer(type)
