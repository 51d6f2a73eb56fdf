"""A program compiled without any one of what makes programs fast computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, staged
from nnkit.core.schedule.switches import SWITCHES, VARIABLE
from nnkit.core.types import Array

Matrix = Rep[Tensor2D[f64]]
ROWS, INPUTS, HIDDEN, CLASSES = 131, 300, 203, 37


@staged
def loss(w: Matrix, b: Rep[Tensor1D[f64]], v: Matrix, x: Matrix, y: Matrix) -> Rep[Scalar[f64]]:
    """Products with what follows them, rows that are normalized, and something in place."""
    hidden = nk.tanh(x @ w + b)
    hidden = (hidden - hidden.mean(axis=1, keepdims=True)) * nk.exp(-hidden * hidden)
    scores = nk.log_softmax(hidden @ v, axis=1)
    return -(scores * y).mean() + 0.01 * (hidden.T @ hidden).sum()


def computed(arrays: list[Array]) -> list[Array]:
    """The value and all gradients, of a program that is compiled anew."""

    def both(
        w: Matrix, b: Rep[Tensor1D[f64]], v: Matrix, x: Matrix, y: Matrix
    ) -> Rep[tuple[Scalar[f64], Tensor2D[f64], Tensor1D[f64], Tensor2D[f64]]]:
        value, slope = nk.value_and_gradient(of=loss, wrt=(0, 1, 2))(w, b, v, x, y).unpack()
        dw, db, dv = slope.unpack()
        return nk.tup(value, w - 0.1 * dw, b - 0.1 * db, v - 0.1 * dv)

    return [np.asarray(each) for each in staged(both)(*arrays)]


@pytest.fixture(scope="module")
def arrays() -> list[Array]:
    rng = np.random.default_rng(3)
    shapes = (INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (ROWS, INPUTS)
    found: list[Array] = [rng.normal(size=shape) / 10 for shape in shapes]
    return [*found, np.eye(CLASSES)[rng.integers(0, CLASSES, ROWS)]]


@pytest.fixture(scope="module")
def wanted(arrays: list[Array]) -> list[Array]:
    return computed(arrays)


@pytest.mark.parametrize("name", [*SWITCHES, ",".join(SWITCHES)])
def test_results_stay_right(
    name: str, arrays: list[Array], wanted: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, name)
    for found, each in zip(computed(arrays), wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "shape", "count"), [("collapse", (6, 10), 3), ("long-rows", (512, 1 << 12), 60)]
)
def test_chains_of_functions_stay_right(
    name: str, shape: tuple[int, int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(4).normal(size=shape)

    def chain(x: Matrix) -> Matrix:
        y = x
        for _ in range(count):
            y = nk.tanh(y) * nk.sin(x) + nk.sigmoid(y + x)
        return y

    with_all = staged(chain)
    wanted, code = np.asarray(with_all(x)), with_all.asm(x)
    monkeypatch.setenv(VARIABLE, name)
    without = staged(chain)
    np.testing.assert_array_equal(np.asarray(without(x)), wanted)
    assert without.asm(x) != code


def test_what_stays_the_same_in_a_loop_is_computed_in_it_without_hoist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    w, h = rng.normal(size=(40, 40)), rng.normal(size=(8, 40))

    def rounds(w: Matrix, h: Matrix) -> Matrix:
        return nk.fori(0, 9, lambda _, h: nk.tanh(h @ nk.sin(w)), h)

    with_all = staged(rounds)
    wanted, code = np.asarray(with_all(w, h)), with_all.asm(w, h)
    monkeypatch.setenv(VARIABLE, "hoist")
    without = staged(rounds)
    np.testing.assert_allclose(np.asarray(without(w, h)), wanted, rtol=1e-12)
    assert without.asm(w, h) != code
