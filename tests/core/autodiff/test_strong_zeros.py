"""Zeros that no infinite factor may wake, and programs that pay nothing for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.types import I64, TensorType

from .building import Term, call, count, declare, define, differentiate, gradient_of, tensor


def where_positive(x: Term, chosen: Term) -> Term:
    """select(x > 0, chosen, 0)."""
    zero = x * 0.0
    return chosen.apply(ops.Select(), zero, x.apply(ops.GreaterThan(), 0.0))


def logistic(x: Term) -> Term:
    return (x.apply(ops.Negate()).apply(ops.Exp()) + 1.0).apply(ops.Log())


BLIND: dict[str, tuple[Callable[[Term], Term], float]] = {
    "sqrt": (lambda x: x.apply(ops.Sqrt()), 0.0),
    "log": (lambda x: x.apply(ops.Log()), 0.0),
    "reciprocal": (lambda x: x.apply(ops.Square()) / x, 0.0),
    "rsqrt": (lambda x: x.apply(ops.Rsqrt()), 0.0),
    "power": (lambda x: x.apply(ops.Power(), 0.5), 0.0),
    "negative base": (lambda x: x.apply(ops.Power(), 1.5), -2.0),
    "overflow": (lambda x: (x * -10.0).apply(ops.Exp()).apply(ops.Square()), -100.0),
    "far": (lambda x: logistic(logistic(x * 500.0)), -4.0),
    "asin": (lambda x: x.apply(ops.Asin()), -1.0),
    "sum between": (lambda x: x.apply(ops.Sqrt()) + x.apply(ops.Log()), 0.0),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_branch_not_taken_contributes_zero(name: str) -> None:
    function, at = BLIND[name]
    module = gradient_of([tensor()], lambda x: where_positive(x, function(x)))
    assert evaluate(module, "df", at) == 0.0
    finite = evaluate(module, "df", 0.5)
    assert np.isfinite(finite) and finite != 0.0


def test_a_sinc_chosen_at_zero_has_derivative_zero_there() -> None:
    def sinc(x: Term) -> Term:
        one = x * 0.0 + 1.0
        return one.apply(ops.Select(), x.apply(ops.Sin()) / x, x.apply(ops.Equal(), 0.0))

    module = gradient_of([tensor()], sinc)
    assert evaluate(module, "df", 0.0) == 0.0
    assert evaluate(module, "df", 1.0) == pytest.approx(np.cos(1) - np.sin(1), rel=1e-14)


def test_a_choice_in_front_of_a_root() -> None:
    """The root's cotangent is infinite where the choice gave it a zero, and stops at the choice."""
    module = gradient_of([tensor()], lambda x: where_positive(x, x).apply(ops.Sqrt()))
    assert evaluate(module, "df", -1.0) == 0.0
    assert evaluate(module, "df", 4.0) == 0.25


def test_elements_that_were_not_taken() -> None:
    for op in (ops.Slice((1,), (3,)), ops.Reduce(ops.Combinator.MAX, (0,))):
        module = gradient_of([tensor(3)], lambda x, op=op: x.apply(ops.Sqrt()).apply(op))
        found = evaluate(module, "df", np.array([0.0, 1.0, 4.0]))
        assert found[0] == 0.0
        assert np.all(np.isfinite(found))


def test_elements_that_were_not_gathered() -> None:
    module = gradient_of(
        [tensor(3), TensorType((2,), I64)],
        lambda x, at: x.apply(ops.Sqrt()).apply(ops.Gather(0), at),
        wrt=(0,),
    )
    found = evaluate(module, "df", np.array([0.0, 1.0, 4.0]), np.array([1, 1]))
    np.testing.assert_array_equal(found, [0.0, 1.0, 0.0])


def test_the_lesser_of_two() -> None:
    module = gradient_of([tensor()], lambda x: x.apply(ops.Sqrt()).apply(ops.Maximum(), 1.0))
    assert evaluate(module, "df", 0.0) == 0.0


def test_strong_zeros_pass_calls() -> None:
    module = Module()
    root = define(module, "root", [tensor()], lambda x: x.apply(ops.Sqrt()) * 2.0)
    outer = define(module, "outer", [tensor()], lambda x: call(root, x) + 1.0)
    define(module, "f", [tensor()], lambda x: where_positive(x, call(outer, x)))
    define(module, "inside", [tensor()], lambda x: where_positive(x, x * 3.0))
    inside = module.functions["inside"]
    define(module, "g", [tensor()], lambda x: call(inside, x.apply(ops.Sqrt())))
    declare(module, "df", "f")
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "df", 0.0) == 0.0
    assert evaluate(module, "df", 4.0) == 0.5
    assert evaluate(module, "dg", 0.0) == 0.0
    assert evaluate(module, "dg", 4.0) == 0.75


def test_second_derivatives_at_a_branch_not_taken() -> None:
    module = Module()
    define(module, "f", [tensor()], lambda x: where_positive(x, x.apply(ops.Sqrt()) * x))
    declare(module, "df", "f")
    declare(module, "ddf", "df")
    differentiate(module)
    assert evaluate(module, "ddf", 0.0) == 0.0
    assert evaluate(module, "ddf", 4.0) == pytest.approx(0.75 / 2, rel=1e-14)


def test_a_cotangent_that_is_zero_by_chance_has_its_derivative() -> None:
    """∂²/∂x∂y of x · sin y is cos y, also at x = 0, where the cotangent of the sine is zero."""
    module = Module()
    define(
        module, "f", [tensor(), tensor()], lambda x, y: where_positive(y, x * y.apply(ops.Sin()))
    )
    declare(module, "by_y", "f", wrt=(1,))
    declare(module, "mixed", "by_y", wrt=(0,))
    differentiate(module)
    assert evaluate(module, "mixed", 0.0, 1.0) == pytest.approx(np.cos(1.0), rel=1e-15)


def softmax_cross_entropy(logits: Term, target: Term) -> Term:
    shifted = logits - logits.max(1).apply(ops.ShapeCast((4, 1)))
    total = shifted.apply(ops.Exp()).sum(1).apply(ops.Log()).apply(ops.ShapeCast((4, 1)))
    return ((shifted - total) * target).sum() * -0.25


def cross_entropy_of_labels(logits: Term, labels: Term) -> Term:
    shifted = logits - logits.max(1).apply(ops.stopping.StopGradient()).apply(ops.ShapeCast((4, 1)))
    logs = shifted - shifted.apply(ops.Exp()).sum(1).apply(ops.Log()).apply(ops.ShapeCast((4, 1)))
    column = labels.apply(ops.ShapeCast((4, 1)))
    classes = Term(labels.b, labels.b.emit(ops.Iota((3,), 0, I64)))
    chosen = classes.apply(ops.Equal(), column)
    return logs.apply(ops.Select(), 0.0, chosen).sum() * -0.25


def cross_entropy_by_gather(logits: Term, labels: Term) -> Term:
    shifted = logits - logits.max(1).apply(ops.ShapeCast((4, 1)))
    logs = shifted - shifted.apply(ops.Exp()).sum(1).apply(ops.Log()).apply(ops.ShapeCast((4, 1)))
    return logs.apply(ops.Gather(1), labels).sum() * -0.25


@pytest.mark.parametrize("loss", [cross_entropy_of_labels, cross_entropy_by_gather])
def test_losses_that_choose_a_label_have_no_guards(loss: Callable[[Term, Term], Term]) -> None:
    module = gradient_of([tensor(4, 3), TensorType((4,), I64)], loss, wrt=(0,))
    assert count(module.functions["df"])["notEqual"] == 0


def test_ordinary_networks_have_no_guards() -> None:
    def network(x: Term, w: Term, v: Term, target: Term) -> Term:
        hidden = where_positive(x @ w, x @ w)
        return softmax_cross_entropy(hidden @ v, target)

    types = [tensor(4, 5), tensor(5, 6), tensor(6, 3), tensor(4, 3)]
    module = gradient_of(types, network, wrt=(1, 2))
    assert count(module.functions["df"])["notEqual"] == 0
    module = gradient_of([tensor(4, 3), tensor(4, 3)], softmax_cross_entropy, wrt=(0,))
    assert count(module.functions["df"])["notEqual"] == 0
    assert count(module.functions["df"])["and"] == 0
