"""`x.at[key].set(value)` and its like: NumPy's assignment as a value, with derivatives in both modes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, boolean, f32, f64, i64
from nnkit.core.types import Array

from .modes import derivatives

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]
Cube = Tensor3D[f64]
Count = Scalar[i64]
RANDOM = np.random.default_rng(7)
CUBE = RANDOM.normal(size=(4, 3, 5))
KEYS: list[Any] = [
    0, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 3), ..., (1, 2), (1, 2, -4),
    (..., 3), (slice(1, 4), 0), (slice(None), slice(None), slice(4, 0, -2)), (2, ..., slice(1, 3)),
    [0, 0, 2], [[0, 1], [3, 0]], ([0, 0, 3], [1, 1, 2]), (slice(1, 3), [2, 2, 0]), (1, [2, 0], [3, 3]),
    (slice(None), 1, [4, 4, 0]), ([0, 3, 3], [2, 2, 2], slice(1, None, 2)), ([1, 1], 2),
]  # fmt: skip
UPDATES: dict[str, Callable[[Array, Any, Any], None]] = {
    "set": lambda x, key, value: x.__setitem__(key, value),
    "add": np.add.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


def _as_numpy(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_as_numpy, key))
    return np.array(key) if isinstance(key, list) else key


def _updated(x: Array, update: str, key: Any, value: Any) -> Array:
    """What NumPy says."""
    result = x.copy()
    UPDATES[update](result, _as_numpy(key), value)
    return result


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_as_numpy_assigns(key: Any, update: str) -> None:
    value = RANDOM.normal(size=CUBE[_as_numpy(key)].shape)

    def function(x: Rep[Cube], v: Rep[Any]) -> Rep[Cube]:
        return getattr(x.at[key], update)(v)

    made = nk.fn(Cube)(lambda x: function(x, nk.const(value)))
    expected = _updated(CUBE, update, key, value)
    np.testing.assert_allclose(made(CUBE).numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    "key",
    [(1, 2, 3), (-1, 2), (0, slice(None), -2), (slice(1, 3), 1), (2, slice(3, 0, -1), 1)],
    ids=str,
)
def test_staged_indices(key: tuple[Any, ...], update: str) -> None:
    value = RANDOM.normal(size=CUBE[key].shape)
    numbers = [entry for entry in key if isinstance(entry, int)]

    def function(x: Rep[Cube], at: Rep[Tensor1D[i64]]) -> Rep[Cube]:
        count = iter(range(len(numbers)))
        staged = tuple(at[next(count)] if isinstance(entry, int) else entry for entry in key)
        return getattr(x.at[staged], update)(nk.const(value))

    made = nk.fn(Cube, Tensor1D[i64])(function)
    expected = _updated(CUBE, update, key, value)
    np.testing.assert_allclose(made(CUBE, np.array(numbers)).numpy(), expected, rtol=1e-14)


def _moved(update: str, key: Any) -> Callable[[Rep[Vector]], Rep[Vector]]:
    """A function of 9 numbers: the first six as a matrix whose part is updated with the others, curved at the end."""

    def function(x: Rep[Vector]) -> Rep[Vector]:
        y = getattr((x[:6] * x[:6]).reshape(3, 2).at[key], update)(nk.sin(x[6:8]))
        return nk.exp(y.reshape(6)) * x[8]

    return function


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    "key", [1, ([0, 0], [1, 1]), [2, 2], slice(None, None, 2), [[0, 1], [0, 2]]], ids=str
)
def test_first_and_second_derivatives_in_every_mode(key: Any, update: str) -> None:
    x = RANDOM.normal(size=9)
    function = _moved(update, key)
    found = derivatives(function, x)
    value = nk.fn(Vector)(function)

    def along(y: Array, direction: Array) -> Array:
        step = 1e-6
        return (value(y + step * direction).numpy() - value(y - step * direction).numpy()) / (
            2 * step
        )

    ones = np.ones(9)
    np.testing.assert_allclose(found["f"], along(x, ones), rtol=1e-7, atol=1e-7)
    slopes = np.array([along(x, row).sum() for row in np.eye(9)])
    np.testing.assert_allclose(found["r"], slopes, rtol=1e-7, atol=1e-7)
    for mode in ("r", "f", "rr", "rf", "fr", "ff"):
        np.testing.assert_allclose(found[f"native {mode}"], found[mode], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found["rr"], found["fr"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found["fr"].sum(), found["ff"].sum(), rtol=1e-9, atol=1e-9)


def test_what_a_later_update_replaces_has_no_influence() -> None:
    put = nk.fn(Vector)(lambda v: nk.const(np.zeros(3)).at[[0, 0, 2]].set(v))
    assert nk.gradient(of=put, wrt=0)(np.array([1.0, 2.0, 3.0])).numpy().tolist() == [0.0, 1.0, 1.0]
    tangent = nk.jvp(of=put, wrt=0)(np.ones(3), np.array([5.0, 7.0, 9.0]))[1]
    assert tangent.numpy().tolist() == [7.0, 0.0, 9.0]


@pytest.mark.parametrize("update", ["min", "max"])
def test_ties_are_split_evenly_among_all_that_attain_them(update: str) -> None:
    def function(x: Rep[Vector], v: Rep[Vector]) -> Rep[Vector]:
        return getattr(x.at[[0, 0, 1]], update)(v)

    dx, dv = nk.gradient(of=nk.fn(Vector, Vector)(function), wrt=(0, 1))(
        np.full(3, 2.0), np.full(3, 2.0)
    )
    np.testing.assert_allclose(dx.numpy(), [1 / 3, 1 / 2, 1.0], rtol=1e-15)
    np.testing.assert_allclose(dv.numpy(), [1 / 3, 1 / 3, 1 / 2], rtol=1e-15)
    by_tangents = nk.jacobian(of=nk.fn(Vector, Vector)(function), wrt=(0, 1), mode="forward")
    for found, same in zip(by_tangents(np.full(3, 2.0), np.full(3, 2.0)), (dx, dv), strict=True):
        np.testing.assert_allclose(found.numpy().sum(axis=0), same.numpy(), rtol=1e-15)


def test_products_with_zeros() -> None:
    def function(x: Rep[Vector], v: Rep[Vector]) -> Rep[Vector]:
        return x.at[[0, 0, 1]].multiply(v)

    at = np.array([2.0, 3.0]), np.array([0.0, 5.0, 0.0])
    dx, dv = nk.gradient(of=nk.fn(Vector, Vector)(function), wrt=(0, 1))(*at)
    assert dx.numpy().tolist() == [0.0, 0.0]
    assert dv.numpy().tolist() == [10.0, 0.0, 3.0]
    by_x, by_v = nk.jacobian(of=nk.fn(Vector, Vector)(function), wrt=(0, 1), mode="forward")(*at)
    assert by_x.numpy().sum(axis=0).tolist() == [0.0, 0.0]
    assert by_v.numpy().sum(axis=0).tolist() == [10.0, 0.0, 3.0]


def test_other_elements_than_f64() -> None:
    narrow = nk.fn(Tensor1D[f32], Count)(lambda x, i: x.at[i].add(0.5).at[0].set(-1.0))
    np.testing.assert_array_equal(
        narrow(np.ones(3, "f4"), np.int64(2)).numpy(), np.array([-1, 1, 1.5], "f4")
    )
    flags = nk.fn(Tensor1D[boolean], Count)(lambda x, i: x.at[i].set(True))
    assert flags(np.zeros(3, bool), np.int64(1)).numpy().tolist() == [False, True, False]
    counts = nk.fn(Tensor1D[i64], Tensor1D[i64])(lambda x, i: x.at[i].add(1))
    assert counts(np.zeros(3, int), np.array([0, 2, 0])).numpy().tolist() == [2, 0, 1]


@nk.staged
def at_index(x: Rep[Matrix], i: Rep[Count], j: Rep[Count]) -> Rep[Matrix]:
    return x.at[i, j].set(1.0)  # here


@pytest.mark.parametrize(
    ("i", "j", "wrong", "extent"), [(3, 0, 3, 3), (-4, 0, -4, 3), (0, 2, 2, 2)]
)
def test_an_index_outside_names_index_extent_and_line(
    i: int, j: int, wrong: int, extent: int
) -> None:
    message = rf"index {wrong} is out of range for an axis of extent {extent}\n.*test_at.py:\d+  return x.at\[i, j\]"
    with pytest.raises(IndexError, match=message):
        at_index(np.ones((3, 2)), np.int64(i), np.int64(j))


ONES = np.ones(5)
MISUSE: list[tuple[Any, list[Any], Any, type[Exception], str]] = [
    (lambda x, v: x.at[:].set(v), [Vector, Tensor1D[f32]], (ONES, ONES.astype("f4")), nk.DTypeError,
     "takes such a value, not Tensor1D[f32]"),
    (lambda x: x.at[0].set(x), [Vector], (ONES,), nk.RankError, "a part of rank 0 cannot take f64"),
    (lambda x: x.at[0, 1].set(1.0), [Vector], (ONES,), nk.RankError, "2 subscripts are too many"),
    (lambda x: x.at[x].set(1.0), [Vector], (ONES,), nk.DTypeError, "indices are integers"),
    (lambda x: x.at["a"].set(1.0), [Vector], (ONES,), nk.StagingError, "integer tensors, not a str"),
    (lambda x: x.at[0].add(True), [Tensor1D[boolean]], (ONES > 0,), nk.DTypeError, "takes numbers, not boolean"),
    (lambda x: x.at[[0, 1], :, [0, 1]].set(1.0), [Cube], (CUBE,), nk.UnsupportedError, "both sides of a slice"),
    (lambda x: x.at[1:3].set(x[2:5]), [Vector], (ONES,), nk.ShapeError,
     "cannot write f64[3] to a part of f64[5] of shape [2]"),
    (lambda x: x.at[7].set(1.0), [Vector], (ONES,), IndexError, "index 7 is out of range for axis 0"),
    (lambda x: x.__setitem__(0, 1.0), [Vector], (ONES,), nk.StagingError, "a Rep cannot be written to"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "types", "arguments", "error", "message"), MISUSE)
def test_misuse_is_explained(
    function: Any, types: list[Any], arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        nk.fn(*types)(function)(*arguments)
    assert "test_at.py" in str(caught.value)
