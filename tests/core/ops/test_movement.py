"""Movement: samples for the laws, and misuse."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import RankError
from nnkit.core.ops import PadShape, Reverse, ShapeCast, SqueezeShape, Transpose

from .samples import ErrorSample, Sample, boolean, f64, i64

SAMPLES = [
    *(
        Sample(Transpose(), (x,), numpy=np.transpose)
        for x in (f64(), f64(3), f64(2, 3), f64(2, 3, 4))
    ),
    Sample(Transpose((1, 2, 0)), (f64(2, 3, 4),), numpy=lambda x: x.transpose(1, 2, 0)),
    Sample(Transpose((0, 2, 1)), (i64(2, 3, 4),), numpy=lambda x: x.transpose(0, 2, 1)),
    Sample(Transpose((1, 0)), (f64(0, 3),), numpy=np.transpose),
    Sample(ShapeCast((6,)), (f64(2, 3),), numpy=np.ravel),
    Sample(ShapeCast((2, 1, 3)), (f64(6),), numpy=lambda x: x.reshape(2, 1, 3)),
    Sample(ShapeCast(()), (f64(1, 1),), numpy=np.squeeze),
    Sample(ShapeCast((5, 0)), (f64(0, 3),), numpy=lambda x: x.reshape(5, 0)),
    Sample(ShapeCast((2, 2)), (boolean(4),)),
    Sample(PadShape(0), (f64(),), numpy=lambda x: x[None]),
    Sample(PadShape(1), (f64(2, 3),), numpy=lambda x: x[:, None]),
    Sample(PadShape(2), (f64(2, 3),), numpy=lambda x: x[..., None]),
    Sample(PadShape(1), (f64(0),)),
    Sample(SqueezeShape(0), (f64(1),), numpy=np.squeeze),
    Sample(SqueezeShape(1), (f64(2, 1, 3),), numpy=np.squeeze),
    Sample(SqueezeShape(1), (f64(0, 1),)),
    Sample(Reverse((0,)), (f64(4),), numpy=np.flip),
    Sample(Reverse((1,)), (f64(3, 4),), numpy=np.fliplr),
    Sample(Reverse((0, 2)), (f64(2, 1, 3),), numpy=lambda x: np.flip(x, (0, 2))),
    Sample(Reverse((0,)), (f64(0, 2),)),
    Sample(Reverse((0,)), (boolean(3),), numpy=np.flip),
]
ERRORS = [
    ErrorSample(Transpose((0, 0)), (f64(2, 3),), "(0, 0) is not a permutation of the axes of f64[2, 3]", RankError),
    ErrorSample(Transpose((1, 0)), (f64(2),), "is not a permutation", RankError),
    ErrorSample(ShapeCast((4,)), (f64(2, 3),), "cannot reshape f64[2, 3] to [4]: 6 elements do not fill 4"),
    ErrorSample(PadShape(3), (f64(2, 3),), "cannot insert an axis at 3 into f64[2, 3]", RankError),
    ErrorSample(PadShape(-1), (f64(2, 3),), "cannot insert an axis at -1", RankError),
    ErrorSample(SqueezeShape(0), (f64(2, 3),), "cannot squeeze axis 0 of f64[2, 3]: its extent is 2, not 1"),
    ErrorSample(SqueezeShape(2), (f64(2, 3),), "axis 2 is out of range for f64[2, 3]", RankError),
    ErrorSample(Reverse((2,)), (f64(2, 3),), "axis 2 is out of range for f64[2, 3]", RankError),
    ErrorSample(Reverse((1, 1)), (f64(2, 3),), "an axis is named twice in [1, 1]"),
]  # fmt: skip
