"""Slice, pad and concatenate: samples for the laws, and what derivatives are made of."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import Concatenate, Multiply, Pad, Slice

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f32, f64, i64

SAMPLES = [
    Sample(Slice((1,), (5,)), (f64(7),), numpy=lambda x: x[1:5]),
    Sample(Slice((1,), (3,)), (f64(4, 3),), numpy=lambda x: x[1:3]),
    Sample(Slice((1, 0), (5, 20), (1, 2)), (f64(10, 20),), numpy=lambda x: x[1:5, 0:20:2]),
    Sample(Slice((1, 2), (8, 9), (3, 4)), (f64(9, 9, 2),), numpy=lambda x: x[1:8:3, 2:9:4]),
    Sample(Slice((0, 0), (2, 3), (2, 1)), (f64(2, 3),), numpy=lambda x: x[0:2:2]),
    Sample(Slice((2,), (2,)), (f64(4),), numpy=lambda x: x[2:2]),
    Sample(Slice((0,), (0,), (3,)), (f64(0, 2),), numpy=lambda x: x),
    Sample(Slice((), ()), (f64(),)),
    Sample(Slice((1,), (4,), (2,)), (boolean(4),), numpy=lambda x: x[1:4:2]),
    Sample(Pad((1,), (2,)), (f64(3), f64()), numpy=lambda x, v: np.pad(x, (1, 2), constant_values=v)),
    Sample(Pad((1, 0), (0, 2)), (f64(2, 3), f64())),
    Sample(Pad((1,), (2,), (2,)), (f64(3), f64())),
    Sample(Pad((0, 1), (0, 0), (1, 3)), (f64(2, 3), f64())),
    Sample(Pad((2,), (1,), (5,)), (f64(0), f64())),
    Sample(Pad((2,), (1,)), (f64(0), f64())),
    Sample(Pad((0, 0), (0, 0)), (f64(2, 3), f64())),
    Sample(Pad((), ()), (f64(), f64())),
    Sample(Pad((1,), (1,)), (i64(2), i64())),
    Sample(Pad((1,), (1,), (1,)), (boolean(3), boolean())),
    Sample(Concatenate(0), (f64(3),), numpy=lambda *xs: np.concatenate(xs)),
    Sample(Concatenate(0), (f64(2), f64(3)), numpy=lambda *xs: np.concatenate(xs)),
    Sample(Concatenate(1), (f64(2, 1), f64(2, 3), f64(2, 2)), numpy=lambda *xs: np.concatenate(xs, 1)),
    Sample(Concatenate(0), (f64(0, 2), f64(3, 2)), numpy=lambda *xs: np.concatenate(xs)),
    Sample(Concatenate(0), (f64(0), f64(0)), numpy=lambda *xs: np.concatenate(xs)),
    Sample(Concatenate(1), (f64(0, 2), f64(0, 3)), numpy=lambda *xs: np.concatenate(xs, 1)),
    Sample(Concatenate(0), tuple(f64(n) for n in range(1, 12)), numpy=lambda *xs: np.concatenate(xs)),
    Sample(Concatenate(0), (boolean(2), boolean(1)), numpy=lambda *xs: np.concatenate(xs)),
]  # fmt: skip
ERRORS = [
    ErrorSample(Slice((1,), (8,)), (f64(7),), "slice 1:8 of axis 0 is out of range for f64[7]"),
    ErrorSample(Slice((-1,), (2,)), (f64(7),), "slice -1:2 of axis 0 is out of range for f64[7]"),
    ErrorSample(Slice((3,), (2,)), (f64(7),), "slice 3:2 of axis 0 is out of range for f64[7]"),
    ErrorSample(Slice((1,), (2,), (0,)), (f64(7),), "the stride of axis 0 is 0, not at least 1"),
    ErrorSample(Slice((1, 1), (2, 2)), (f64(7),), "do not fit f64[7]", RankError),
    ErrorSample(Slice((1,), (2, 2)), (f64(7, 7),), "1 starts, 2 stops and 0 strides", RankError),
    ErrorSample(Pad((1,), (1,)), (f64(2, 3), f64()), "do not fit f64[2, 3]", RankError),
    ErrorSample(Pad((1,), (-1,)), (f64(2), f64()), "an extent is negative in low [1], high [-1]"),
    ErrorSample(Pad((1,), (1,)), (f64(2), f64(1)), "the value must be a scalar, not f64[1]", RankError),
    ErrorSample(Pad((1,), (1,)), (f64(2), f32()), "element types f64 and f32 differ", DTypeError),
    ErrorSample(Concatenate(0), (), "concatenate needs at least one operand"),
    ErrorSample(Concatenate(0), (f64(2, 3), f64(2, 4)), "cannot concatenate f64[2, 3] and f64[2, 4] along axis 0"),
    ErrorSample(Concatenate(0), (f64(2), f64(2, 1)), "concatenate f64[2] and f64[2, 1]: ranks differ", RankError),
    ErrorSample(Concatenate(1), (f64(2), f64(2)), "axis 1 is out of range for f64[2]", RankError),
    ErrorSample(Concatenate(0), (f64(2), f32(2)), "element types f64 and f32 differ", DTypeError),
]  # fmt: skip


def test_the_transpose_of_a_strided_slice_is_a_pad_and_no_product() -> None:
    program = Tangents(Sample(Slice((1, 0), (8, 5), (3, 1)), (f64(10, 6),)))
    [ct] = program.reverse()
    assert ct is not None
    assert ct.op == Pad((1, 0), (2, 1), (2, 0))
    assert not any(isinstance(i.op, Multiply) for i in program.b.block.instructions)


def test_the_transpose_of_a_pad_takes_the_window_back() -> None:
    program = Tangents(Sample(Pad((1,), (2,), (2,)), (f64(3), f64())))
    x_ct, value_ct = program.values(program.reverse(), program.active)
    ct = program.given[program.ct]
    np.testing.assert_array_equal(x_ct, ct[[1, 4, 7]])
    assert value_ct == np.delete(ct, [1, 4, 7]).sum()
