"""Extents: what is written with `x.shape` is what NumPy computes with its ints, for all shapes by one trace."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import DTypeError, NNKitError, Rep, ShapeError, Tensor1D, Tensor2D, f32, f64, i32, i64
from nnkit.staging.extents import Condition, Extent, Ratio
from tests.nnkit.function_laws import Row, check

GENERATOR = np.random.default_rng(3)
X = GENERATOR.uniform(0.5, 2.0, (4, 3))
V = GENERATOR.uniform(0.5, 2.0, 5)
KEYS = nk.random.split(nk.random.key(7), 10)


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """Of NumPy's arrays and of Reps."""
    return nk.broadcast_to(x, shape) if isinstance(x, Rep) else np.broadcast_to(x, shape)


def both(program: Callable[..., Any], *arguments: Any, **options: Any) -> Row:
    """A program of operators and methods, which NumPy's arrays have as well."""
    return Row(program, program, arguments, **options)


def drawn(shape: tuple[int, ...]) -> Any:
    """Random numbers."""
    key = nk.const(i64(7))
    logits = nk.zeros((shape[0], 5), f64)
    return (
        nk.random.normal(key, shape, dtype=f64)
        + nk.random.uniform(key, shape, minval=1.0, maxval=3.0, dtype=f64)
        + nk.random.gumbel(key, shape, dtype=f64)
        + nk.random.bernoulli(key, 0.5, shape).cast(f64)
        + nk.random.categorical(key, logits, shape=(shape[1], shape[0])).cast(f64).T
    )


NUMBERS = {
    "mean by hand": both(lambda x: x.sum() / x.shape[0], X),
    "reflected": both(lambda x: x.shape[1] - x * x.shape[0] + 1 / x.shape[1], X),
    "integer arithmetic": both(
        lambda x: x * (x.shape[0] // 3 + x.shape[0] % 3 - 2 * x.shape[1] + divmod(7, x.shape[1])[0]), X
    ),
    "negative and rounded": both(
        lambda x: x * (-x.shape[0] // 3 + math.ceil(x.shape[0] / 3) + abs(-x.shape[1])), X
    ),
    "roots and powers": both(lambda x: x * x.shape[1] ** 0.5 + x.shape[0] ** 2 + 2 ** x.shape[1], X),
    "fractions": both(lambda x: x * ((x.shape[0] / 2 + 0.5) // x.shape[1] - 1 / x.size), X),
    "size and ndim": both(lambda x: x * x.size + x.ndim, X),
    "comparisons": Row(
        lambda x: nk.select((x > 1.0) & (x.shape[0] > 3), x, nk.select(x.shape[1] >= 9, x, -x)),
        lambda x: np.where(x > 1.0, x, -x),
        (X,),
    ),
    "negated": Row(lambda x: nk.select(~((x.shape[0] > 3) | (x.size == 1)) & (x > 0), x, -x), lambda x: -x, (X,)),
    "integers": Row(
        lambda x: nk.full((2,), x.shape[0], i32) * x.shape[1], lambda x: np.full(2, 12, np.int32), (X,)
    ),
    "written": Row(
        lambda x: x.at[: x.shape[0] // 2, x.shape[1] - 1].set(x.shape[0]),
        lambda x: np.concatenate([np.c_[x[:2, :2], [4.0, 4.0]], x[2:]]),
        (X,),
    ),
}  # fmt: skip
SIZES = {
    "zeros": Row(lambda x: nk.zeros(x.shape, f64) + x, lambda x: x, (X,)),
    "ones": Row(lambda x: nk.ones((x.shape[0] + 1, 2), f64), lambda x: np.ones((5, 2)), (X,)),
    "full": Row(lambda x: nk.full((x.size,), x.shape[0], f64), lambda x: np.full(12, 4.0), (X,)),
    "arange": Row(lambda x: nk.arange(2 * x.shape[0] - 1, i32), lambda x: np.arange(7, dtype="i4"), (X,)),
    "iota": Row(
        lambda x: nk.iota((x.shape[1], 2), f32, axis=0),
        lambda x: np.broadcast_to(np.arange(3, dtype="f4")[:, None], (3, 2)), (X,)
    ),
    "one_hot": Row(
        lambda x, i: nk.one_hot(i, x.shape[1], f64), lambda x, i: np.eye(3)[i], (X, np.array([2, 0]))
    ),
    "broadcast_to": both(lambda x: broadcast(x, (2, *x.shape)), X),
    "reshape": both(lambda x: x.reshape((x.shape[1], -1)) * 2.0, X),
    "reshape spread": both(lambda x: x.reshape(x.shape[0] // 2, 2, x.shape[1]), X),
    "reshape flat": both(lambda x: x.reshape((-1,)), X),
    "transpose": both(lambda x: x.transpose((1, 0)), X),
    "slices": both(lambda x: x[: x.shape[0] // 2, x.shape[1] - 1 :: -1], X),
    "steps": both(lambda x: x[:: x.shape[1] - 1], X),
    "index": both(lambda x: x[x.shape[0] - 1], X),
    "halves": Row(
        lambda v: nk.concat([v[v.shape[0] // 2 :], v[: v.shape[0] // 2]]), lambda v: np.roll(v, 3), (V,)
    ),
    "pad": Row(
        lambda v: nk.pad(v, ((v.shape[0] - 4, v.shape[0] // 2),), constant_values=v.shape[0]),
        lambda v: np.pad(v, ((1, 2),), constant_values=5.0), (V,)
    ),
    "take": Row(lambda v: nk.take(v, v.shape[0] - 2), lambda v: v[3], (V,)),
    "fori": Row(
        lambda v: nk.fori(1, v.shape[0] + 1, lambda i, c: c * 0.5 + i.cast(f64), v.sum()),
        lambda v: v.sum() / 32 + sum(i * 0.5 ** (5 - i) for i in range(1, 6)), (V,)
    ),
    "larger and smaller": Row(
        lambda x: x[: nk.minimum(x.shape[0] // 2, x.shape[1] + 1), nk.maximum(0, x.shape[1] - 2) :]
        * nk.maximum(x.size, 2.5),
        lambda x: x[:2, 1:] * 12.0, (X,)
    ),
    "larger of numbers": Row(
        lambda v: v * nk.maximum(2, 3) + nk.minimum(v.ndim, len(v)) * nk.minimum(0.5, v.shape[0]),
        lambda v: v * 3 + 0.5, (V,)
    ),
    "keys": Row(
        lambda v: nk.random.split(nk.const(i64(7)), (v.shape[0], 2)),
        lambda v: np.array([key.item() for key in KEYS]).reshape(5, 2), (V,)
    ),
    "where": Row(
        lambda v: nk.where(v.shape[0] > 4, v, 0.0) + nk.where(v.ndim > 1, v, 0.5) + nk.select(len(v) > 4, 1.0, v),
        lambda v: v + 1.5, (V,)
    ),
    "cond of a bool": Row(
        lambda v: nk.cond(v.ndim == 1, lambda: v * 2.0, lambda: v[0][0])
        + nk.cond(v.ndim == 2, lambda: v[0][0], lambda: v),
        lambda v: v * 3, (V,)
    ),
    "cond": Row(lambda v: nk.cond(v.shape[0] > 4, lambda: v, lambda: -v), lambda v: v, (V,)),
    "inside of bodies": Row(
        lambda x: x.map(lambda row: row / row.shape[0] + x.shape[0]), lambda x: x / 3 + 4, (X,)
    ),
    "of what is computed": Row(
        lambda x: nk.tanh(x @ x.T).sum() / (x @ x.T).size, lambda x: np.tanh(x @ x.T).mean(), (X,)
    ),
    "random": Row(
        lambda x: drawn(x.shape) + 0.0 * x, lambda x: np.asarray(nk.fn(Tensor2D[f64])(lambda _: drawn((4, 3)))(x)), (X,)
    ),
}  # fmt: skip


def test_sizes_are_numbers() -> None:
    check(NUMBERS)


def test_numbers_are_sizes() -> None:
    check(SIZES)


def test_one_trace_serves_all_shapes() -> None:
    runs = 0
    rows = [row for row in (*NUMBERS.values(), *SIZES.values()) if row.ours is row.oracle]

    def program(x: Any) -> Any:
        nonlocal runs
        runs += isinstance(x, Rep)
        return sum((row.ours(x).sum() for row in rows), start=0.0)

    staged: Any = nk.fn(Tensor2D[f64])(program)
    for shape in [(4, 3), (8, 2), (2, 5)]:
        x = GENERATOR.uniform(0.5, 2.0, shape)
        np.testing.assert_allclose(staged(x), program(x), rtol=1e-12)
    assert runs == 1


def test_calls_captures_and_loops_pass_sizes_on() -> None:
    """A size of an enclosing function is captured with the tensor that it is of."""

    @nk.staged
    def program(x: Rep[Tensor2D[f64]], n: Rep[Tensor1D[f64]]) -> Any:
        centred = nk.fn(Tensor1D[f64])(lambda row: row * x.shape[0] - row.sum() / row.shape[0])
        derivative = nk.gradient(
            of=nk.fn(Tensor1D[f64])(lambda v: (v * v / n.shape[0]).sum()), wrt=0
        )
        ref = nk.ref(x)
        nk.fori(0, x.shape[1], lambda i: ref.__setitem__(i, ref[i] * ref.value.shape[0]))
        return nk.vmap(centred)(x), derivative(n), ref.value

    rows, slope, ref = program(X, V)
    np.testing.assert_allclose(rows, X * 4 - X.mean(1, keepdims=True))
    np.testing.assert_allclose(slope, 2 * V / 5)
    np.testing.assert_allclose(ref, np.concatenate([X[:3] * 4, X[3:]]))


def extents(rank: int = 2) -> tuple[Extent, ...]:
    """Those of the parameter of a function that is being staged."""
    found: list[tuple[Extent, ...]] = []

    def note(x: Any) -> Any:
        found.append(x.shape)
        return x

    staged: Any = nk.fn((Tensor1D[f32], Tensor2D[f32])[rank - 1])(note)
    staged(np.zeros((1,) * rank, np.float32))
    return found[0]


def test_kinds_and_words() -> None:
    n, m = extents()
    shown = [
        (n, Extent, "x.shape[0]"),
        (n * 2 + m, Extent, "(x.shape[0] * 2) + x.shape[1]"),
        (1 / n, Ratio, "1 / x.shape[0]"),
        (n**2, Extent, "x.shape[0] ** 2"),
        (n**-1, Ratio, "x.shape[0] ** -1"),
        (n > m, Condition, "x.shape[0] > x.shape[1]"),
        (abs(-n), Extent, "abs(0 - x.shape[0])"),
    ]
    for number, kind, words in shown:
        assert type(number) is kind
        assert str(number) == repr(number) == f"{number}" == words
    assert copy.deepcopy(n) is n
    assert operator.eq(n, n) and not operator.ne(n, n) and operator.le(n, n)  # of no shape
    deep = n
    for _ in range(10_000):
        deep = deep + deep
    assert len(str(deep)) < 250


def misused(program: Callable[..., Any], *shape: int) -> NNKitError:
    rank = len(shape)
    staged: Any = nk.fn((Tensor1D[f32], Tensor2D[f32])[rank - 1])(program)
    with pytest.raises(NNKitError) as caught:
        staged(np.ones(shape, np.float32))
    return caught.value


MISUSES: dict[str, tuple[Callable[..., Any], type[NNKitError], str]] = {
    "fraction": (lambda x: nk.zeros((x.shape[0] / 2,), f32), DTypeError, "divide sizes by `//`"),
    "negative": (lambda x: nk.zeros((x.shape[0] - 9,), f32), ShapeError, "zeros takes numbers of at least 0, not -5"),
    "by zero": (lambda x: nk.zeros((4 // (x.shape[0] - 4),), f32), ShapeError, "4 // (x.shape[0] - 4) divides by zero"),
    "reshape": (lambda x: x.reshape((x.shape[0] - 1, -1)), ShapeError, "cannot be divided so"),
    "range": (lambda x: nk.arange(x.shape[0] * 100, nk.i8), DTypeError, "399 is out of range"),
    "bool": (lambda x: x * (x.shape[0] > 3), DTypeError, "x.shape[0] > 3 is no f32"),
    "carried": (lambda x: nk.fori(0, 3, lambda i, c: c, x.shape[0]), DTypeError, "nk.full((), x.shape[0], i64)"),
    "returned": (lambda x: x.shape[0], NNKitError, "nk.full((), x.shape[0], i64)"),
    "len": (lambda x: len(x.sum()) * x, NNKitError, "a scalar has no len()"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_says_what_is_wrong_where(name: str) -> None:
    program, kind, words = MISUSES[name]
    error = misused(program, 4)
    told = "\n".join([str(error), *getattr(error, "__notes__", [])])
    assert isinstance(error, kind)
    assert words in told
    assert "test_extents.py" in told


def test_arguments_take_the_declared_type() -> None:
    @nk.staged
    def scale(x: Rep[Tensor1D[f64]], by: Rep[nk.Scalar[f64]]) -> Rep[Tensor1D[f64]]:
        return x * by

    @nk.staged
    def program(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return scale(x, x.shape[0]) + nk.const(i64(1)).cast(f64)  # type: ignore[call-overload]  # mixed

    np.testing.assert_allclose(program(V), V * 5 + 1)
