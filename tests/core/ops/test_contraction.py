"""The matrix product: samples for the laws, its messages, and how few instructions its transpose has."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ir import Op
from nnkit.core.ops import Dot, Multiply, Reduce, ShapeCast, Transpose
from nnkit.core.types import TensorType

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f32, f64, i64

SHAPES = [
    (f64(3), f64(3)),
    (f64(2, 3), f64(3)),
    (f64(3), f64(3, 4)),
    (f64(2, 3), f64(3, 4)),
    (f64(1, 1), f64(1, 1)),
    (f64(5, 2, 3), f64(5, 3, 4)),
    (f64(5, 2, 3), f64(3, 4)),
    (f64(2, 3), f64(5, 3, 4)),
    (f64(5, 1, 2, 3), f64(6, 3, 4)),
    (f64(1, 2, 3), f64(5, 3, 4)),
    (f64(5, 2, 3), f64(3)),
    (f64(3), f64(5, 3, 4)),
    (f64(2, 0), f64(0, 4)),
    (f64(0), f64(0)),
    (f64(0, 3), f64(3, 4)),
    (i64(2, 3), i64(3, 4)),
]

SAMPLES = [Sample(Dot(), types, numpy=np.matmul) for types in SHAPES]
ERRORS = [
    ErrorSample(
        Dot(),
        (f32(1, 784), f32(785, 10)),
        "cannot multiply f32[1, 784] by f32[785, 10]: inner dimensions 784 and 785 differ",
    ),
    ErrorSample(
        Dot(), (f64(3), f64(4)), "cannot multiply f64[3] by f64[4]: inner dimensions 3 and 4"
    ),
    ErrorSample(
        Dot(), (f64(2, 2, 3), f64(4, 3, 2)), "leading axes [2] and [4] cannot be broadcast"
    ),
    ErrorSample(
        Dot(), (f64(), f64(3)), "cannot multiply f64[] by f64[3]: a scalar has no axes", RankError
    ),
    ErrorSample(Dot(), (f64(2, 3), f32(3, 2)), "element types f64 and f32 differ", DTypeError),
    ErrorSample(Dot(), (boolean(2, 3), boolean(3, 2)), "dot takes float or integer", DTypeError),
]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((f64(2, 3), f64(3, 4)), [Transpose, Dot, Transpose, Dot]),
        ((f64(3), f64(3)), [Multiply, Multiply]),
        ((f64(2, 3), f64(3)), [ShapeCast, Multiply, Dot]),
        ((f64(3), f64(3, 4)), [Dot, ShapeCast, ShapeCast, Multiply]),
        ((f64(5, 2, 3), f64(3, 4)), [Transpose, Dot, ShapeCast, ShapeCast, Transpose, Dot]),
        ((f64(5, 2, 3), f64(5, 3, 4)), [Transpose, Dot, Transpose, Dot]),
        ((f64(2, 3), f64(5, 3, 4)), [Transpose, Dot, Reduce, Transpose, Dot]),
    ],
    ids=str,
)
def test_instructions_of_the_transpose(
    types: tuple[TensorType, ...], expected: list[type[Op]]
) -> None:
    program = Tangents(Sample(Dot(), types))
    before = len(program.b.block.instructions)
    program.reverse()
    assert [type(i.op) for i in program.b.block.instructions[before:]] == expected
