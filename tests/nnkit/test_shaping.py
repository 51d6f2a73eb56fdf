"""Rearrangements and makers against NumPy: pieces, repetitions, axes, grids."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit import f32, f64, i32

from .function_laws import Row, check

RANDOM: Final = np.random.default_rng(5)
X: Final = RANDOM.normal(size=(2, 3))
T: Final = RANDOM.normal(size=(2, 3, 4))
V: Final = RANDOM.normal(size=6)
F: Final = RANDOM.normal(size=(2, 1, 3, 2))
E: Final = np.zeros((0, 3))


def of(function: Any, *arguments: Any, **options: Any) -> Row:
    """The same call of a function of ours and of NumPy's, which have one name."""
    ours, theirs = (
        function if isinstance(function, tuple) else (function, getattr(np, function.__name__))
    )
    given, rest = arguments[0], arguments[1:]
    return Row(
        lambda x: ours(x, *rest, **options),
        lambda x: theirs(x, *rest, **options),
        (given,),
        order=1,
    )


PIECES_AND_REPETITIONS: dict[str, Row] = {
    "split": of((nk.split, np.split), X, 3, axis=1),
    "split -1": of((nk.split, np.split), T, 2, axis=-1),
    "at": of((nk.split, np.split), V, [1, 4]),
    "at far": of((nk.split, np.split), V, (2, 2, 9, -1)),
    "array_split": of(nk.array_split, V, 4),
    "array_split at": of(nk.array_split, T, [1], axis=2),
    "more pieces than elements": of(nk.array_split, X, 3),
    "repeat": of(nk.repeat, X, 2),
    "repeat 1": of(nk.repeat, T, 3, axis=1),
    "repeat -1": of(nk.repeat, X, 2, axis=-1),
    "repeat each": of(nk.repeat, X, [2, 0, 1], axis=1),
    "repeat none": of(nk.repeat, V, 0),
    "tile": of(nk.tile, X, 2),
    "tile 2 3": of(nk.tile, X, (2, 3)),
    "tile up": of(nk.tile, V, (2, 1, 2)),
    "tile less": of(nk.tile, T, (2, 1)),
    "repeat to a total": Row(
        lambda x, n: nk.repeat(x, n, axis=1, total_repeat_length=7),
        lambda x, n: np.repeat(x, [*(n + np.array([0, 0, 7 - n.sum()]))], axis=1),
        (X, np.array([2, 0, 3])),
        batched=(0,),
        order=1,
    ),
    "repeat up to a total": Row(
        lambda x, n: nk.repeat(x, n, total_repeat_length=7),
        lambda x, n: np.repeat(x, n)[:7],
        (X, np.int8(2)),
        batched=(0,),
        order=1,
    ),
    "repeat a known number to a total": Row(
        lambda x: x.repeat(2, total_repeat_length=3),
        lambda x: np.repeat(x, 2)[:3],
        (X,),
        order=1,
    ),
    "roll by data": Row(nk.roll, np.roll, (X, np.array(-8)), batched=(0,), order=1),
    "roll both by data": Row(
        lambda x, n, m: nk.roll(x, (n, m), axis=(0, -1)),
        lambda x, n, m: np.roll(x, (n, m), axis=(0, -1)),
        (T, np.int8(-7), np.int32(13)),
        batched=(0,),
        order=1,
    ),
    "roll nothing by data": Row(nk.roll, np.roll, (E, np.array(3))),
    "roll": of(nk.roll, X, 2),
    "roll -1": of(nk.roll, T, -1, axis=1),
    "roll far": of(nk.roll, V, 13),
    "roll both": of(nk.roll, X, (1, -1), axis=(0, 1)),
    "roll all": of(nk.roll, X, 1, axis=(0, 1)),
    "roll none": of(nk.roll, E, 1, axis=0),
    "integers": of(nk.roll, np.arange(5), 2),
    "array_split of none": of(nk.array_split, E, 2),
    "repeat of none": of(nk.repeat, E, 2, axis=0),
    "tile of none": of(nk.tile, E, (2, 2)),
    "repeat a scalar": of(nk.repeat, V[0], 3),
    "tile a scalar": of(nk.tile, V[0], (2, 3)),
    "roll of rank 4": of(nk.roll, F, (1, 2), axis=(-1, 0)),
    "repeat of rank 4": of(nk.repeat, F, 2, axis=2),
    "tile of rank 4": of(nk.tile, F, (2, 1, 1, 2)),
    "split of rank 4": of((nk.split, np.split), F, 2, axis=0),
}


def test_pieces_and_repetitions() -> None:
    check(PIECES_AND_REPETITIONS)


def test_axes() -> None:
    v = Row(lambda x: x[None], lambda x: x[None], (V,))
    check(
        {
            "expand_dims": of(nk.expand_dims, X, 1),
            "expand_dims -1": of(nk.expand_dims, X, -1),
            "expand_dims both": of(nk.expand_dims, X, (0, -1)),
            "squeeze": Row(lambda x: nk.squeeze(x[:1], 0), lambda x: x[0], (X,)),
            "squeeze both": Row(lambda x: nk.squeeze(x[:1, :1], (0, -1)), lambda x: x[0, 0], (X,)),
            "ravel": of(nk.ravel, T),
            "x.ravel()": Row(lambda x: x.ravel(), np.ravel, (X,)),
            "swapaxes": of(nk.swapaxes, T, 0, -1),
            "moveaxis": of(nk.moveaxis, T, 0, -1),
            "moveaxis back": of(nk.moveaxis, T, -1, 0),
            "moveaxis two": of(nk.moveaxis, T, (0, 1), (-1, 0)),
            "moveaxis of rank 4": of(nk.moveaxis, F, (0, 2), (3, 0)),
            "swapaxes of rank 4": of(nk.swapaxes, F, 1, 3),
            "ravel a scalar": of(nk.ravel, V[0]),
            "None": v,
            "None of a scalar": Row(
                lambda x: x[None, ..., None], lambda x: x[None, ..., None], (V[0],)
            ),
            ":, None": Row(lambda x: x[:, None], lambda x: x[:, None], (X,)),
            "..., None": Row(lambda x: x[..., None], lambda x: x[..., None], (X,)),
            "None, 1": Row(lambda x: x[None, 1], lambda x: x[None, 1], (X,)),
            "None, slice, None": Row(
                lambda x: x[None, 1:, None, 2], lambda x: x[None, 1:, None, 2], (T,)
            ),
            "None, ..., None": Row(
                lambda x: x[None, ..., None], lambda x: x[None, ..., None], (V,)
            ),
            "staged": Row(
                lambda x, i: x[i, None], lambda x, i: x[i, None], (X, np.array(1)), batched=(0,)
            ),
            "outer": Row(lambda x: x[:, None] * x[None, :], lambda x: x[:, None] * x[None], (V,)),
        }
    )


def test_makers() -> None:
    def eye(*arguments: Any, dtype: Any = f64) -> Row:
        return Row(
            lambda x: nk.eye(*arguments, dtype=dtype) * x.sum().cast(dtype),
            lambda x: np.eye(*arguments, dtype=dtype.core.numpy) * x.sum().astype(dtype.core.numpy),
            (X,),
            order=1,
        )

    a, b, c = V[:3], V[3:5], V[5:]
    check(
        {
            "eye": eye(3),
            "eye 2 4": eye(2, 4),
            "eye 1": eye(3, 4, 1),
            "eye -2": eye(3, 3, -2, dtype=f32),
            "eye of integers": eye(2, dtype=i32),
            "eye of none": eye(0),
            "eye of an extent": Row(lambda x: nk.eye(x.shape[1], dtype=f64) @ x.T, lambda x: x.T, (X,)),
            "linspace": Row(lambda a, b: nk.linspace(a, b, 5), lambda a, b: np.linspace(a, b, 5), (V[0], V[1])),
            "without end": Row(
                lambda a: nk.linspace(a, 2.0, 4, endpoint=False),
                lambda a: np.linspace(a, 2, 4, endpoint=False), (V[0],),
            ),
            "linspace of one": Row(lambda a: nk.linspace(a, 2.0, 1), lambda a: np.linspace(a, 2, 1), (V[0],)),
            "linspace of none": Row(lambda a: nk.linspace(a, 2.0, 0), lambda a: np.linspace(a, 2, 0), (V[0],)),
            "linspace of numbers": Row(
                lambda x: x * nk.linspace(-1.0, 1.0, 3, dtype=f64), lambda x: x * np.linspace(-1, 1, 3), (X,)
            ),
            "linspace by an extent": Row(
                lambda x: x * nk.linspace(0.0, 1.0, x.shape[1], dtype=f64),
                lambda x: x * np.linspace(0, 1, 3), (X,),
            ),
            "meshgrid": Row(nk.meshgrid, lambda *xs: list(np.meshgrid(*xs)), (a, b)),
            "meshgrid ij": Row(
                lambda *xs: nk.meshgrid(*xs, indexing="ij"),
                lambda *xs: list(np.meshgrid(*xs, indexing="ij")), (a, b, c),
            ),
            "meshgrid of one": Row(nk.meshgrid, lambda *xs: list(np.meshgrid(*xs)), (a,)),
        }
    )  # fmt: skip


MISUSE: Final = {
    "unequal pieces": (lambda x: nk.split(x, 2, axis=1), r"cannot split f64\[2, 3\] into 2 pieces"),
    "no pieces": (lambda x: nk.split(x, 0), "split makes at least 1 piece"),
    "pieces of floats": (lambda x: nk.array_split(x, 1.5), "array_split takes an int"),
    "axis": (lambda x: nk.array_split(x, 2, axis=2), "axis 2 does not exist"),
    "repeats": (lambda x: nk.repeat(x, [1, 2], axis=1), "takes 3 numbers along axis 1, not 2"),
    "negative repeats": (lambda x: nk.repeat(x, -1), "at least 0"),
    "staged repeats": (lambda x: nk.repeat(x, x.sum().cast(i32)), "total_repeat_length=n"),
    "repeats of floats": (lambda x: nk.repeat(x, x[0], total_repeat_length=4), "repeats are integers"),
    "repeats of another number": (lambda x: nk.repeat(x, np.array([1, 2]), total_repeat_length=4), "broadcast"),
    "shift of floats": (lambda x: nk.roll(x, x.sum()), "roll takes integers, one for each axis"),
    "a vector of shifts": (lambda x: nk.roll(x, x[0].cast(i32), axis=0), "roll takes integers"),
    "shift of a float": (lambda x: nk.roll(x, 1.5), "roll takes integers, not 1.5"),
    "shifts": (lambda x: nk.roll(x, (1, 2, 3), axis=(0, 1)), "roll takes a number for each axis"),
    "squeeze": (lambda x: nk.squeeze(x, 0), "extent"),
    "expand twice": (lambda x: nk.expand_dims(x, (0, 0)), "name an axis twice"),
    "swapaxes": (lambda x: nk.swapaxes(x, 0, 2), "axis 2 does not exist"),
    "moveaxis": (lambda x: nk.moveaxis(x, (0, 1), 0), "as many places as axes"),
    "eye of floats": (lambda x: nk.eye(2.5, dtype=f32), "takes Python ints"),
    "linspace of integers": (lambda x: nk.linspace(0, 1, 3, dtype=i32), "linspace makes floats"),
    "linspace of rows": (lambda x: nk.linspace(x, 1.0), "linspace takes scalars"),
    "meshgrid of matrices": (lambda x: nk.meshgrid(x), "meshgrid takes vectors"),
    "indexing": (lambda x: nk.meshgrid(x[0], indexing="ji"), "indexing is 'xy' or 'ij'"),
    "rank 6": (lambda x: x[None, None, None, None], "at most 5"),
    "None and indices": (lambda x: x[nk.const(np.array([0, 1])), None], "None and a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name: str) -> None:
    call, message = MISUSE[name]
    with pytest.raises(nk.NNKitError, match=message):
        nk.staged(lambda x: call(x))(X)


def test_squeeze_without_axes_asks_for_the_shapes() -> None:
    squeezed = nk.staged(lambda x: nk.squeeze(x[:, :1] * 2.0))
    assert [np.asarray(squeezed(np.ones(shape))).shape for shape in ((3, 2), (1, 4), (0, 1))] == [
        (3,),
        (),
        (0,),
    ]
    slope = nk.gradient(of=nk.staged(lambda x: x.squeeze().sum()), wrt=0)
    np.testing.assert_array_equal(np.asarray(slope(np.ones((1, 3)))), np.ones((1, 3)))
