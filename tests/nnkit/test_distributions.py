"""Samples of distributions: their moments and quantiles, that keys decide them, their derivatives, and misuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, bf16, f32, f64, i8, i32, i64, random, staged
from nnkit.core.errors import NNKitError

NK: Any = nk
"""What is called with arguments that checkers refuse, or know too little of."""
RANDOM: Any = nk.random
KEY = RANDOM.key(5)
COUNT = 20_000
QUANTILES: dict[str, Callable[[Any], Any]] = {
    "gumbel": lambda u: -np.log(-np.log(u)),
    "exponential": lambda u: -np.log1p(-u),
    "laplace": lambda u: np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u)),
    "logistic": lambda u: np.log(u / (1 - u)),
    "cauchy": lambda u: np.tan(np.pi * (u - 0.5)),
}
"""The inverses of the distribution functions."""


def array(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("name", QUANTILES)
def test_numbers_have_the_quantiles_of_their_distribution(name: str) -> None:
    draw = getattr(random, name)
    at = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    for dtype in (f32, f64, bf16):
        x = array(draw(KEY, (COUNT,), dtype=dtype))
        assert np.isfinite(x).all()
        below = (x[:, None] <= QUANTILES[name](at)).mean(0)
        np.testing.assert_allclose(below, at, atol=0.012)
    assert draw(KEY, (2, 3)).dtype is f32
    np.testing.assert_array_equal(array(draw(KEY, (2, 3))).ravel(), array(draw(KEY, (6,))))


def test_the_truncated_normal_distribution() -> None:
    for low, high in ((-2.0, 2.0), (0.5, 3.0), (-math.inf, 0.0), (-1.0, math.inf)):
        for dtype in (f32, f64):
            x = array(RANDOM.truncated_normal(KEY, low, high, (COUNT,), dtype=dtype))
            assert np.isfinite(x).all() and low <= x.min() and x.max() <= high
            ends = [math.erf(end / math.sqrt(2)) for end in (low, high)]
            for at in (-0.7, 0.8, 1.5):
                share = (math.erf(at / math.sqrt(2)) - ends[0]) / (ends[1] - ends[0])
                assert abs((x <= at).mean() - min(max(share, 0), 1)) < 0.012
    bounds = Tensor1D(np.array([[-1.0, 0.0, 2.0]], np.float64)[0])
    x = array(RANDOM.truncated_normal(KEY, bounds, 3.0, (50, 3)))
    assert (x >= bounds.numpy()).all() and (x <= 3).all()
    assert RANDOM.truncated_normal(KEY, bounds, bounds).shape == (3,)


def test_whole_numbers_and_choices_have_their_frequencies() -> None:
    x = np.asarray(RANDOM.randint(KEY, (COUNT,), -2, 3))
    np.testing.assert_allclose(np.bincount(x + 2) / COUNT, [0.2] * 5, atol=0.012)
    assert RANDOM.randint(KEY, (4,), 0, 100, dtype=i8).dtype is i8
    ends = RANDOM.randint(KEY, (200,), -(2**31), 2**31, dtype=i32)
    assert np.abs(np.asarray(ends).astype(np.float64)).max() > 2**30
    assert set(np.asarray(RANDOM.randint(KEY, (9,), 3, i64(4))).tolist()) == {3}
    assert abs(array(RANDOM.bernoulli(KEY, 0.3, (COUNT,))).mean() - 0.3) < 0.012
    p = np.array([0, 0.25, 1], np.float32)
    likely = array(RANDOM.bernoulli(KEY, Tensor1D(p), (COUNT, 3))).mean(0)
    np.testing.assert_allclose(likely, p, atol=0.012)
    assert likely[0] == 0 and likely[2] == 1
    assert not np.asarray(RANDOM.bernoulli(KEY, 0.0, (50,))).any()
    assert np.asarray(RANDOM.bernoulli(KEY, 1.0, (50,))).all()
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0, 0.5]], np.float32)
    with np.errstate(divide="ignore"):
        logits = np.log(weights)
    drawn = np.asarray(RANDOM.categorical(KEY, Tensor2D(logits), shape=(COUNT, 2)))
    for row, column in zip(weights, drawn.T, strict=True):
        np.testing.assert_allclose(np.bincount(column, minlength=3) / COUNT, row, atol=0.012)
    assert RANDOM.categorical(KEY, Tensor2D(logits)).shape == (2,)
    assert RANDOM.categorical(KEY, Tensor2D(logits), axis=0).shape == (3,)
    assert RANDOM.categorical(KEY, Tensor2D(np.zeros((0, 3), np.float32))).shape == (0,)


def test_orders_and_choices() -> None:
    orders = np.stack([np.asarray(RANDOM.permutation(key, 3)) for key in RANDOM.split(KEY, 600)])
    np.testing.assert_array_equal(np.sort(orders), np.broadcast_to(np.arange(3), orders.shape))
    counts = np.unique(orders @ [100, 10, 1], return_counts=True)[1]
    assert len(counts) == 6 and counts.min() > 70
    rows = np.arange(12.0).reshape(4, 3)
    shuffled = np.asarray(RANDOM.permutation(KEY, Tensor2D(rows)))
    np.testing.assert_array_equal(np.sort(shuffled[:, 0]), rows[:, 0])
    np.testing.assert_array_equal(shuffled - shuffled[:, :1], rows - rows[:, :1])
    p = Tensor1D(np.array([0.2, 0, 0.8]))
    for drawn, likely in (
        (RANDOM.choice(KEY, 3, (COUNT,)), [1 / 3] * 3),
        (RANDOM.choice(KEY, 3, (COUNT,), p=p), [0.2, 0, 0.8]),
        (RANDOM.choice(KEY, Tensor1D(np.arange(3)), (100, COUNT // 100), p=p), [0.2, 0, 0.8]),
    ):
        counts = np.bincount(np.asarray(drawn).ravel(), minlength=3)
        np.testing.assert_allclose(counts / COUNT, likely, atol=0.012)
    without = np.asarray(RANDOM.choice(KEY, 7, (2, 3), replace=False))
    assert without.shape == (2, 3) and len(set(without.ravel().tolist())) == 6
    weighted = RANDOM.choice(KEY, 3, (2,), replace=False, p=p)
    assert set(np.asarray(weighted).tolist()) == {0, 2}
    assert RANDOM.permutation(KEY, 0).shape == RANDOM.choice(KEY, 0, (0,)).shape == (0,)


def test_shapes_and_bounds_may_be_extents() -> None:
    @staged
    def drawn(k: Rep[Scalar[i64]], x: Rep[Tensor2D[f64]]) -> Any:
        p = NK.full(x.shape[:1], 0.5, f64)
        return (
            RANDOM.randint(k, (50,), 0, x.shape[0]),
            RANDOM.choice(k, x, (2,), replace=False),
            RANDOM.choice(k, x.shape[0], (3,), p=p),
            RANDOM.bernoulli(k, 0.5, x.shape),
            RANDOM.gumbel(k, x.shape, dtype=f64),
            RANDOM.categorical(k, x, shape=(4, x.shape[0])),
            RANDOM.truncated_normal(k, -1.0, x, x.shape),
            RANDOM.permutation(k, x.shape[0]),
        )

    for rows in (2, 5):
        x = Tensor2D(np.ones((rows, 3)))
        below, chosen, numbers, coins, gumbel, classes, bounded, order = drawn(KEY, x)
        assert set(np.asarray(below).tolist()) == set(range(rows))
        np.testing.assert_array_equal(
            array(gumbel), array(RANDOM.gumbel(KEY, (rows, 3), dtype=f64))
        )
        shapes = [(2, 3), (3,), (rows, 3), (4, rows), (rows, 3), (rows,)]
        values = (chosen, numbers, coins, classes, bounded, order)
        assert [value.shape for value in values] == shapes


def test_dropout() -> None:
    x = np.arange(1, 4001, dtype=np.float64).reshape(2, 2000)
    y = array(NK.dropout(Tensor2D(x), 0.25, KEY))
    kept = y != 0
    np.testing.assert_allclose(y[kept], x[kept] / 0.75, rtol=1e-15)
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_array_equal(array(NK.dropout(Tensor2D(x), 0.25, KEY)), y)
    assert (array(NK.dropout(Tensor2D(x), 0.25, RANDOM.key(6))) != y).any()
    np.testing.assert_array_equal(array(NK.dropout(Tensor2D(x), 0, KEY)), x)
    assert not array(NK.dropout(Tensor2D(np.full((2, 3), np.inf)), 1, KEY)).any()

    @staged
    def total(x: Rep[Tensor2D[f64]], rate: Rep[Scalar[f32]], k: Rep[Scalar[i64]]) -> Any:
        return NK.dropout(x, rate, k).sum() + NK.dropout(x, 0.25, k).sum()

    slope = array(NK.gradient(of=total, wrt=0)(Tensor2D(x), f32(0.25), KEY))
    np.testing.assert_allclose(slope, 2 * kept / 0.75)
    assert not array(NK.gradient(of=total, wrt=0)(Tensor2D(x), f32(1), KEY))[~kept].any()


def test_numbers_have_derivatives_by_their_parameters() -> None:
    @staged
    def drawn(low: Rep[Tensor1D[f64]], high: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
        return (RANDOM.truncated_normal(NK.const(KEY), low, high) ** 3.0).sum()

    NK.check_gradients(drawn, Tensor1D(np.array([-1.0, 0.3, -2.5])), f64(1.7), modes=("reverse",))


def test_a_batch_of_keys_and_of_distributions() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 3))

    @staged
    def one(k: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Scalar[i64]]:
        return RANDOM.categorical(k, x) + 3 * (NK.dropout(x, 0.5, k) != 0.0).cast(i64).sum()

    together = np.asarray(NK.vmap(one, in_axes=0)(Tensor1D(np.arange(5)), Tensor2D(logits)))
    alone = [int(one(i64(i), Tensor1D(row))) for i, row in enumerate(logits)]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: RANDOM.bernoulli(k, 1.5), "a probability lies between 0 and 1, not 1.5"),
        (lambda k: RANDOM.bernoulli(k, Tensor1D(np.zeros(3)), (4,)), "cannot broadcast"),
        (lambda k: RANDOM.randint(k, (3,), 4, 4), "low < high, not 4 and 4"),
        (lambda k: RANDOM.randint(k, (3,), 0, 300, dtype=i8), "cannot hold 299"),
        (lambda k: RANDOM.randint(k, (3,), 0, 9, dtype=f32), "randint makes integers, not f32"),
        (lambda k: RANDOM.randint(k, (3,), -(2**63), 2**63), "less than 2**63 integers"),
        (lambda k: RANDOM.gumbel(k, (3,), dtype=i32), "random numbers are floats, not i32"),
        (lambda k: RANDOM.gumbel(k, (-1,)), "at least 0, not -1"),
        (lambda k: RANDOM.truncated_normal(k, 1.0, 1.0), "lower < upper, not 1.0 and 1.0"),
        (lambda k: RANDOM.categorical(k, f32(1.0)), "rank 0"),
        (lambda k: RANDOM.categorical(k, Tensor1D(np.zeros(3)), 1), "axis 1 does not exist"),
        (lambda k: RANDOM.categorical(k, Tensor2D(np.zeros((3, 2))), shape=()), "fewer axes"),
        (lambda k: RANDOM.categorical(k, Tensor1D(np.zeros(3, int))), "floats, not i64"),
        (lambda k: RANDOM.permutation(k, f32(1.0)), "an int, or a tensor of rank 1"),
        (lambda k: RANDOM.choice(k, 3, (4,), replace=False), "choice of 4 from 3 without replacement"),
        (lambda k: RANDOM.choice(k, 0, (4,)), "choice from nothing"),
        (lambda k: RANDOM.choice(k, 3, (4,), p=Tensor1D(np.ones(2))), "cannot reshape f64[2] to [3]"),
        (lambda k: RANDOM.choice(k, 3, (4,), p=Tensor1D(np.ones(3, int))), "a vector of floats"),
        (lambda k: NK.dropout(Tensor1D(np.zeros(3)), 1.5, k), "a rate lies between 0 and 1, not 1.5"),
        (lambda k: NK.dropout(Tensor1D(np.zeros(3, int)), 0.5, k), "dropout takes floats"),
        (lambda k: NK.dropout(k, Tensor1D(np.zeros(3)), 0.5), "dropout takes floats"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)  # fmt: skip
def test_misuse_is_explained(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(NNKitError) as caught:
        call(KEY)
    assert message in str(caught.value)
