"""`accumulate=`: sums in a wider type, rounded once, forward, backward, in batches and at any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Tensor1D, Tensor2D, bf16, f16, f32, f64, i32
from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module, print_module
from nnkit.native_code import module_at

pytestmark = pytest.mark.usefixtures("unoptimized_code")

V, M = Tensor1D[f32], Tensor2D[f32]
WIDER = [(f16, f32), (f16, f64), (bf16, f32), (bf16, f64), (f32, f64)]


def matrix(seed: int, *shape: int, dtype: Any = f32) -> Any:
    """Numbers of very different sizes, so that the order of sums shows, which f64 holds."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-4, 4, shape)
    return np.asarray(nk.fn(Tensor2D[f64])(lambda x: x.cast(dtype))(values))


def given(dtype: Any, values: Any) -> Any:
    """A tensor of values that `dtype` holds."""
    return nk.fn(Tensor2D[f64])(lambda x: x.cast(dtype))(np.asarray(values, np.float64))


def rounded(dtype: Any, exact: Any) -> Any:
    return np.asarray(given(dtype, np.atleast_2d(exact)))


@pytest.mark.parametrize(("dtype", "wide"), WIDER)
def test_sums_means_and_products_are_rounded_once(dtype: Any, wide: Any) -> None:
    """Of the sum in f64, which all of these are up to its rounding."""
    x, w = (matrix(seed, 60, 60, dtype=dtype).astype(np.float64) for seed in (0, 1))
    type = Tensor2D[dtype]
    sum_ = nk.fn(type)(lambda a: a.sum(axis=0, accumulate=wide))
    mean = nk.fn(type)(lambda a: a.mean(axis=1, keepdims=True, accumulate=wide))
    dot = nk.fn(type, type)(lambda a, b: nk.matmul(a, b, accumulate=wide))
    unit = float({f16: 2.0**-11, bf16: 2.0**-8, f32: 2.0**-24}[dtype])
    for found, exact, size in (
        (sum_(given(dtype, x)), x.sum(axis=0), np.abs(x).sum(axis=0)),
        (mean(given(dtype, x)), x.mean(axis=1, keepdims=True), np.abs(x).mean(1, keepdims=True)),
        (dot(given(dtype, x), given(dtype, w)), x @ w, np.abs(x) @ np.abs(w)),
    ):
        error = np.abs(np.asarray(found).astype(np.float64) - exact)
        # half a unit of the result, and the sum's own rounding in the wide type
        own = {f32: 2.0**-24, f64: 2.0**-53}[wide] * 60 * size
        assert np.all(error <= np.abs(exact) * unit * 1.001 + own + 1e-30)


def test_what_f32_loses_and_f64_keeps() -> None:
    column, ones = np.array([[2.0**30, 1.0, -(2.0**30)]], np.float32), np.ones((3, 2), np.float32)
    plain = nk.fn(M, M)(lambda a, b: a @ b)
    wide = nk.fn(M, M)(lambda a, b: nk.matmul(a, b, accumulate=f64))
    assert np.array_equal(wide(column, ones), [[1, 1]])
    assert not np.array_equal(plain(column, ones), [[1, 1]])


def test_the_type_of_the_elements_is_the_usual_way() -> None:
    x = matrix(0, 30, 30)
    for accumulate in (None, f32):
        chosen = nk.fn(M)(lambda a, c=accumulate: nk.tup(a.sum(accumulate=c), a.mean(accumulate=c)))
        plain = nk.fn(M)(lambda a: nk.tup(a.sum(), a.mean()))
        assert chosen.ir(x).count("dataTypeCast") == plain.ir(x).count("dataTypeCast")
        assert [float(one) for one in chosen(x)] == [float(one) for one in plain(x)]


def test_gradients_are_accumulated_in_the_same_type() -> None:
    """x̄ = ȳ·wᵀ and w̄ = xᵀ·ȳ: each a product in f64, rounded once; in forward mode, too."""
    dot = nk.fn(M, M)(lambda a, b: nk.matmul(a, b, accumulate=f64))
    x, w, ct = matrix(0, 40, 50), matrix(1, 50, 30), matrix(2, 40, 30)
    slopes = nk.gradient(of=dot, wrt=(0, 1), seedable=True)
    for found, exact in zip(
        slopes(x, w, ct),
        (ct.astype("f8") @ w.T.astype("f8"), x.T.astype("f8") @ ct.astype("f8")),
        strict=True,
    ):
        np.testing.assert_allclose(found, exact.astype("f4"), rtol=1.2e-7)
    text = slopes.ir(x, w, ct, stage="optimized")
    assert (
        text.count(" dot ") == 2 and " dot %" in text and "x f32>, %0" not in text.split("dot")[1]
    )
    dx, dw = matrix(3, 40, 50), matrix(4, 50, 30)
    _, tangent = nk.jvp(dot)(x, w, dx, dw)
    exact = dx.astype("f8") @ w.astype("f8") + x.astype("f8") @ dw.astype("f8")
    np.testing.assert_allclose(tangent, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize(("dtype", "wide"), WIDER)
def test_the_adjoint_law_and_second_derivatives(dtype: Any, wide: Any) -> None:
    type = Tensor2D[dtype]

    @nk.staged
    def f(a: Any, b: Any) -> Any:
        y = nk.matmul(a, b, accumulate=wide)
        return (y * y).sum(axis=0, accumulate=wide).mean(accumulate=wide)

    a, b = given(dtype, np.ones((4, 3)) / 4), given(dtype, np.arange(6.0).reshape(3, 2) / 4)
    slope = nk.gradient(of=f, wrt=0)
    exact = (np.ones((4, 3)) / 4 @ (np.arange(6.0).reshape(3, 2) / 4)) @ (
        np.arange(6.0).reshape(3, 2) / 4
    ).T
    tolerance = {f16: 2e-3, bf16: 2e-2, f32: 1e-6}[dtype]
    np.testing.assert_allclose(np.asarray(slope(a, b), np.float64), exact, rtol=tolerance)
    direction = given(dtype, np.eye(4, 3))
    _, forward = nk.jvp(f, wrt=0)(a, b, direction)
    reverse = np.sum(np.asarray(slope(a, b), np.float64) * np.eye(4, 3))
    np.testing.assert_allclose(np.asarray(forward, np.float64), reverse, rtol=4 * tolerance)
    curve = nk.hvp(f, wrt=0)(a, b, direction)
    quarter = np.arange(6.0).reshape(3, 2) / 4
    np.testing.assert_allclose(
        np.asarray(curve, np.float64), np.eye(4, 3) @ quarter @ quarter.T, rtol=4 * tolerance
    )
    del type


def test_batches_are_elements_one_after_the_other() -> None:
    dot = nk.fn(M, M)(lambda a, b: nk.matmul(a, b, accumulate=f64))
    many, w = np.stack([matrix(n, 5, 6) for n in range(3)]), matrix(9, 6, 4)
    found = nk.vmap(dot, in_axes=(0, None))(many, w)
    for one, x in zip(np.asarray(found), many, strict=True):
        assert np.array_equal(one, np.asarray(dot(x, w)))


def test_the_evaluator_and_compiled_code_agree_and_the_text_says_it() -> None:
    def both(a: Any, b: Any) -> Any:
        y = nk.matmul(a, b, accumulate=f64)
        return nk.tup(y, y.sum(axis=1, accumulate=f64))

    f = nk.fn(M, M)(both)
    x, w = matrix(0, 20, 30), matrix(1, 30, 10)
    specialization, _ = f.specialized([x, w])
    module, entry = module_at(specialization, "raw")
    text = print_module(module)
    assert text.count("to f64") >= 3 and print_module(parse_module(text)) == text
    for found, wanted in zip(f(x, w), evaluate(module, entry.name, x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1.2e-7)


def test_the_casts_of_a_sum_are_part_of_its_loop() -> None:
    """Nothing of the size of the operand is written in the wide type."""
    f = nk.fn(V)(lambda x: x.sum(accumulate=f64))
    text = f.ir(np.ones(1 << 16, np.float32), stage="schedule")
    assert "<65536 x f64>" not in text and text.count("kernel of %x") == 1


def test_what_cannot_be_accumulated_in() -> None:
    x, y = np.ones((2, 2), np.float32), np.ones((2, 2), np.int32)
    narrow: Any = f16
    for call, message in (
        (
            lambda: nk.fn(M)(lambda a: a.sum(accumulate=narrow))(x),
            "sum of f32 cannot accumulate in",
        ),
        (lambda: nk.fn(M)(lambda a: a.mean(accumulate=i32))(x), "mean of f32 cannot accumulate in"),
        (lambda: nk.fn(M)(lambda a: nk.matmul(a, a, accumulate=bf16))(x), "matmul of f32 cannot"),
        (
            lambda: nk.fn(Tensor2D[i32])(lambda a: a.sum(accumulate=f64))(y),
            "sum of i32 takes no accumulate",
        ),
        (lambda: nk.fn(Tensor2D[f16])(lambda a: a.sum(accumulate=bf16))(x.astype("e")), "cannot"),
        (lambda: nk.fn(M)(lambda a: a.sum(accumulate="f64"))(x), "element type"),
    ):
        with pytest.raises(nk.DTypeError, match=message):
            call()


def test_products_of_vectors_and_of_mixed_types() -> None:
    f = nk.fn(V, V)(lambda a, b: nk.matmul(a, b, accumulate=f64))
    x = np.array([2.0**30, 1.0, -(2.0**30)], np.float32)
    assert float(f(x, np.ones(3, np.float32))) == 1.0
    mixed: Any = nk.fn(V, Tensor1D[f64])(lambda a, b: nk.matmul(a, b))
    with pytest.raises(nk.DTypeError):
        mixed(x, np.ones(3))
    with pytest.raises(nk.DTypeError):
        nk.fn(V, Tensor1D[f64])(lambda a, b: nk.matmul(a, b, accumulate=f64))(x, np.ones(3))
