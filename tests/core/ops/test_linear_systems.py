"""Systems of linear equations and factors: samples for the laws of functions of matrices, and their messages."""

from __future__ import annotations

import itertools

import numpy as np

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import Cholesky, LogDeterminant, Solve, TriangularSolve
from nnkit.core.types import Array

from .samples import ErrorSample, Sample, f32, f64, i64

_RANDOM = np.random.default_rng(12)


def regular(*shape: int) -> Array:
    """Matrices whose singular values are around 2: well away from singular ones."""
    *_, rows, columns = shape
    return 0.4 * _RANDOM.normal(size=shape) + 2 * np.eye(rows, columns)


def positive(*shape: int) -> Array:
    """Symmetric positive definite matrices."""
    x = regular(*shape)
    return x @ x.swapaxes(-1, -2)


def rows(*shape: int) -> Array:
    return _RANDOM.normal(size=shape)


SIDES = [
    ((3, 3), (2, 3)),
    ((1, 1), (1, 1)),
    ((2, 3, 3), (2, 4, 3)),
    ((0, 0), (2, 0)),
    ((2, 2), (0, 2)),
]
SQUARE = [(3, 3), (1, 1), (2, 2, 2), (0, 0), (0, 2, 2)]
SOLVES = [
    Solve(),
    Solve(True),
    *(TriangularSolve(*f) for f in itertools.product((False, True), repeat=3)),
]
SAMPLES = [
    *(
        Sample(op, (f64(*a), f64(*b)), (regular(*a), rows(*b)))
        for op in SOLVES
        for a, b in (SIDES if op == Solve() else SIDES[::2])
    ),
    *(Sample(Cholesky(), (f64(*a),), (positive(*a),), numpy=np.linalg.cholesky) for a in SQUARE),
    *(Sample(LogDeterminant(), (f64(*a),), (regular(*a),)) for a in SQUARE),
    Sample(LogDeterminant(), (f64(3, 3),), (-regular(3, 3)[::-1],)),
]
ERRORS = [
    ErrorSample(Solve(), (f64(2, 3), f64(1, 3)), "solve takes square matrices, not f64[2, 3]"),
    ErrorSample(Solve(), (f64(3, 3), f64(1, 2)), "sides of 2 elements do not fit f64[3, 3]"),
    ErrorSample(Solve(), (f64(2, 3, 3), f64(3, 3)), "leading axes [2] and [] differ"),
    ErrorSample(Solve(), (f64(3, 3), f64(3)), "solve takes matrices, not f64[3]", RankError),
    ErrorSample(Solve(), (f64(3, 3), f32(1, 3)), "element types f64 and f32 differ", DTypeError),
    ErrorSample(TriangularSolve(), (f64(3, 3), f64(1, 2)), "sides of 2 elements do not fit"),
    ErrorSample(Cholesky(), (i64(3, 3),), "cholesky takes matrices of f32 or f64, not i64[3, 3]", DTypeError),
    ErrorSample(LogDeterminant(), (f64(3, 2),), "takes square matrices, not f64[3, 2]"),
]  # fmt: skip
