"""What loops read in equal steps has a gradient without indices: rows in order, backwards, one in two, columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f64, i64

Rows: TypeAlias = Rep[Tensor2D[f64]]

COUNT = 5

ROWS: dict[str, Callable[[Rows, Any], Any]] = {
    "in order": lambda x, i: x[i],
    "from the last": lambda x, i: x[-1 - i],
    "further on": lambda x, i: x[i + 3],
    "one in two": lambda x, i: x[2 * i],
    "one in two from the last": lambda x, i: x[9 - 2 * i],
    "columns": lambda x, i: x[:, i].sum() * x[i],
    "two of them": lambda x, i: x[i] * nk.sin(x[i + 1]),
}


@pytest.mark.parametrize("read", ROWS)
@pytest.mark.parametrize("is_carried", [False, True])
def test_rows_of_a_loop(read: str, is_carried: bool) -> None:
    def total(x: Rows) -> Rep[f64]:
        def step(i: Any, sum: Any) -> Any:
            row = nk.tanh(ROWS[read](x, i))
            return nk.sin(sum) * row + row if is_carried else sum + row

        return nk.square(nk.fori(0, COUNT, step, nk.zeros((7,), f64))).sum()

    f = nk.staged(total)
    x = Tensor2D(np.random.default_rng(3).normal(size=(10, 7)), f64)
    nk.check_gradients(f, x, order=1)
    text = nk.gradient(of=f, wrt=0).ir(x, stage="optimized")
    assert "scatterAdd" not in text and "iota" not in text


def test_rows_of_a_map_and_a_scan() -> None:
    @nk.staged
    def mapped(x: Rows) -> Rep[f64]:
        return (x.map(lambda row: nk.cumsum(nk.exp(row))) * 0.5).sum()

    @nk.staged
    def scanned(x: Rows) -> Rep[f64]:
        _, all = x.scan(x[0] * 0.0, lambda h, row: (nk.tanh(h + row), h * row))
        return all.tensor().sum()

    x = Tensor2D(np.random.default_rng(4).normal(size=(6, 4)), f64)
    for f in (mapped, scanned):
        nk.check_gradients(f, x, order=1)
        assert "scatterAdd" not in nk.gradient(of=f, wrt=0).ir(x, stage="optimized")


def test_rows_at_indices_that_are_read_are_scattered() -> None:
    @nk.staged
    def total(x: Rows, at: Rep[Tensor1D[i64]]) -> Rep[f64]:
        step = lambda i, sum: sum + nk.square(x[at[i]])  # noqa: E731
        return nk.fori(0, COUNT, step, nk.zeros((7,), f64)).sum()

    x = Tensor2D(np.random.default_rng(5).normal(size=(10, 7)), f64)
    at = Tensor1D(np.array([3, 3, 0, 9, 3]), i64)
    nk.check_gradients(total, x, at, order=1)
    assert "scatterAdd" in nk.gradient(of=total, wrt=0).ir(x, at, stage="optimized")
