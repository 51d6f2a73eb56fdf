"""Triangles and diagonals: the laws of functions for all diagonals, then misuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import nnkit as nk
from nnkit import RankError, StagingError, Tensor2D, f64, i32

from .function_laws import Row, check
from .messages import M, Table, V, on

X = np.random.default_rng(1).normal(size=(3, 4))
C = X.reshape(3, 2, 2)
S = X[0]


def rows(k: int) -> dict[str, Row]:
    """All functions for diagonal number k."""
    return {
        f"tril {k}": Row(lambda x: nk.tril(x, k), lambda x: np.tril(x, k), (X,)),
        f"triu {k}": Row(lambda x: nk.triu(x, k), lambda x: np.triu(x, k), (C,)),
        f"diag {k}": Row(lambda x: nk.diag(x, k), lambda x: np.diag(x, k), (S,)),
        f"diag of a matrix {k}": Row(lambda x: nk.diag(x, k), lambda x: np.diag(x, k), (X,)),
        f"diagonal {k}": Row(
            lambda x: nk.diagonal(x, k, -1, 0), lambda x: np.diagonal(x, k, -1, 0), (C,)
        ),
        f"trace {k}": Row(lambda x: nk.trace(x, k), lambda x: np.trace(x, k), (X,)),
        f"tri {k}": Row(lambda: nk.tri(3, 4, k, f64), lambda: np.tri(3, 4, k), ()),
    }


def test_laws() -> None:
    table = {name: row for k in (-2, 0, 1, 5, -5) for name, row in rows(k).items()}
    table["masks"] = Row(lambda x: nk.triu(x > 0), lambda x: np.triu(x > 0), (X,))
    table["square"] = Row(lambda: nk.tri(2, dtype=i32), lambda: np.tri(2, dtype=np.int32), ())
    table["none"] = Row(lambda x: nk.diag(x[:0]), lambda x: np.diag(x[:0]), (S,))
    table["indices"] = Row(lambda: nk.diag_indices(3), lambda: np.diag_indices(3), ())
    check(table)


def test_what_is_left_out_has_no_derivative_even_of_nan() -> None:
    f = nk.fn(Tensor2D[f64])(lambda x: nk.tril(nk.sqrt(x)).sum())
    x = np.array([[1.0, math.nan], [0.25, -1.0]])
    slope = np.asarray(nk.gradient(of=f, wrt=0)(x))
    assert slope[0].tolist() == [0.5, 0.0]
    assert slope[1, 0] == 1.0


ROWS = Table()
row = ROWS.row
row("tril", RankError, "tril takes a matrix at least, not a Tensor1D[f32]", "nk.tril(x)")(
    on(lambda x: nk.tril(x), V)
)
row("diag", RankError, "diag takes a vector or a matrix, not a Tensor3D[f32]")(
    on(lambda x: nk.diag(x.expand_dims(0)), M)
)
row(
    "axes", RankError, "the axes of a diagonal are different, not 1 and -1", "nk.trace(x, 0, 1, -1)"
)(on(lambda x: nk.trace(x, 0, 1, -1), M))
row("diagonal", RankError, "diagonal takes a matrix at least, not a Tensor1D[f32]")(
    on(lambda x: nk.trace(x), V)
)
row("number", StagingError, "the number of a diagonal of triu is a Python int, not 0.5")(
    on(lambda x: nk.triu(x, 0.5), M)
)


@pytest.mark.parametrize("name", ROWS)
def test_messages(name: str) -> None:
    ROWS[name].check("test_diagonals.py")
