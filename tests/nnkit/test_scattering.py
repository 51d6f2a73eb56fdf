"""Reads and writes along an axis, segments, integer tensors and masks as subscripts: the laws, then misuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import DTypeError, IndexOutOfRangeError, RankError, ShapeError, StagingError
from nnkit.core.types import Array

from .function_laws import Row, check
from .messages import M, N, Table, V, on

RANDOM = np.random.default_rng(1)
X = RANDOM.permutation(12).reshape(3, 4) * 0.7 - 3.0
C = RANDOM.normal(size=(3, 4, 2))
I = np.array([[1, 0, -1], [3, 3, 2], [0, -4, 1]])
J = np.array([[1], [3]])
ROWS_OF_C = np.array([2, 0, -1])
SEGMENTS = np.array([1, 0, 1])
NUMBERS = np.array([1, 3, 3, 0])
S = np.array(1)


def by_segment(combine: Callable[[Array], Array], count: int) -> Callable[[Array, Array], Array]:
    return lambda x, s: np.stack([combine(x[s == number]) for number in range(count)])


def changed(change: Callable[..., Any]) -> Callable[..., Array]:
    """What is there after a copy is changed in place."""

    def apply(x: Array, *others: Array) -> Array:
        y = x.copy()
        change(y, *others)
        return y

    return apply


def _set(y: Array) -> None:
    y[y > 0] = 2.5


def _set_rows(y: Array) -> None:
    y[y[:, 0, 0] > 0] = 7.0


def _put_twice(y: Array, v: Array) -> None:
    np.put_along_axis(y, np.array([[0, 0]]), v, 1)


def test_laws() -> None:
    check(
        {
            "along": Row(
                lambda x, i: nk.take_along_axis(x, i, 1),
                lambda x, i: np.take_along_axis(x, i, 1),
                (X, I),
                batched=(0,),
            ),
            "along, broadcast": Row(
                lambda x, i: nk.take_along_axis(x, i, 0),
                lambda x, i: np.take_along_axis(x, i, 0),
                (X, np.array([[0, 1, 2, -1]])),
                batched=(0,),
            ),
            "along, each": Row(
                lambda x, i: nk.take_along_axis(x, i.cast(nk.i8), 1, mode="clip"),
                lambda x, i: np.take_along_axis(x, np.minimum(i, 3), 1),
                (X[:2], np.array([[0, 9], [3, -1]])),
            ),
            "put": Row(
                lambda x, i, v: nk.put_along_axis(x, i, v, 1),
                changed(lambda y, i, v: np.put_along_axis(y, i, v, 1)),
                (X, I[:, :2], X[:, :2] * 2),
            ),
            "put twice": Row(
                lambda x, v: nk.put_along_axis(x, np.array([[0, 0]]), v),
                changed(_put_twice),
                (X[:1], X[1:2, :2]),
            ),
            "put a number": Row(
                lambda x, i: nk.put_along_axis(x, i, 3.0, 0),
                changed(lambda y, i: np.put_along_axis(y, i, 3.0, 0)),
                (X, np.array([[0, 1, 2, -1]])),
            ),
            "counts": Row(
                lambda n: nk.bincount(n, length=5), lambda n: np.bincount(n, minlength=5), (NUMBERS,)
            ),
            "weights": Row(
                lambda n, w: nk.bincount(n, w, length=4),
                lambda n, w: np.bincount(n, w, minlength=4),
                (NUMBERS, X[0]),
            ),
            "sums": Row(
                lambda x, s: nk.segment_sum(x, s, 3), by_segment(lambda x: x.sum(0), 3), (X, SEGMENTS)
            ),
            "maxima": Row(
                lambda x, s: nk.segment_max(x, s, 2), by_segment(lambda x: x.max(0), 2), (X, SEGMENTS)
            ),
            "minima": Row(
                lambda x, s: nk.segment_min(x, s, 2), by_segment(lambda x: x.min(0), 2), (X, SEGMENTS)
            ),
            "products": Row(
                lambda x, s: nk.segment_prod(x, s, 3), by_segment(lambda x: x.prod(0), 3), (X, SEGMENTS)
            ),
            "means": Row(
                lambda x, s: nk.segment_mean(x, s, 2), by_segment(lambda x: x.mean(0), 2), (X, SEGMENTS)
            ),
        }
    )  # fmt: skip


UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda _, v: v, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum
}  # fmt: skip


def scattered(update: str, axis: int) -> Callable[[Array, Array, Array], Array]:
    """NumPy's loop over the indices."""

    def apply(y: Array, i: Array, v: Array) -> Array:
        shape = [*y.shape]
        shape[axis] = i.shape[axis]
        i, v, y = np.broadcast_to(i, shape), np.broadcast_to(v, shape), y.copy()
        for place in np.ndindex(*shape):
            at = (*place[:axis], i[place], *place[axis + 1 :])
            y[at] = UPDATES[update](y[at], v[place])
        return y

    return apply


def scatter_row(update: str, axis: int, *arguments: Any, **options: Any) -> Row:
    return Row(
        lambda x, i, v: nk.scatter(x, i, v, axis, reduce=update), scattered(update, axis), arguments, **options
    )  # fmt: skip


def test_scatter() -> None:
    """Repeated indices; the last value of several is set, all are joined; of all element types, and of nothing."""
    twice, v = np.array([[0, 3, 0], [1, -3, 1], [2, 0, -1]]), C[:, :3, 0] * 1.7
    column, small = np.array([[2], [0], [2]]), np.arange(12).reshape(3, 4)
    deep = np.array([[[1], [1], [-4]], [[0], [2], [3]], [[3], [-1], [3]]])
    check(
        {f"{u} along": scatter_row(u, 1, X, twice, v, order=1 + (u not in ("min", "max"))) for u in UPDATES}
        | {f"{u} of f16": scatter_row(u, 1, X.astype(np.float16), column, v[:, :1].astype(np.float16)) for u in UPDATES}
        | {f"{u} of i8": scatter_row(u, 1, small.astype(np.int8), twice, np.int8(-3), batched=(0,)) for u in UPDATES}
        | {
            "of f32": scatter_row("add", -1 % 2, X.astype(np.float32), twice, v.astype(np.float32)),
            "of truth values": scatter_row("set", 1, X > 0, twice, v > 0),
            "along the first": scatter_row("add", 0, X, np.array([[2, 0, 2, 2], [-1, 1, 2, 0]]) % 3, X[:2] - 1.0),
            "broadcast": scatter_row("multiply", 0, X, np.array([[1], [1]]), X[0], batched=(0, 2)),
            "of rank 3": scatter_row("add", 1, C, deep, C[:, :3] * 3.0),
            "of a vector": scatter_row("multiply", 0, Z, FAR % 7, Z[::-1] + 0.1),
            "by a list": Row(
                lambda x, v: nk.scatter(x, [[0, 3], [1, 1], [2, 2]], v, 1, reduce="add"),
                lambda x, v: scattered("add", 1)(x, np.array([[0, 3], [1, 1], [2, 2]]), v), (X, v[:, :2]),
            ),
            "to nothing": scatter_row("add", 1, X[:0], twice[:0], v[:0]),
            "nothing": scatter_row("max", 1, X, twice[:, :0], v[:, :0]),
            "method": Row(
                lambda x, i, v: x.scatter(i, v, reduce="add", mode="wrap"), scattered("add", 1), (X, twice, v)
            ),
            "drop": Row(
                lambda x, v: nk.scatter(x, FAR, v, reduce="max", mode="drop"),
                changed(lambda y, v: np.maximum.at(y, np.array([3, 3, 1, 2, 2]), v[[0, 1, 4, 5, 6]])),
                (X[0], Z), order=1,
            ),
        }
    )  # fmt: skip


def test_derivatives_of_ties_and_replaced_values() -> None:
    """What another value replaces has none; the element and the values that attain an extremum share it; NaN stays."""
    slopes = nk.gradient(
        of=nk.staged(
            lambda x, y, v: (
                nk.scatter(x, np.array([1, 1]), v) @ np.array([3.0, 5.0])
                + nk.scatter(y, np.array([0, 0]), v, reduce="max") @ np.array([7.0, 9.0])
            )
        ),
        wrt=(0, 1, 2),
    )
    for y, v, expected in (
        ([2.0, 1.0], [2.0, 2.0], ([3, 0], [7 / 3, 9], [7 / 3, 5 + 7 / 3])),
        ([2.0, 1.0], [1.0, 4.0], ([3, 0], [0, 9], [0, 5 + 7])),
    ):
        found = slopes(np.ones(2), np.array(y), np.array(v))
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)


FAR = np.array([3, -1, 9, -7, 1, 2, 2])
"""Indices along an axis of 4, on both sides outside of it."""
INSIDE, FILLED = np.array([0, 1, 4, 5, 6]), np.array([True, True, False, False, True, True, True])
"""Which of them are not, as numbers and as truth values."""
KEPT, NEAREST, ROUND = FAR[INSIDE] % 4, np.array([3, 3, 3, 0, 1, 2, 2]), FAR % 4
"""What `drop`, `clip` and `wrap` make of them."""
KEPT_SEGMENTS, OF_SEGMENTS = np.array([0, 4, 5, 6]), np.array([3, 1, 2, 2])
"""Of segments, -1 is outside."""
FOUR, Z = X[0], np.array([0.0, 2.0, -1.5, 0.0, 0.5, 3.0, -2.0])


def updated(update: np.ufunc, places: Array, chosen: Any = slice(None)) -> Callable[..., Array]:
    return changed(lambda y, v: update.at(y, places, v[chosen]))


def set_inside(y: Array, v: Array) -> None:
    for place, one in zip(KEPT, v[INSIDE], strict=True):
        y[place] = one


def reads_by_mode() -> dict[str, Row]:
    return {
        "clip": Row(lambda x: nk.take(x, FAR, mode="clip"), lambda x: x[NEAREST], (FOUR,)),
        "wrap": Row(lambda x: nk.take(x, FAR, mode="wrap"), lambda x: x[ROUND], (FOUR,)),
        "fill": Row(
            lambda x: nk.take(x, FAR, axis=1, mode="fill", fill_value=2.0),
            lambda x: np.where(FILLED, x[:, ROUND], 2.0), (X,),
        ),
        "fill with 0": Row(
            lambda x: nk.take(x, FAR, axis=1, mode="fill", fill_value=0),
            lambda x: np.where(FILLED, x[:, ROUND], 0.0), (X,),
        ),
        "fill with -0": Row(
            lambda x: nk.signbit(nk.take(x, FAR, mode="fill", fill_value=-0.0)),
            lambda x: ~FILLED, (np.ones(4),),
        ),
        "fill with false": Row(
            lambda x: nk.take(x, FAR, mode="fill", fill_value=False),
            lambda x: np.where(FILLED, x[ROUND], False), (np.ones(4, bool),),
        ),
        "fill with NaN": Row(
            lambda x: nk.take(x, FAR, mode="fill"),
            lambda x: np.where(FILLED, x[ROUND], np.nan), (FOUR.astype(np.float32),),
        ),
        "fill integers": Row(
            lambda x: nk.take(x, FAR, mode="fill"),
            lambda x: np.where(FILLED, x[ROUND], -128).astype(np.int8), (np.arange(4, dtype=np.int8),),
        ),
        "fill truth": Row(
            lambda x: nk.take(x, FAR, mode="fill"),
            lambda x: np.where(FILLED, x[ROUND], True), (np.zeros(4, bool),),
        ),
        "fill from nothing": Row(
            lambda x: nk.take(x, FAR, mode="fill", fill_value=1.0), lambda x: np.ones(7), (FOUR[:0],)
        ),
        "along, wrap": Row(
            lambda x: nk.take_along_axis(x, FAR[None], mode="wrap"), lambda x: x[:, ROUND], (X,)
        ),
        "along, fill": Row(
            lambda x: nk.take_along_axis(x, FAR[:, None], 0, mode="fill", fill_value=-1.0),
            lambda x: np.where(FILLED[:, None], x[ROUND], -1.0), (X.T,),
        ),
        "along, fill from nothing": Row(
            lambda x: nk.take_along_axis(x, FAR[None], mode="fill", fill_value=3.0),
            lambda x: np.full((3, 7), 3.0), (X[:, :0],),
        ),
    }  # fmt: skip


def updates_by_mode() -> dict[str, Row]:
    return {
        "put, drop": Row(
            lambda x, v: nk.put_along_axis(x, FAR, v, mode="drop"), changed(set_inside), (FOUR, Z)
        ),
        "put, wrap": Row(
            lambda x, v: nk.put_along_axis(x, FAR % 5 + 4, v, mode="wrap"),
            changed(lambda y, v: np.put_along_axis(y, FAR % 5 % 4, v, 0)), (FOUR, Z),
        ),
        "set, drop": Row(lambda x, v: x.at[FAR].set(v, mode="drop"), changed(set_inside), (FOUR, Z)),
        "add, drop": Row(lambda x, v: x.at[FAR].add(v, mode="drop"), updated(np.add, KEPT, INSIDE), (FOUR, Z)),
        "add, clip": Row(lambda x, v: x.at[FAR].add(v, mode="clip"), updated(np.add, NEAREST), (FOUR, Z)),
        "add, wrap": Row(lambda x, v: x.at[FAR].add(v, mode="wrap"), updated(np.add, ROUND), (FOUR, Z)),
        "multiply": Row(lambda x, v: x.at[ROUND].multiply(v), updated(np.multiply, ROUND), (FOUR, Z)),
        "multiply, drop": Row(
            lambda x, v: x.at[FAR].multiply(v, mode="drop"), updated(np.multiply, KEPT, INSIDE), (FOUR, Z)
        ),
        "multiply, clip": Row(
            lambda x, v: x.at[FAR].multiply(v, mode="clip"), updated(np.multiply, NEAREST), (FOUR, Z)
        ),
        "multiply rows": Row(
            lambda x, v: x.at[:, ROWS_OF_C, 1].multiply(v), changed(
                lambda y, v: np.multiply.at(y, (slice(None), ROWS_OF_C, 1), v)), (C, C[0, 0, 0] * C[:, :3, 1]),
        ),
        "greatest, drop": Row(
            lambda x, v: x.at[FAR].max(v, mode="drop"), updated(np.maximum, KEPT, INSIDE), (FOUR, Z), order=1
        ),
    }  # fmt: skip


def segments_by_mode() -> dict[str, Row]:
    return {
        "segments, drop": Row(
            lambda v: nk.segment_sum(v, FAR, 4, mode="drop"),
            lambda v: updated(np.add, OF_SEGMENTS, KEPT_SEGMENTS)(np.zeros(4), v), (Z,),
        ),
        "segments, clip": Row(
            lambda v: nk.segment_sum(v, FAR, 4, mode="clip"),
            lambda v: updated(np.add, np.clip(FAR, 0, 3))(np.zeros(4), v), (Z,),
        ),
        "products, drop": Row(
            lambda v: nk.segment_prod(v, FAR, 4, mode="drop"),
            lambda v: updated(np.multiply, OF_SEGMENTS, KEPT_SEGMENTS)(np.ones(4), v), (Z,),
        ),
        "products of zeros": Row(
            lambda v: nk.segment_prod(v, FAR * 0, 1), lambda v: v.prod(keepdims=True), (Z,)
        ),
        "means, drop": Row(
            lambda v: nk.segment_mean(v, FAR, 4, mode="drop")[1:],
            lambda v: np.array([v[4], v[5:].mean(), v[0]]), (Z,),
        ),
        "counts, clip": Row(
            lambda n: nk.bincount(n, length=4, mode="clip"),
            lambda n: np.bincount(np.clip(n, 0, 3), minlength=4), (FAR,),
        ),
        "weights, drop": Row(
            lambda n, w: nk.bincount(n, w, length=3, mode="drop"),
            lambda n, w: np.array([0.0, w[4], w[5] + w[6]]), (FAR, Z), batched=(1,),
        ),
    }  # fmt: skip


def test_modes() -> None:
    """What NumPy has at the indices that each mode makes of these."""
    check(reads_by_mode() | updates_by_mode() | segments_by_mode())


def test_laws_of_subscripts() -> None:
    def both(read: Callable[..., Any], *arguments: Any) -> Row:
        return Row(read, read, arguments)

    check(
        {
            "rows": both(lambda x, i: x[i], C, ROWS_OF_C),
            "pairs": both(lambda x, i, j: x[i, j], C, ROWS_OF_C, J),
            "columns": both(lambda x, i: x[:, i], C, ROWS_OF_C),
            "slices around": both(lambda x, i: x[::-2, i, :1], C, ROWS_OF_C),
            "an int behind": both(lambda x, i: x[i, 1], C, ROWS_OF_C),
            "an int between": both(lambda x, i, j: x[i, 1, j - 1 - j], C, ROWS_OF_C, J),
            "the last axis": both(lambda x, j: x[..., j - j], C, J),
            "a list": both(lambda x: x[[0, 2], 1:3], C),
            "an array": both(lambda x: x[np.array([[0, 2]])], C),
            "a known mask": both(lambda x: x[np.array([True, False, True])], C),
            "a known mask of two axes": both(lambda x: x[np.arange(12).reshape(3, 4) % 5 == 0], C),
            "a mask of nothing": both(lambda x: x[[False, False, False]], C),
            "a scalar": Row(
                lambda x, s, i: x[s, i], lambda x, s, i: x[s, i], (C, S, ROWS_OF_C), batched=(0,)
            ),
            "scalars": Row(
                lambda x, s: x[s, :, s - 1], lambda x, s: x[s, :, s - 1], (C, S), batched=(0,)
            ),
            "set by a mask": Row(lambda x: x.at[x > 0].set(2.5), changed(_set), (C,)),
            "set rows by a mask": Row(
                lambda x: x.at[x[:, 0, 0] > 0].set(7.0), changed(_set_rows), (C,)
            ),
            "multiply by a mask": Row(
                lambda x, v: x.at[np.array([True, False, True])].multiply(v),
                lambda x, v: np.stack([x[0] * v, x[1], x[2] * v]),
                (C, C[1]),
            ),
            "least by a mask": Row(
                lambda x: x.at[x > 0].min(0.3), lambda x: np.minimum(x, 0.3), (C,)
            ),
        }
    )


def test_segments_of_nothing() -> None:
    f = nk.staged(
        lambda x, s: (
            nk.segment_sum(x, s, 2),
            nk.segment_max(x, s, 2),
            nk.segment_prod(x, s, 2),
            nk.segment_mean(x, s, 2),
            nk.bincount(s, length=2),
        )
    )
    found = [np.asarray(y).tolist() for y in f(V[:0], N[:0])]
    assert found[:3] == [[0.0, 0.0], [-np.inf, -np.inf], [1.0, 1.0]]
    assert np.isnan(found[3]).all()
    assert found[4] == [0, 0]


def test_sizes_may_be_extents() -> None:
    traced: list[int] = []

    @nk.staged
    def f(x: Any, s: Any) -> Any:
        traced.append(1)
        n = x.shape[0]
        return (
            nk.segment_sum(x, s, n),
            nk.segment_prod(x, s, n + 1),
            nk.bincount(s, length=n - 1),
            nk.top_k(x, n - 1)[0],
            nk.tri(n, k=0),
        )

    for n in (3, 4):
        x, s = np.arange(1.0, n + 1), np.arange(n) // 2
        found = [np.asarray(y) for y in f(x, s)]
        assert [y.shape for y in found] == [(n,), (n + 1,), (n - 1,), (n - 1,), (n, n)]
        np.testing.assert_array_equal(found[2], np.bincount(s, minlength=n - 1))
        np.testing.assert_array_equal(found[3], x[:0:-1])
        np.testing.assert_array_equal(found[4], np.tri(n))
    assert len(traced) == 1


def test_a_ref_is_written_by_a_mask() -> None:
    @nk.staged
    def f(x: Any) -> Any:
        held = nk.ref(x)
        held[x < 0.0] = 0.0
        return held.value

    assert np.asarray(f(np.array([-1.0, 2.0]))).tolist() == [0.0, 2.0]


ROWS = Table()
row = ROWS.row
row(
    "index",
    IndexOutOfRangeError,
    "index 3 is out of range for an axis of extent 3",
    "nk.take_along_axis(x, n)",
)(on(lambda x, n: nk.take_along_axis(x, n), V, N + 1))
row("index of a scatter", IndexOutOfRangeError, "index 3 is out of range for an axis of extent 3")(
    on(lambda x, n: x.scatter(n, x, reduce="add"), V, N + 1)
)
for _name, _error, _message, _caret, _help, _body in (
    ("axis before indices", StagingError, "scatter takes a tensor of indices, not 0", "nk.scatter(x, 0, n, x)",
     "`scatter(x, indices, values, axis=0)`", lambda x, n: nk.scatter(x, 0, n, x)),
    ("PyTorch's names", StagingError, "scatter has no argument 'src'", "nk.scatter(x, n, src=x)",
     "write `values=` for `src=`", lambda x, n: nk.scatter(x, n, src=x)),
    ("another reduction", StagingError, "reduce is 'set', 'add', 'multiply', 'min' or 'max', not 'sum'",
     "x.scatter(n, x, reduce='sum')", "write `reduce='add'`", lambda x, n: x.scatter(n, x, reduce='sum')),
    ("means", StagingError, "or 'max', not 'mean'", "", "segment_mean", lambda x, n: x.scatter(n, x, reduce="mean")),
    ("no reduction", StagingError, "or 'max', not 3", "", "", lambda x, n: x.scatter(n, x, reduce=3)),
    ("sums of truth values", DTypeError, "scatter by 'add' takes numbers, not Tensor1D[boolean]", "",
     "reduce='set' writes any elements", lambda x, n: nk.scatter(x > 0, n, x > 0, reduce="add")),
    ("values of another type", DTypeError, "scatter of f32 takes such values, not Tensor1D[i32]", "",
     "cast them, `values.cast(dtype)`", lambda x, n: nk.scatter(x, n, n)),
    ("indices of floats", DTypeError, "indices are integers, not a Tensor1D[f32]", "", "cast",
     lambda x, n: nk.scatter(x, x, x)),
    ("indices of rows", RankError, "scatter takes indices of the rank of the tensor", "",
     "`i[:, None]` is a column", lambda x, n: nk.scatter(x[None], n, x)),
    ("values of too many axes", RankError, "scatter into a Tensor1D[f32] cannot take Tensor2D[f32]", "", "",
     lambda x, n: nk.scatter(x, n, x[None])),
    ("values that do not fit", ShapeError, "scatter: values of shape [2] do not fit indices of shape [3]",
     "x.scatter(n, x[:2])", "", lambda x, n: x.scatter(n, x[:2])),
    ("a mask", DTypeError, "indices are integers, not a Tensor1D[boolean]", "", "`x.at[mask].set(v)`",
     lambda x, n: nk.scatter(x, x > 0, x)),
    ("mode of reads", ShapeError, "mode is 'error', 'clip', 'wrap' or 'drop', not 'fill'", "", "",
     lambda x, n: nk.scatter(x, n, x, mode="fill")),
):  # fmt: skip
    row(f"scatter: {_name}", _error, _message, _caret, *[_help] * bool(_help))(on(_body, V, N))
row("index of a write", IndexOutOfRangeError, "index -4 is out of range for an axis of extent 3")(
    on(lambda x, n: nk.put_along_axis(x, n, 1.0), V, N - 4)
)
row(
    "segment",
    IndexOutOfRangeError,
    "index 2 is out of range for an axis of extent 2",
    "nk.segment_sum(x, n, 2)",
)(on(lambda x, n: nk.segment_sum(x, n, 2), V, N))
row("negative segment", IndexOutOfRangeError, "index -1 is out of range for an axis of extent 3")(
    on(lambda x, n: nk.segment_max(x, n, 3), V, N - 1)
)
row(
    "count",
    IndexOutOfRangeError,
    "index 2 is out of range for an axis of extent 2",
    "nk.bincount(n, length=2)",
)(on(lambda n: nk.bincount(n, length=2), N))
row(
    "ranks",
    RankError,
    "take_along_axis takes indices of the rank of the tensor",
    "nk.take_along_axis(x, n)",
    "help: `take(",
)(on(lambda x, n: nk.take_along_axis(x, n), M, N))
row(
    "extents",
    ShapeError,
    "indices of shape [3, 1] along axis 1 do not fit a tensor of shape [2, 3]",
)(on(lambda x, n: nk.take_along_axis(x, n), M, N[:, None]))
row(
    "extents of a write", ShapeError, "put_along_axis: indices of shape [1, 3] do not fit f32[2, 1]"
)(on(lambda x, n: nk.put_along_axis(x, n, 1.0, axis=0), M[:, :1], N[None] * 0))
row("values", DTypeError, "put_along_axis of f32 takes such values, not Tensor1D[i32]")(
    on(lambda x, n: nk.put_along_axis(x, n, n), V, N)
)
row(
    "rows",
    ShapeError,
    "segment_sum: 2 rows of f32[2, 3] and 3 segments differ in number",
    "nk.segment_sum(x, n, 3)",
)(on(lambda x, n: nk.segment_sum(x, n, 3), M, N))
row("segments", RankError, "segments of segment_sum are a vector of integers, not a Tensor1D[f32]")(
    on(lambda x: nk.segment_sum(x, x, 3), V)
)
row("float numbers", RankError, "bincount takes a vector of integers, not a Tensor1D[f32]")(
    on(lambda x: nk.bincount(x, length=3), V)
)
row("weights", RankError, "weights of bincount are a vector of numbers, not a Tensor2D[f32]")(
    on(lambda x, n: nk.bincount(n, x, length=3), M, N)
)
row("integer means", DTypeError, "segment_mean takes float elements, not")(
    on(lambda n: nk.segment_mean(n, n, 3), N)
)
row("mode", ShapeError, "mode is 'error', 'clip', 'wrap' or 'fill', not 'drop'")(
    on(lambda x, n: nk.take_along_axis(x, n, mode="drop"), V, N)
)
row("mode of a write", ShapeError, "mode is 'error', 'clip', 'wrap' or 'drop', not 'fill'")(
    on(lambda x, n: x.at[n].set(0.0, mode="fill"), V, N)
)
row("mode of segments", ShapeError, "mode is 'error', 'clip' or 'drop', not 'wrap'")(
    on(lambda x, n: nk.segment_sum(x, n, 3, mode="wrap"), V, N)
)
row("filler without a mode", ShapeError, "fill_value is for mode='fill'")(
    on(lambda x, n: nk.take_along_axis(x, n, fill_value=0.0), V, N)
)
row(
    "negative segment of a product",
    IndexOutOfRangeError,
    "index -1 is out of range for an axis of extent 3",
)(on(lambda x, n: nk.segment_prod(x, n, 3), V, N - 1))


@pytest.mark.parametrize("name", ROWS)
def test_messages(name: str) -> None:
    ROWS[name].check("test_scattering.py")
