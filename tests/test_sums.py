"""Sums against exact ones: the bound (8 + log₂ n) · u · Σ|x|, in compiled code and in the evaluator.

u is 2⁻²⁴ for f32 and 2⁻⁵³ for f64.  The exact sum is that of `math.fsum`, or of f64 where the numbers are f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, Tensor3D, bf16, f16, f32, f64, i64
from nnkit.core.evaluate import evaluate

UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
DTYPES = {"f32": f32, "f64": f64}
CHUNK = 512
"""Products that a kernel adds up one by one."""
LONG = settings().max_examples > 100
"""Whether the profile is `fuzz`: more examples, each of which is compiled, and a bias over 10⁶ rows."""


def constants(shape: tuple[int, ...], _: np.random.Generator) -> Any:
    return np.full(shape, 0.1)


def positive(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    return rng.random(shape)


def far(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    return rng.normal(size=shape) + 1e6


def alternating(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    x = rng.random(shape)
    x.reshape(-1)[::2] *= -1e7
    return x


def ascending(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    return np.sort(np.exp(rng.normal(size=shape) * 5).reshape(-1)).reshape(shape)


DATA = (constants, positive, far, alternating, ascending)
SHAPES = (
    *((n, 1) for n in (0, 1, 2, 63, 65, 1000, 4097)),
    *((1, n) for n in (3, 129, 703, 705, 3001, 65_537)),
    *((17, 15), (100, 100), (33, 1025), (1025, 33), (63, 2049)),
    *((3, 100_000), (100_000, 3), (40_001, 10), (2049, 257)),
)


def exact(x: Any, axis: int) -> Any:
    """Σ along an axis, as f64 has it."""
    rows = np.moveaxis(x.astype(np.float64), axis, -1)
    return np.array(
        [math.fsum(row.tolist()) for row in rows.reshape(-1, max(x.shape[axis], 1))] or [0]
    )


def assert_within(found: Any, x: Any, axis: int, *, slack: float = 8.0) -> None:
    """Assert that sums along an axis of a matrix are as near as the bound says."""
    assert_all_within([(found,)], x, axis, slack=slack)


def assert_all_within(
    found: Iterable[tuple[Any, ...]], x: Any, axis: int, *, slack: float = 8.0
) -> None:
    """Assert the same of sums that were found in several ways."""
    wanted, size = exact(x, axis), exact(np.abs(x), axis)
    count = max(x.shape[axis], 1)
    bound = (slack + math.log2(count)) * UNIT[x.dtype] * size
    for (sums,) in found:
        off = np.abs(np.asarray(sums, np.longdouble).reshape(-1) - wanted)
        assert np.all(off <= bound), float(np.max(off / np.maximum(UNIT[x.dtype] * size, 1e-300)))


def evaluated(function: Any, *arguments: Any) -> tuple[Any, ...]:
    """What the evaluator makes of a staged function."""
    specialization = function._specialization(function._values(arguments, specs=True))
    module, entry = specialization.module("optimizable")
    result = evaluate(module, entry.name, *arguments)
    return result if isinstance(result, tuple) else (result,)


def ways(function: Any, *arguments: Any) -> Iterator[tuple[Any, ...]]:
    """The results in compiled code, and in the evaluator."""
    compiled = function(*arguments)
    results = compiled if isinstance(compiled, tuple) else (compiled,)
    yield tuple(result.numpy() for result in results)
    yield evaluated(function, *arguments)


@cache
def staged(name: str, dtype: str) -> Any:
    """A function of a matrix."""
    functions: dict[str, Callable[[Any], Any]] = {
        "rows": lambda x: x.sum(1),
        "columns": lambda x: x.sum(0),
        "all": lambda x: x.sum(),
        "roots": lambda x: nk.sqrt(x * x).sum(1),
        "running": lambda x: nk.cumsum(x, 0),
        "running rows": lambda x: nk.cumsum(x, 1),
    }
    return nk.fn(Tensor2D[DTYPES[dtype]])(functions[name])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_of_a_matrix(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(7)
    for make in DATA if math.prod(shape) < 100_000 else DATA[:2]:
        x = make(shape, rng).astype(dtype.replace("f", "float"))
        for name, axis in (("rows", 1), ("columns", 0)):
            assert_all_within(ways(staged(name, dtype), x), x, axis)
        assert_all_within(ways(staged("all", dtype), x), x.reshape(1, -1), 1)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (3, 1000), (1000, 17), (2, 40_000)], ids=str)
def test_every_running_sum(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(8)
    for make in DATA:
        x = make(shape, rng).astype(dtype.replace("f", "float"))
        for name, axis in (("running", 0), ("running rows", 1)):
            y = np.moveaxis(x, axis, 0).astype(np.longdouble)
            wanted, size = np.cumsum(y, 0), np.cumsum(np.abs(y), 0)
            bound = (8 + np.log2(np.arange(1, len(y) + 1)))[:, None] * UNIT[x.dtype] * size
            for (found,) in ways(staged(name, dtype), x):
                off = np.abs(np.moveaxis(found, axis, 0) - wanted)
                assert np.all(off <= bound + 1e-16 * size)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("shape", [(50, 60, 70), (2000, 3, 100), (7, 5000, 9)], ids=str)
def test_any_axes_of_three(shape: tuple[int, int, int], axes: tuple[int, ...]) -> None:
    function = nk.fn(Tensor3D[f32])(lambda x: x.sum(axes))
    for make in (constants, alternating):
        x = make(shape, np.random.default_rng(9)).astype(np.float32)
        kept = [axis for axis in range(3) if axis not in axes]
        rows = np.transpose(x, (*kept, *axes)).reshape(math.prod(shape[a] for a in kept), -1)
        assert_all_within(ways(function, x), rows, 1)


@settings(max_examples=500 if LONG else 10)
@given(
    shape=st.tuples(st.integers(1, 300), st.integers(1, 3000)),
    turned=st.booleans(),
    name=st.sampled_from([("rows", 1), ("columns", 0), ("roots", 1)]),
    make=st.sampled_from(DATA[:2]),
    dtype=st.sampled_from(["f32", "f64"]),
)
def test_sums_of_any_length(
    shape: tuple[int, int], turned: bool, name: tuple[str, int], make: Any, dtype: str
) -> None:
    x = make(shape[::-1] if turned else shape, np.random.default_rng(10))
    x = x.astype(dtype.replace("f", "float"))
    assert_all_within(
        ways(staged(name[0], dtype), x), x, name[1], slack=9 if name[0] == "roots" else 8
    )


def test_ten_million_tenths() -> None:
    function = nk.fn(Tensor1D[f32])(lambda x: x.sum())
    x = np.full(10**7, 0.1, np.float32)
    wanted = float(np.float32(0.1)) * 10**7
    for (found,) in ways(function, x):
        assert abs(float(found) - wanted) <= (8 + math.log2(10**7)) * 2**-24 * wanted
    scan = nk.fn(Tensor1D[f32])(lambda x: nk.cumsum(x, 0))
    off = np.abs(scan(x).numpy() - float(np.float32(0.1)) * np.arange(1, 10**7 + 1))
    assert np.all(off <= 31 * 2**-24 * wanted)


def test_mean_and_variance_far_from_zero() -> None:
    x = (np.random.default_rng(11).normal(size=10**6) + 1e6).astype(np.float32)
    wide = x.astype(np.float64)
    function = nk.fn(Tensor1D[f32])(lambda x: (x.mean(), x.var()))
    for mean, variance in ways(function, x):
        assert abs(float(mean) - wide.mean()) <= 0.0625  # the next f32
        assert abs(float(variance) - wide.var()) <= 0.01
    (slope,) = ways(
        nk.gradient(of=nk.fn(Tensor1D[f32])(lambda x: x.mean()), wrt=0), x[:1000]
    ).__next__()
    np.testing.assert_allclose(slope, 1e-3, rtol=1e-6)


def test_norms_and_logsumexp() -> None:
    for size in (10, 3000, 10**6):
        x = np.full(size, 0.1, np.float32)
        wide = x.astype(np.float64)
        function = nk.fn(Tensor1D[f32])(lambda x: (nk.norm(x), nk.logsumexp(x), (x * x).sum()))
        for norm, logarithm, squares in ways(function, x):
            bound = (12 + math.log2(size)) * 2**-24
            assert abs(float(norm) / math.sqrt(float((wide**2).sum())) - 1) <= bound
            assert abs(float(logarithm) - (math.log(size) + float(wide[0]))) <= bound + 2**-20
            assert_within(
                squares, (wide**2).astype(np.float64).reshape(1, -1).astype(np.float32), 1, slack=9
            )


@nk.staged
def affine(
    w: Rep[Tensor2D[f32]], b: Rep[Tensor1D[f32]], x: Rep[Tensor2D[f32]]
) -> Rep[Tensor2D[f32]]:
    return x @ w + b


def test_gradients_of_a_bias_and_of_weights_over_many_rows() -> None:
    rng = np.random.default_rng(12)
    slope: Any = nk.gradient(of=affine, wrt=(0, 1), seedable=True)
    for rows in (1000, 1_000_000 if LONG else 100_000):
        x, seed = (rng.random((rows, n)).astype(np.float32) for n in (4, 8))
        w, b = np.zeros((4, 8), np.float32), np.zeros(8, np.float32)
        for dw, db in ways(slope, w, b, x, seed):
            assert_within(db, seed, 0)
            products = x[:, :, None].astype(np.float64) * seed[:, None, :]
            off = np.abs(dw - products.sum(0))
            assert np.all(off <= (CHUNK + math.log2(rows)) * 2**-24 * products.sum(0))


@pytest.mark.parametrize(
    "shape", [(3, 100_003, 5), (1, 100_003, 5), (3, 200_003, 1), (64, 33_000, 64)], ids=str
)
def test_long_products(shape: tuple[int, int, int]) -> None:
    """With a vector they have the bound of other sums; kernels add some hundreds one by one."""
    m, k, n = shape
    slack = 8 if 1 in (m, n) else CHUNK
    rng = np.random.default_rng(13)
    forms: tuple[Callable[..., Any], ...] = (
        lambda u, v: u @ v,
        lambda u, v: u.transpose().transpose() @ v,
    )
    for form in forms:
        function = nk.fn(Tensor2D[f32], Tensor2D[f32])(form)
        for make in (constants, positive):
            u, v = (make(size, rng).astype(np.float32) for size in ((m, k), (k, n)))
            wanted = u.astype(np.float64) @ v.astype(np.float64)
            for (found,) in ways(function, u, v):
                assert np.all(np.abs(found - wanted) <= (slack + math.log2(k)) * 2**-24 * wanted)


@pytest.mark.parametrize("rows", [1, 20, 3000])
@pytest.mark.parametrize("columns", [1, 9, 2000])
def test_infinities_nans_and_zeros(rows: int, columns: int) -> None:
    if rows * columns > 2**21:
        return
    x = np.ones((rows, columns), np.float32)
    x[0, 0], x[-1, -1] = np.inf, np.nan if rows > 2 and columns > 1 else 1
    for name, axis in (("rows", 1), ("columns", 0)):
        with np.errstate(all="ignore"):
            wanted = x.sum(axis, dtype=np.float64)
        for (found,) in ways(staged(name, "f32"), x):
            np.testing.assert_array_equal(found, wanted)
        for (found,) in ways(staged(name, "f32"), np.full_like(x, 3e38)):
            assert np.all(found == (np.inf if x.shape[axis] > 1 else np.float32(3e38)))
        for (found,) in ways(staged(name, "f32"), np.full_like(x, -0.0)):
            assert np.all(found == 0)
        mixed = np.zeros_like(x)
        mixed[0], mixed[:, 0] = np.inf, np.inf
        if rows > 1 and columns > 1:
            mixed[-1, -1] = mixed[-1, 0] = mixed[0, -1] = -np.inf
            with np.errstate(all="ignore"):
                wanted = mixed.sum(axis)
            for (found,) in ways(staged(name, "f32"), mixed):
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=["f16", "bf16"])
def test_halves_are_reduced_in_f32(dtype: Any) -> None:
    """Norms and normalised rows whose squares overflow f16, and counts that f16 cannot hold on the way."""
    x = np.full(1000, 300.0, np.float32)
    norm = nk.fn(Tensor1D[f32])(lambda x: nk.norm(x.cast(dtype)).cast(f32))
    layer = nk.fn(Tensor1D[f32])(lambda x: nk.layer_norm(x.cast(dtype)).cast(f32))
    some = nk.fn(Tensor1D[f32])(lambda x: nk.logsumexp(x.cast(dtype)).cast(f32))
    for way in (0, 1):
        (root,) = list(ways(norm, x))[way]
        np.testing.assert_allclose(root, 300 * math.sqrt(1000), rtol=2**-7)
        (slope,) = list(ways(nk.gradient(of=norm, wrt=0), x))[way]
        np.testing.assert_allclose(slope, 1 / math.sqrt(1000), rtol=2**-7)
        (rows,) = list(ways(layer, np.linspace(-30_000, 30_000, 100, dtype=np.float32)))[way]
        np.testing.assert_allclose(rows[[0, -1]], [-1.715, 1.715], rtol=2**-6)
        (found,) = list(ways(some, np.zeros(100_000, np.float32)))[way]
        np.testing.assert_allclose(found, math.log(100_000), rtol=2**-7)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=["f16", "bf16"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 2, 1), (3, 8, 5), (1, 300, 7), (40, 64, 50)])
def test_sums_of_products_of_halves_are_rounded_once(dtype: Any, m: int, k: int, n: int) -> None:
    """Products that overflow f16 cancel, and none is rounded before it is added: `@` and convolutions."""
    data = np.random.default_rng(m + k + n)
    x, y = (data.integers(-256, 257, shape).astype(float) for shape in ((m, k // 2), (k // 2, n)))
    x, y = np.concatenate([x, x], 1), np.concatenate([y, -y + (np.abs(y) < 200)])
    matrices = nk.fn(Tensor2D[f64], Tensor2D[f64])(
        lambda x, y: (x.cast(dtype) @ y.cast(dtype)).cast(f64)
    )
    images = nk.fn(Tensor2D[f64], Tensor2D[f64])(
        lambda x, y: nk.conv1d(x.cast(dtype).expand_dims(2), y.T.cast(dtype).expand_dims(2)).cast(
            f64
        )
    )
    bound = 2.0**-11 if dtype is f16 else 2.0**-8
    wanted, size = x @ y, np.abs(x) @ np.abs(y)
    for program in (matrices, images):
        for (found,) in ways(program, x, y):
            off = np.abs(found.reshape(wanted.shape) - wanted)
            assert np.all(off <= bound * np.abs(wanted) + 2.0**-22 * size + 1e-7)


def test_halves_that_fall_on_one_element_are_summed_in_f32() -> None:
    take = nk.fn(Tensor1D[f16])(lambda x: nk.take(x, nk.const(np.zeros(5000, np.int64)), 0))
    slope: Any = nk.gradient(of=take, wrt=0)
    for (found,) in ways(slope, np.ones(2, np.float16)):
        assert found[0] == 5000  # one by one, f16 stays at 2048
    scan = nk.fn(Tensor1D[f16])(lambda x: nk.cumsum(x, 0))
    for (found,) in ways(scan, np.ones(5000, np.float16)):
        assert found[-1] == 5000


@nk.staged
def taken32(x: Rep[Tensor2D[f32]], where: Rep[Tensor1D[i64]]) -> Rep[Tensor2D[f32]]:
    return nk.take(x, where, 0)


@nk.staged
def taken64(x: Rep[Tensor2D[f64]], where: Rep[Tensor1D[i64]]) -> Rep[Tensor2D[f64]]:
    return nk.take(x, where, 0)


SCATTERED: dict[str, Any] = {
    "f32": nk.gradient(of=taken32, wrt=0, seedable=True),
    "f64": nk.gradient(of=taken64, wrt=0, seedable=True),
}
INDICES: dict[str, Callable[[int, int, np.random.Generator], Any]] = {
    "uniform": lambda rows, n, rng: rng.integers(0, rows, n),
    "skewed": lambda rows, n, rng: np.minimum(rng.zipf(1.3, n) - 1, rows - 1),
    "all to one": lambda rows, n, rng: np.full(n, rows // 2),
    "in turn": lambda rows, n, _: np.arange(n) % rows,
}


def assert_scattered(found: Any, updates: Any, where: Any) -> None:
    """Assert the bound of each element for what falls on it; zero where nothing does."""
    order = np.argsort(where, kind="stable")
    begins = np.flatnonzero(np.diff(where[order], prepend=-1))
    counts = np.diff(begins, append=len(where))
    size = np.add.reduceat(np.abs(updates[order]).astype(np.longdouble), begins)
    if updates.dtype == np.float32:
        wanted = np.add.reduceat(updates[order].astype(np.longdouble), begins)
    else:
        parts = np.split(updates[order], begins[1:])
        wanted = np.array([[math.fsum(column.tolist()) for column in part.T] for part in parts])
    rows = where[order][begins]
    bound = (8 + np.log2(counts))[:, None] * UNIT[updates.dtype] * size
    assert np.all(np.abs(found[rows] - wanted) <= bound)
    assert not np.any(np.delete(found, rows, 0))


@settings(max_examples=500 if LONG else 25)
@given(
    rows=st.one_of(st.integers(1, 40), st.integers(1, 5000)),
    width=st.one_of(st.integers(1, 3), st.integers(1, 70)),
    count=st.one_of(st.integers(1, 20), st.integers(1, 4000)),
    kind=st.sampled_from(sorted(INDICES)),
    make=st.sampled_from(DATA),
    dtype=st.sampled_from(["f32", "f64"]),
)
def test_what_falls_on_each_row(
    rows: int, width: int, count: int, kind: str, make: Any, dtype: str
) -> None:
    rng = np.random.default_rng(15)
    updates = make((count, width), rng).astype(dtype.replace("f", "float"))
    where = INDICES[kind](rows, count, rng)
    table = np.zeros((rows, width), updates.dtype)
    for (found,) in ways(SCATTERED[dtype], table, where, updates):
        assert_scattered(found, updates, where)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 1), (2, 5), (1, 16)], ids=str)
def test_a_million_updates_of_one_row(rows: int, width: int, dtype: str) -> None:
    rng = np.random.default_rng(16)
    where = np.full(10**6, rows - 1)
    for make in (constants, alternating) if width == 1 else (constants,):
        updates = make((10**6, width), rng).astype(dtype.replace("f", "float"))
        table = np.zeros((rows, width), updates.dtype)
        found = ways(SCATTERED[dtype], table, where, updates)
        for (rows_found,) in found if width == 1 else islice(found, 1):  # the evaluator is slow
            assert_scattered(rows_found, updates, where)


@pytest.mark.parametrize("width", [1, 2, 9, 64])
def test_rows_that_are_not_finite_or_begin_again_at_zero(width: int) -> None:
    """What was cut off from a row counts only while there is a sum: memory for it is filled by nobody, nor cleared."""
    rng = np.random.default_rng(17)
    table, where = np.zeros((30, width), np.float32), rng.integers(0, 5, 600)
    gradient = SCATTERED["f32"]
    gradient(table, where, np.full((600, width), np.nan, np.float32))  # leaves NaN behind
    updates = rng.normal(size=(600, width)).astype(np.float32)
    assert_scattered(gradient(table, where, updates).numpy(), updates, where)
    updates[300:] = -updates[299::-1]
    back = np.concatenate([where[:300], where[299::-1]])
    assert_scattered(gradient(table, back, updates).numpy(), updates, back)
    updates[np.flatnonzero(where == 0)[7]] = np.inf
    updates[np.flatnonzero(where == 1)[9]] = np.nan
    updates[where == 2] = 3e38
    updates[np.flatnonzero(where == 3)[3]] = -np.inf
    updates[np.flatnonzero(where == 3)[30]] = np.inf
    for (found,) in ways(gradient, table, where, updates):
        np.testing.assert_array_equal(found[0], np.inf)
        np.testing.assert_array_equal(found[1], np.nan)
        np.testing.assert_array_equal(found[2], np.inf)
        np.testing.assert_array_equal(found[3], np.nan)
        assert_scattered(found[4:5], updates[where == 4], where[where == 4] - 4)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=["f16", "bf16"])
def test_halves_that_are_scattered_have_the_bound_of_f32(dtype: Any) -> None:
    take = nk.fn(Tensor2D[f32], Tensor1D[i64])(lambda x, i: nk.take(x.cast(dtype), i, 0).cast(f32))
    slope: Any = nk.gradient(of=take, wrt=0, seedable=True)
    half = 2.0**-11 if dtype is f16 else 2.0**-8
    for width in (1, 12):
        for (found,) in ways(
            slope, np.zeros((2, width), np.float32), np.zeros(50_000, np.int64),
            np.full((50_000, width), 2.0**-4 + 2.0**-10, np.float32),
        ):  # fmt: skip
            whole = 50_000 * (2.0**-4 + 2.0**-10)
            assert np.all(np.abs(found[0] / whole - 1) <= 24 * 2.0**-24 + half)


def test_a_sum_is_the_same_each_time() -> None:
    x = np.random.default_rng(14).normal(size=(3000, 70)).astype(np.float32)
    for name in ("rows", "columns", "all", "running"):
        first = staged(name, "f32")(x).numpy()
        assert all((staged(name, "f32")(x).numpy() == first).all() for _ in range(3))
