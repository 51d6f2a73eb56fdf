"""Bases, eigenvectors and singular vectors: samples for the laws of functions of matrices, and what they are."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.ops import Eigh, Orthonormalize, Svd
from nnkit.core.types import Array

from .samples import ErrorSample, Sample, f64
from .test_linear_systems import positive, regular

WIDE = [(2, 3), (3, 3), (1, 1), (2, 1, 3), (0, 2)]
ANY = [(2, 3), (3, 2), (3, 3), (1, 1), (2, 2, 3), (0, 2), (2, 0)]
SQUARE = [(3, 3), (1, 1), (2, 2, 2), (0, 0)]


def apart(*shape: int) -> Array:
    """Symmetric matrices whose eigenvalues are apart."""
    return positive(*shape) + 3 * np.diag(np.arange(shape[-1], dtype=np.float64))


def apart_values(*shape: int) -> Array:
    """Matrices whose singular values are apart."""
    x = regular(*shape)
    return x * np.arange(1, shape[-1] + 1) if 0 not in shape else x


SAMPLES = [
    *(Sample(Orthonormalize(), (f64(*a),), (regular(*a),)) for a in WIDE),
    *(Sample(Eigh(), (f64(*a),), (apart(*a),)) for a in SQUARE),
    *(Sample(Svd(), (f64(*a),), (apart_values(*a),)) for a in ANY),
    Sample(Orthonormalize(True), (f64(3, 3),), (regular(3, 3),)),
    Sample(Svd(True), (f64(3, 3),), (apart_values(3, 3),)),
]
ERRORS = [
    ErrorSample(Orthonormalize(), (f64(3, 2),), "f64[3, 2] has more rows than can be orthonormal"),
    ErrorSample(Eigh(), (f64(3, 2),), "eigh takes square matrices, not f64[3, 2]"),
]


def test_rows_are_orthonormal_and_span_the_same() -> None:
    a = regular(3, 5)
    q = Orthonormalize().evaluate(a)
    np.testing.assert_allclose(q @ q.T, np.eye(3), atol=1e-14)
    factor = a @ q.T
    np.testing.assert_allclose(factor @ q, a, atol=1e-14)
    np.testing.assert_allclose(np.triu(factor, 1), 0, atol=1e-14)


def test_eigenvectors_are_rows_below_the_eigenvalues() -> None:
    a = apart(4, 4)
    found = Eigh().evaluate(np.tril(a))
    values, vectors = found[0], found[1:].T
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose((vectors * values) @ vectors.T, a, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_parts_of_a_singular_value_decomposition_are_in_a_row(shape: tuple[int, int]) -> None:
    a, (m, n) = regular(*shape), shape
    flat = Svd().evaluate(a)
    s, u, vt = flat[:3], flat[3 : 3 + 3 * m].reshape(m, 3), flat[3 + 3 * m :].reshape(3, n)
    np.testing.assert_allclose((u * s) @ vt, a, atol=1e-14)
