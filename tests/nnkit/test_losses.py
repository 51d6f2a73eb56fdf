"""Losses, activations and normalisations: values and derivatives of both orders, at kinks and ends too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import mpmath
import numpy as np

import nnkit as nk
from nnkit import f32, staged
from nnkit.core.types import Array

from .function_laws import Row, check
from .modes import derivatives

random = np.random.default_rng(5)
X, Y = random.uniform(-2, 2, (2, 3, 4))
P, Q = (a / a.sum(1, keepdims=True) for a in random.uniform(0.1, 1, (2, 3, 4)))
IMAGES = random.normal(size=(2, 4, 3))
C1, C2, C3, C4 = random.uniform(0.5, 2, (4, 4))


def standardized(x: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    return np.asarray(
        (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    )


def huber(d: Array, delta: float) -> Array:
    return np.where(abs(d) <= delta, d * d / 2, delta * (abs(d) - delta / 2))


def logistic(z: Array, y: Array) -> Array:
    return np.logaddexp(0, z) - y * z


def logs(x: Array) -> Array:
    return np.asarray(x - np.log(np.exp(x).sum(-1, keepdims=True)))


def by_classes(x: Array, n: Array, w: Array) -> list[Any]:
    """Cross entropies of rows by class numbers: weighted, each, smoothed, both without the class 3, and without it."""
    losses = -logs(x)
    own = losses[np.arange(len(n)), n]
    kept = n != 3
    both = 0.8 * own * w[n] + 0.2 * (losses * w).mean(1)
    return [
        (own * w[n]).sum() / w[n].sum(),
        own,
        (0.9 * own + 0.1 * losses.mean(1)).sum(),
        both[kept].sum() / w[n][kept].sum(),
        own[kept].mean(),
    ]


def unit(x: Array, axis: int = -1) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=axis, keepdims=True))


def columns(v: Array) -> Array:
    return v[:, None]


def test_laws_of_activations() -> None:
    check(
        {
            "silu": Row(nk.silu, lambda x: x / (1 + np.exp(-x)), (X,)),
            "swish": Row(nk.swish, lambda x: x / (1 + np.exp(-x)), (X,)),
            "mish": Row(nk.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), (X,)),
            "log_sigmoid": Row(nk.log_sigmoid, lambda x: -np.logaddexp(0, -x), (X,)),
            "leaky_relu": Row(nk.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), (X,)),
            "slope": Row(
                lambda x: nk.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x), (X,)
            ),
            "elu": Row(
                lambda x: nk.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), (X,)
            ),
            "celu": Row(
                lambda x: nk.celu(x, 0.7),
                lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)),
                (X,),
            ),
            "selu": Row(
                nk.selu,
                lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
                (X,),
            ),
            "relu6": Row(lambda x: nk.relu6(4 * x), lambda x: np.clip(4 * x, 0, 6), (X,)),
            "hard_tanh": Row(nk.hard_tanh, lambda x: np.clip(x, -1, 1), (X,)),
            "hard_sigmoid": Row(
                lambda x: nk.hard_sigmoid(3 * x), lambda x: np.clip(3 * x + 3, 0, 6) / 6, (X,)
            ),
            "hard_swish": Row(
                lambda x: nk.hard_swish(3 * x), lambda x: x * np.clip(3 * x + 3, 0, 6) / 2, (X,)
            ),
        }
    )


LOSSES: dict[str, Row] = {
    "mse": Row(nk.mse, lambda x, y: np.mean((x - y) ** 2), (X, Y)),
    "mse of a number": Row(lambda x: nk.mse(x, 0.5), lambda x: np.mean((x - 0.5) ** 2), (X,)),
    "huber": Row(
        lambda x, y: nk.huber(x, y, delta=0.7, reduction="sum"),
        lambda x, y: huber(x - y, 0.7).sum(),
        (X, Y),
    ),
    "smooth_l1": Row(
        lambda x, y: nk.smooth_l1(x, y, beta=0.7, reduction="none"),
        lambda x, y: huber(x - y, 0.7) / 0.7,
        (X, Y),
    ),
    "binary_cross_entropy": Row(
        nk.binary_cross_entropy, lambda x, y: logistic(x, y).mean(), (X, P)
    ),
    "its weights": Row(
        lambda x, y, p: nk.binary_cross_entropy(x, y, weight=p / 2.0, pos_weight=p),
        lambda x, y, p: (
            p / 2 * (p * y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x))
        ).mean(),
        (X, P, C1),
    ),
    "weights that are numbers": Row(
        lambda x, y: nk.binary_cross_entropy(x, y, weight=2, pos_weight=0.5, reduction="none"),
        lambda x, y: np.where(y, np.logaddexp(0, -x), 2 * np.logaddexp(0, x)),
        (X, Y > 0),
    ),
    "classes": Row(
        lambda x, n, w: (
            nk.cross_entropy(x, n, weight=w),
            nk.cross_entropy(x, n, reduction="none"),
            nk.cross_entropy(x, n, label_smoothing=0.1, reduction="sum"),
            nk.cross_entropy(x, n, weight=w, label_smoothing=0.2, ignore_index=3),
            nk.cross_entropy(x, n, ignore_index=3),
        ),
        by_classes,
        (X, np.array([2, 3, 0]), C1),
        batched=(0,),
    ),
    "smoothed probabilities": Row(
        lambda x, p, w: nk.cross_entropy(x, p, weight=w, label_smoothing=0.3),
        lambda x, p, w: -((0.7 * p + 0.075) * logs(x) * w).sum(1).mean(),
        (X, P, C1),
    ),
    "its labels": Row(
        lambda x, y: nk.binary_cross_entropy(x, y, reduction="none"),
        logistic,
        (X, Y > 0),
    ),
    "kl_divergence": Row(
        nk.kl_divergence,
        lambda q, p: (p * (np.log(p) - q)).sum(-1).mean(),
        (np.log(Q), P),
    ),
    "kl_divergence of each": Row(
        lambda q, p: nk.kl_divergence(q, p, reduction="none"),
        lambda q, p: (p * (np.log(p) - q)).sum(-1),
        (np.log(Q), P),
    ),
}


def test_laws_of_losses() -> None:
    check(LOSSES)


def test_laws_of_normalizations() -> None:
    check(
        {
            "cosine_similarity": Row(
                nk.cosine_similarity, lambda x, y: (unit(x) * unit(y)).sum(-1), (X, Y)
            ),
            "normalize": Row(lambda x: nk.normalize(x, 0), lambda x: unit(x, 0), (X,)),
            "rms_norm": Row(
                nk.rms_norm,
                lambda x, s: s * x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5),
                (X, C1),
            ),
            "batch_norm": Row(
                nk.batch_norm,
                lambda x, s, o: standardized(x, (0, 2)) * columns(s) + columns(o),
                (IMAGES, C1, C2),
            ),
            "batch_norm of vectors": Row(nk.batch_norm, lambda x: standardized(x, 0), (X,)),
            "batch_norm by running ones": Row(
                lambda x, s, o, m, v: nk.batch_norm(x, s, o, mean=m, var=v, epsilon=1e-3),
                lambda x, s, o, m, v: (
                    (x - columns(m)) / np.sqrt(columns(v) + 1e-3) * columns(s) + columns(o)
                ),
                (IMAGES, C1, C2, C3, C4),
            ),
            "group_norm": Row(
                lambda x, s, o: nk.group_norm(x, 2, s, o),
                lambda x, s, o: (
                    standardized(x.reshape(2, 2, 2, 3), (2, 3)).reshape(2, 4, 3) * columns(s)
                    + columns(o)
                ),
                (IMAGES, C1, C2),
            ),
            "instance_norm": Row(nk.instance_norm, lambda x: standardized(x, 2), (IMAGES,)),
        }
    )


Law = Callable[[Any], Any]
mp: Final = mpmath.mp

ELU: Final = (lambda x: x if x > 0 else mp.expm1(x)), 0
SMOOTH: Final[dict[str, tuple[Law, Law]]] = {
    "softplus": (nk.softplus, lambda x: mp.log1p(mp.exp(x))),
    "silu": (nk.silu, lambda x: x / (1 + mp.exp(-x))),
    "mish": (nk.mish, lambda x: x * mp.tanh(mp.log1p(mp.exp(x)))),
    "log_sigmoid": (nk.log_sigmoid, lambda x: -mp.log1p(mp.exp(-x))),
    "binary_cross_entropy by 0": (
        lambda x: nk.binary_cross_entropy(x, 0.0, reduction="none"),
        lambda x: mp.log1p(mp.exp(x)),
    ),
    "binary_cross_entropy by 1": (
        lambda x: nk.binary_cross_entropy(x, 1.0, reduction="none"),
        lambda x: mp.log1p(mp.exp(-x)),
    ),
    "binary_cross_entropy by 0.3": (
        lambda x: nk.binary_cross_entropy(x, 0.3, reduction="none"),
        lambda x: mp.log1p(mp.exp(x)) - mp.mpf(0.3) * x,
    ),
    "logaddexp": (lambda x: nk.logaddexp(x, 0 * x + 1.0), lambda x: mp.log(mp.exp(x) + mp.e)),
}
POINTS: Final = np.array(
    [0.0, -0.0, 1.0, 1e-9, -1e-9, 0.3, -2.5, 17.0, -17.0, 40.0, -40.0, 650.0, -650.0]
)


def all_of(functions: dict[str, tuple[Law, Any]]) -> Law:
    """The functions of one vector, their results one after the other: rows of a matrix."""
    return lambda x: nk.stack([ours(x[k]) for k, (ours, _) in enumerate(functions.values())])


def test_smooth_functions_are_right_twice_at_zero_and_far_away() -> None:
    given = np.tile(POINTS, (len(SMOOTH), 1))
    found = {"": np.asarray(staged(all_of(SMOOTH))(given)), **derivatives(all_of(SMOOTH), given)}
    with mpmath.workdps(400):
        wanted = {
            order: np.array(
                [
                    [float(mp.diff(law, mp.mpf(float(x)), order)) for x in POINTS]
                    for _, law in SMOOTH.values()
                ]
            )
            for order in range(3)
        }
    for mode, got in found.items():
        order = len(mode.removeprefix("native ")) if mode else 0
        for name, one, other in zip(SMOOTH, got, wanted[order], strict=True):
            np.testing.assert_allclose(one, other, 1e-13, 1e-13 if order else 0, f"{name}, {mode}")


KINKS: Final[dict[str, tuple[Law, tuple[tuple[float, float, float, float], ...]]]] = {
    "leaky_relu": (lambda x: nk.leaky_relu(x, 0.2), ((0, 0, 0.2, 0), (2, 2, 1, 0))),
    "elu": (lambda x: nk.elu(x, 0.5), ((0, 0, 0.5, 0.5), (900, 900, 1, 0), (-900, -0.5, 0, 0))),
    "celu": (lambda x: nk.celu(x, 0.5), ((0, 0, 1, 2), (900, 900, 1, 0), (-900, -0.5, 0, 0))),
    "relu6": (nk.relu6, ((0, 0, 0, 0), (6, 6, 0, 0), (3, 3, 1, 0))),
    "hard_tanh": (nk.hard_tanh, ((-1, -1, 0, 0), (1, 1, 0, 0), (0.5, 0.5, 1, 0))),
    "hard_sigmoid": (nk.hard_sigmoid, ((-3, 0, 0, 0), (3, 1, 0, 0), (0, 0.5, 1 / 6, 0))),
    "hard_swish": (nk.hard_swish, ((-3, 0, 0, 0), (3, 3, 1, 0), (0, 0, 0.5, 1 / 3))),
    "huber": (
        lambda x: nk.huber(x, 0.0, delta=2.0, reduction="none"),
        ((2, 2, 2, 1), (-2, 2, -2, 1), (0, 0, 0, 1), (3, 4, 2, 0), (1e200, 2e200, 2, 0)),
    ),
    "smooth_l1": (
        lambda x: nk.smooth_l1(x, 0.0, beta=2.0, reduction="none"),
        ((2, 1, 1, 0.5), (-2, 1, -1, 0.5), (0, 0, 0, 0.5), (1e300, 1e300, 1, 0)),
    ),
    "silu": (nk.silu, ((np.inf, np.inf, 1, 0), (-np.inf, 0, 0, 0))),
    "mish": (nk.mish, ((np.inf, np.inf, 1, 0), (-np.inf, 0, 0, 0))),
    "log_sigmoid": (nk.log_sigmoid, ((np.inf, 0, 0, 0), (-np.inf, -np.inf, 1, 0))),
    "hard_swish far": (nk.hard_swish, ((np.inf, np.inf, 1, 0), (-np.inf, 0, 0, 0))),
    "binary_cross_entropy": (
        lambda x: nk.binary_cross_entropy(x, 1.0, reduction="none"),
        ((np.inf, 0, 0, 0), (-np.inf, np.inf, -1, 0)),
    ),
}  # fmt: skip
"""By name: a point, and there the value, the first and the second derivative."""


def test_kinks_and_ends_are_as_documented() -> None:
    rows = list(itertools.zip_longest(*(rows for _, rows in KINKS.values())))
    table = np.array([[cell or (0.5,) * 4 for cell in row] for row in rows]).transpose(2, 1, 0)
    present = np.array([[cell is not None for cell in row] for row in rows]).T
    found = {
        "": np.asarray(staged(all_of(KINKS))(table[0])),
        **derivatives(all_of(KINKS), table[0]),
    }
    for mode, got in found.items():
        wanted = table[1 + (len(mode.removeprefix("native ")) if mode else 0)]
        for k, name in enumerate(KINKS):
            at = present[k]
            np.testing.assert_allclose(got[k][at], wanted[k][at], 1e-14, 1e-300, f"{name}, {mode}")


def test_nan_stays_nan() -> None:
    given = np.full((len(KINKS), 1), np.nan)
    assert np.isnan(np.asarray(staged(all_of(KINKS))(given))).all()


def test_zero_vectors() -> None:
    x, y = np.zeros(3), np.array([3.0, 0.0, 4.0])
    similarity = staged(nk.cosine_similarity)
    assert float(similarity(x, y)) == 0
    slope = np.asarray(nk.gradient(of=similarity, wrt=0)(x, y))
    np.testing.assert_allclose(slope, y / 5 * 1e8)
    for function, size in ((nk.normalize, 1e12), (nk.rms_norm, 1e-5**-0.5)):
        made = staged(function)
        np.testing.assert_array_equal(np.asarray(made(x)), x)
        np.testing.assert_allclose(np.asarray(nk.jacobian(made)(x)), np.eye(3) * size, 1e-14)


def test_a_target_of_probability_zero_has_no_part() -> None:
    q, p = np.log(np.array([[0.5, 0.5, 1e-300]])), np.array([[0.25, 0.75, 0.0]])
    q[0, 2] = -np.inf
    value, slope = nk.value_and_gradient(of=staged(nk.kl_divergence), wrt=(0, 1))(q, p)
    np.testing.assert_allclose(float(value), 0.25 * np.log(0.5) + 0.75 * np.log(1.5))
    np.testing.assert_allclose(np.asarray(slope[0]), -p)
    np.testing.assert_allclose(
        np.asarray(slope[1]), np.array([[np.log(0.5) + 1, np.log(1.5) + 1, 0]])
    )


def test_newton_fits_a_logistic_regression_from_zero() -> None:
    features = np.column_stack([np.ones(40), random.normal(size=(40, 2))])
    labels = (features @ [0.5, 1.0, -2.0] + random.logistic(size=40) > 0).astype(float)

    @staged
    def loss(w: Any, x: Any, y: Any) -> Any:
        return nk.binary_cross_entropy(x @ w, y)

    w, slope, curvature = np.zeros(3), nk.gradient(of=loss, wrt=0), nk.hessian(loss)
    for _ in range(8):
        step = np.linalg.solve(
            curvature(w, features, labels), np.asarray(slope(w, features, labels))
        )
        w = w - step
    assert np.abs(step).max() < 1e-12
    chances = 1 / (1 + np.exp(-features @ w))
    np.testing.assert_allclose(features.T @ (chances - labels), 0, atol=1e-12)


def test_halves_are_computed_in_f32() -> None:
    x = np.array([[300.0, -40.0, 0.001, 1.0]], np.float16)
    wide = x.astype(np.float32)

    @staged
    def found(x: Any) -> Any:
        return tuple(
            value if value.spec.rank == 2 else value.reshape(1, 1)
            for value in (
                nk.rms_norm(x),
                nk.normalize(x),
                nk.mse(x, 0.0),
                nk.elu(x),
                nk.batch_norm(x),
            )
        )

    wanted = (
        wide / np.sqrt((wide**2).mean()),
        unit(wide),
        [[(wide**2).mean()]],
        np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0))),
        0 * wide,
    )
    for got, want in zip(found(x), wanted, strict=True):
        assert np.asarray(got).dtype == np.float16
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want).astype(np.float16))
    assert (
        np.asarray(staged(lambda x: nk.mse(x, x, reduction="none"))(wide)).dtype == f32.core.numpy
    )
