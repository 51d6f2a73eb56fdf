"""Optimizers against their formulas in NumPy, of structs with lists; training steps, donated and not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DonationError,
    Field,
    Rep,
    Scalar,
    StagingError,
    Struct,
    Tensor1D,
    Tensor2D,
    f32,
    f64,
    i32,
    optim,
)
from nnkit.optimizers import Adam, Optimizer


class Layer(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


class Net(Struct):
    layers: Field[list[Layer]]
    shift: Field[Scalar[f64]]
    uses: Field[Scalar[i32]]


RANDOM = np.random.default_rng(3)
NET = Net(
    [
        Layer(RANDOM.normal(size=(3, 2)), np.zeros(2)),
        Layer(RANDOM.normal(size=(2, 1)), np.ones(1)),
    ],
    0.5,
    7,
)
X, Y = RANDOM.normal(size=(8, 3)), RANDOM.normal(size=(8, 1))


@nk.staged
def loss(p: Rep[Net], x: Rep[Tensor2D[f64]], y: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
    for layer in p[Net.layers]:
        x = nk.tanh(x @ layer[Layer.w] + layer[Layer.b])
    return nk.square(x + p[Net.shift] - y).mean()


slopes = nk.gradient(of=loss, wrt=0)


def schedule(t: Any) -> Any:
    return 0.1 / (1.0 + t.cast(f64))


Leaf = Any
State = list[Leaf]


def sgd(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    return p - 0.1 * g, s


def scheduled(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    return p - 0.1 / t * g, s


def momentum(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    v = 0.8 * s[0] + g
    return p - 0.1 * v, [v]


def nesterov(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    v = 0.9 * s[0] + g
    return p - 0.1 * (g + 0.9 * v), [v]


def adam(p: Leaf, g: Leaf, s: State, t: int, decay: float = 0.0) -> tuple[Leaf, State]:
    m, v = 0.9 * s[0] + 0.1 * g, 0.99 * s[1] + 0.01 * g**2
    found = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    return p - 0.05 * (found + decay * p), [m, v]


def adamw(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    return adam(p, g, s, t, 0.3)


def rmsprop(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    v = 0.9 * s[0] + (1 - 0.9) * g**2
    return p - 0.01 * g / (np.sqrt(v) + 1e-8), [v]


def adagrad(p: Leaf, g: Leaf, s: State, t: int) -> tuple[Leaf, State]:
    v = s[0] + g**2
    return p - 0.1 * g / (np.sqrt(v) + 1e-10), [v]


ROWS: list[tuple[Optimizer, Callable[..., tuple[Leaf, State]]]] = [
    (optim.sgd(0.1), sgd),
    (optim.sgd(schedule), scheduled),
    (optim.momentum(0.1, decay=0.8), momentum),
    (optim.momentum(0.1, nesterov=True), nesterov),
    (optim.rmsprop(decay=0.9), rmsprop),
    (optim.adagrad(0.1), adagrad),
    (optim.adam(0.05, beta2=0.99), adam),
    (optim.adamw(0.05, beta2=0.99, weight_decay=0.3), adamw),
]


def arrays(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in nk.tree.leaves(tree)]


@pytest.mark.parametrize(
    ("optimizer", "formula"), ROWS, ids=lambda row: getattr(row, "__name__", "")
)
def test_steps_are_those_of_the_formula(optimizer: Any, formula: Any) -> None:
    params: Any = NET
    state: Any = optimizer.init(params)
    wanted, kept = arrays(NET), [[0.0 * leaf] * optimizer.moments for leaf in arrays(NET)]
    step = optim.training_step(loss, optimizer=optimizer, donated=False)
    for t in range(1, 4):
        before = float(loss(params, X, Y))
        found = arrays(slopes(params, X, Y))
        params, state, value = step(params, state, X, Y)
        assert float(value) == pytest.approx(before)
        for k, g in enumerate(found):
            if wanted[k].dtype != np.int32:
                wanted[k], kept[k] = formula(wanted[k], g, kept[k], t)
    assert type(params) is Net and int(params.uses) == 7 and int(state[0]) == 3
    for one, other in zip(arrays(params), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    for number, moment in enumerate(state[1:]):
        for one, rest in zip(arrays(moment), kept, strict=True):
            np.testing.assert_allclose(one, rest[number], rtol=1e-10, atol=1e-12)


def test_a_step_updates_in_place() -> None:
    optimizer = optim.adam(0.05)
    step = optim.training_step(loss, optimizer=optimizer, clip_norm=1.0)
    params, state, values = nk.tree.map(np.array, NET), optimizer.init(NET), list[float]()
    for _ in range(30):
        old = params
        params, state, value = step(params, state, X, Y)
        values.append(float(value))
        with pytest.raises(DonationError):
            old.layers[0].w.numpy()
    assert values[-1] < 0.7 * values[0] and step.cache_size() == 1


def test_norms_of_trees() -> None:
    tree = (Tensor1D([3.0, 0.0], f32), [Tensor1D([4.0], f32), i32(100)])
    norm = optim.global_norm(tree)
    assert norm.dtype is f32 and float(norm) == 5.0
    clipped: Any = optim.clip_by_global_norm(tree, 2.5)
    assert clipped[0].tolist() == [1.5, 0.0] and clipped[1][0].tolist() == [2.0]
    assert int(clipped[1][1]) == 100
    kept: Any = optim.clip_by_global_norm(tree, 10.0)
    assert kept[0].tolist() == [3.0, 0.0]
    wide = optim.global_norm((Tensor1D([3e-200, 4e-200], f64),))
    assert wide.dtype is f64

    @nk.staged
    def of_struct(p: Rep[Net]) -> tuple[Rep[Net], Rep[Scalar[f64]]]:
        return optim.clip_by_global_norm(p, 0.5), optim.global_norm(p)

    small, norm64 = of_struct(NET)
    floats = [leaf for leaf in arrays(NET) if leaf.dtype != np.int32]
    assert float(norm64) == pytest.approx(np.sqrt(sum((x**2).sum() for x in floats)))
    assert float(of_struct(small)[1]) == pytest.approx(0.5)
    zero = nk.tree.map(lambda x: 0 * np.asarray(x), NET)
    assert of_struct(zero)[0] == zero


def test_the_first_step_of_adam_is_exact_in_f32() -> None:
    """1 − 0.999 in f32 would be off by 1e-5 of itself."""

    @nk.staged
    def first(p: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        (new,), _ = Adam(0.5, eps=0.0).update((p * 3.0,), Adam(0.5).init((p,)), (p,))
        return new  # type: ignore[no-any-return]  # of a tuple

    values = np.array([1.0, -2.0, 1e-3], np.float32)
    np.testing.assert_allclose(first(values), values - 0.5 * np.sign(values), rtol=3e-7)


def test_misuse() -> None:
    for make, message in (
        (lambda: optim.sgd(-1.0), "learning_rate of sgd is a number from 0 on, not -1.0"),
        (lambda: optim.adam(beta1=1.0), "beta1 of adam is a number from 0 to below 1, not 1.0"),
        (lambda: optim.momentum(0.1, decay=2.0), "decay of momentum"),
        (
            lambda: optim.rmsprop(decay=1.0),
            "decay of rmsprop is a number from 0 to below 1, not 1.0",
        ),
        (lambda: optim.rmsprop(alpha=0.9), "write `decay=` for `alpha=`"),  # type: ignore[call-arg]
        (lambda: optim.rmsprop(momentum=0.9), "RMSProp has none here"),  # type: ignore[call-arg]
        (lambda: optim.adagrad(eps=-1.0), "eps of adagrad is a number from 0 on"),
        (lambda: optim.clip_by_global_norm(NET, 0.0), "max_norm is a positive number"),
        (lambda: optim.training_step(loss, optimizer=0.1), r"optimizer=nk\.optim\.adam"),  # type: ignore[call-overload]
        (lambda: optim.training_step(oops, optimizer=optim.sgd(0.1)), "decorate it with @"),  # type: ignore[call-overload]
    ):
        with pytest.raises(StagingError) as caught:
            make()
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert re.search(message, text), text
    with pytest.raises(AttributeError, match=r"nk\.optim\.adamw"):
        _ = optim.adamww  # type: ignore[attr-defined]


def oops(p: Any) -> Any:
    return p


def test_a_loss_with_other_results_is_differentiated_by_its_first() -> None:
    @nk.staged
    def both(
        p: Rep[Tensor1D[f64]], x: Rep[Tensor2D[f64]]
    ) -> tuple[Rep[Scalar[f64]], Rep[Tensor1D[f64]], Rep[Scalar[f64]]]:
        r = x @ p - 1
        return nk.square(r).sum(), r, r.max()

    @nk.staged
    def no_loss(p: Rep[Tensor1D[f64]]) -> tuple[Rep[Tensor1D[f64]], Rep[Scalar[f64]]]:
        return p, p.sum()

    x, p, sgd = np.array([[2.0, 0.0], [0.0, 3.0]]), Tensor1D(np.ones(2)), nk.optim.sgd(0.1)
    step = nk.optim.training_step(both, optimizer=sgd, donated=False)
    new, _, (value, r, most) = step(p, sgd.init(p), Tensor2D(x))
    residuals = x @ np.ones(2) - 1
    np.testing.assert_allclose(new.numpy(), 1 - 0.1 * 2 * x.T @ residuals)
    assert (float(value), float(most)) == ((residuals**2).sum(), residuals.max())
    np.testing.assert_allclose(r.numpy(), residuals)
    with pytest.raises(
        nk.DifferentiationError, match=r"first result, .* no_loss is a Tensor1D\[f64\]"
    ):
        nk.optim.training_step(no_loss, optimizer=sgd)  # type: ignore[type-var]
