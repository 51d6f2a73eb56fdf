"""Ties, kinks and edges: the rows of `docs/semantics.md`, which names these tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Op
from nnkit.core.ops.builtin import definition_of
from nnkit.core.ops.combinator import Combinator
from nnkit.core.types import F64, I32
from tests.recipes import operand_count

from .building import Term, declare, define, differentiate, gradient_of, tensor
from .forward import forward

DOCUMENT = Path(__file__).parents[3] / "docs" / "semantics.md"
inf, nan = np.inf, np.nan


def both_ways(body: Callable[..., Term], *at: float) -> tuple[float, ...]:
    """The gradient by each scalar parameter, found in reverse and confirmed forward."""
    module = gradient_of([tensor()] * len(at), body)
    found = evaluate(module, "df", *at)
    gradients = tuple(map(float, found if len(at) > 1 else [found]))
    for position, gradient in enumerate(gradients):
        tangents = [np.ones(()) if k == position else None for k in range(len(at))]
        moved = forward(module, "f", [np.asarray(x) for x in at], tangents)
        np.testing.assert_array_equal(0.0 if moved is None else moved, gradient)
    return gradients


@pytest.mark.parametrize("op", [ops.Maximum(), ops.Minimum()])
def test_a_tie_of_two_splits_evenly(op: Op) -> None:
    assert both_ways(lambda x, y: x.apply(op, y), 2.0, 2.0) == (0.5, 0.5)
    assert both_ways(lambda x, y: x.apply(op, y), 0.0, -0.0) == (0.5, 0.5)


@pytest.mark.parametrize("combinator", [Combinator.MAX, Combinator.MIN])
def test_a_tie_in_a_reduction_splits_evenly(combinator: Combinator) -> None:
    x = np.array([1.0, 1.0, 1.0, 1.0])
    module = gradient_of([tensor(4)], lambda x: x.reduce(combinator))
    np.testing.assert_array_equal(evaluate(module, "df", x), np.full(4, 0.25))
    assert forward(module, "f", [x], [np.array([4.0, 0.0, 0.0, 0.0])]) == 1.0


def test_a_tie_in_a_running_maximum_splits_evenly() -> None:
    module = gradient_of([tensor(2)], lambda x: x.apply(ops.Scan(Combinator.MAX, 0)))
    found = evaluate(module, "df", np.array([1.0, 1.0]))
    np.testing.assert_array_equal(found, [1.5, 0.5])
    for k, slope in enumerate([1.5, 0.5]):
        moved = forward(module, "f", [np.array([1.0, 1.0])], [np.eye(2)[k]])
        assert moved is not None and moved.sum() == slope


def test_relu_has_derivative_zero_at_zero() -> None:
    def relu(x: Term) -> Term:
        return x.apply(ops.Select(), x * 0.0, x.apply(ops.GreaterThan(), 0.0))

    assert both_ways(relu, 0.0) == (0.0,)
    assert both_ways(relu, -0.0) == (0.0,)
    assert both_ways(relu, 1.0) == (1.0,)


def test_the_absolute_value_has_derivative_zero_at_zero() -> None:
    assert both_ways(lambda x: x.apply(ops.Abs()), 0.0) == (0.0,)
    assert both_ways(lambda x: x.apply(ops.Abs()), -3.0) == (-1.0,)


@pytest.mark.parametrize("op", [ops.Floor(), ops.Ceil(), ops.Round(), ops.Rint(), ops.Sign()])
def test_steps_have_derivative_zero_everywhere(op: Op) -> None:
    for at in (-0.5, 0.0, 1.0, 1.3):
        assert both_ways(lambda x: x.apply(op), at) == (0.0,)


def test_whole_quotients_have_derivative_zero_and_remainders_are_lines() -> None:
    assert both_ways(lambda x, y: x.apply(ops.FloorDivide(), y), 7.5, 2.0) == (0.0, 0.0)
    assert both_ways(lambda x, y: x.apply(ops.TruncateDivide(), y), 7.5, 2.0) == (0.0, 0.0)
    assert both_ways(lambda x, y: x.apply(ops.Modulo(), y), 7.5, 2.0) == (1.0, -3.0)
    assert both_ways(lambda x, y: x.apply(ops.Modulo(), y), -7.5, 2.0) == (1.0, 4.0)


def test_integers_and_truth_values_carry_no_derivative() -> None:
    def body(x: Term) -> Term:
        whole = x.apply(ops.DataTypeCast(I32)).apply(ops.DataTypeCast(F64))
        return x * whole

    assert both_ways(body, 2.5) == (2.0,)


def test_the_root_has_an_infinite_derivative_at_zero() -> None:
    assert both_ways(lambda x: x.apply(ops.Sqrt()), 0.0) == (inf,)
    assert both_ways(lambda x: x.apply(ops.Log()), 0.0) == (inf,)
    assert both_ways(lambda x: x.apply(ops.Rsqrt()), 0.0) == (-inf,)


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (0.0, 0.0, (0.0, 0.0)),
        (2.0, 0.0, (0.0, np.log(2.0))),
        (0.0, 1.0, (1.0, 0.0)),
        (0.0, 2.0, (0.0, 0.0)),
        (0.0, 0.5, (inf, 0.0)),
        (-2.0, 3.0, (12.0, nan)),
        (-2.0, 0.0, (0.0, nan)),
    ],
)
def test_powers_at_zero_and_below(
    base: float, exponent: float, expected: tuple[float, ...]
) -> None:
    np.testing.assert_array_equal(
        both_ways(lambda x, y: x.apply(ops.Power(), y), base, exponent), expected
    )


def test_a_product_with_zeros_has_the_products_of_the_others() -> None:
    module = gradient_of([tensor(3)], lambda x: x.reduce(Combinator.MULTIPLY))
    for given, expected in (([0, 2, 3], [6, 0, 0]), ([0, 0, 3], [0, 0, 0]), ([1, 2, 3], [6, 3, 2])):
        np.testing.assert_array_equal(evaluate(module, "df", np.array(given, float)), expected)


def norm(x: Term) -> Term:
    """√Σx², composed as users find it in the library."""
    total = x.apply(ops.Square()).sum()
    zero = total.apply(ops.Equal(), 0.0)
    one = Term(x.b, ops.constant(x.b, tensor(), 1.0))
    root = one.apply(ops.Select(), total, zero).apply(ops.Sqrt())
    return Term(x.b, ops.constant(x.b, tensor(), 0.0)).apply(ops.Select(), root, zero)


def test_the_norm_has_derivative_zero_at_zero() -> None:
    module = gradient_of([tensor(2)], norm)
    np.testing.assert_array_equal(evaluate(module, "df", np.zeros(2)), [0.0, 0.0])
    np.testing.assert_allclose(evaluate(module, "df", np.array([3.0, 4.0])), [0.6, 0.8])


def test_a_norm_without_a_choice_has_derivative_zero_at_zero() -> None:
    def body(x: Term) -> Term:
        return x.apply(ops.Square()).sum().apply(ops.Sqrt())

    module = gradient_of([tensor(2)], body)
    np.testing.assert_array_equal(evaluate(module, "df", np.zeros(2)), [0.0, 0.0])
    assert forward(module, "f", [np.zeros(2)], [np.ones(2)]) == 0.0


def test_a_factor_of_zero_hides_what_grows_as_fast() -> None:
    """(√x)² is x, of slope 1, which 0 · ∞ does not say."""
    assert both_ways(lambda x: x.apply(ops.Sqrt()).apply(ops.Square()), 0.0) == (0.0,)
    assert both_ways(lambda x: x.apply(ops.Sqrt()).apply(ops.Square()), 4.0) == (1.0,)


def logsumexp(x: Term) -> Term:
    """Shifted by the maximum where that is finite, and −∞ where all elements are."""
    top = x.max().apply(ops.stop_gradient.StopGradient())
    zero = Term(x.b, ops.constant(x.b, tensor(), 0.0))
    finite = top.apply(ops.Select(), zero, (top - top).apply(ops.Equal(), 0.0))
    total = (x - finite).apply(ops.Exp()).sum()
    some = total.apply(ops.GreaterThan(), 0.0)
    safe = total.apply(ops.Select(), zero + 1.0, some)
    return (safe.apply(ops.Log()) + finite).apply(ops.Select(), zero - inf, some)


def test_logsumexp_of_nothing_but_minus_infinity_has_derivative_zero() -> None:
    module = gradient_of([tensor(2)], logsumexp)
    assert evaluate(module, "f", np.array([-inf, -inf])) == -inf
    np.testing.assert_array_equal(evaluate(module, "df", np.array([-inf, -inf])), [0.0, 0.0])
    np.testing.assert_array_equal(evaluate(module, "df", np.array([-inf, 5.0])), [0.0, 1.0])


def test_a_choice_passes_its_derivative_to_what_is_chosen_alone() -> None:
    def body(x: Term, y: Term) -> Term:
        return x.apply(ops.Select(), y, x.apply(ops.LessThan(), y))

    assert both_ways(body, 1.0, 2.0) == (1.0, 0.0)
    assert both_ways(body, 2.0, 2.0) == (0.0, 1.0)


def test_an_empty_axis_has_an_empty_gradient() -> None:
    module = gradient_of([tensor(3, 0), tensor(3, 1)], lambda x, y: (x * y).sum())
    by_x, by_y = evaluate(module, "df", np.zeros((3, 0)), np.ones((3, 1)))
    assert by_x.shape == (3, 0)
    np.testing.assert_array_equal(by_y, np.zeros((3, 1)))
    tangents = [np.ones((3, 0)), np.ones((3, 1))]
    assert forward(module, "f", [np.zeros((3, 0)), np.ones((3, 1))], tangents) == 0.0


def test_the_derivative_at_nan_is_nan_where_the_function_is_not_a_step() -> None:
    for op in (ops.Sqrt(), ops.Exp(), ops.Tanh(), ops.Square()):
        assert np.isnan(both_ways(lambda x, op=op: x.apply(op), nan)[0])


EDGES = np.array(
    [nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.0, -2.5, 3.0, 1e300, -1e300]
)
STEPS = (
    ops.Sign, ops.Floor, ops.Ceil, ops.Round, ops.Rint, ops.TruncateDivide, ops.FloorDivide,
)  # fmt: skip
"""Constant between their jumps."""
CHOICES = (ops.Select, ops.StopGradient, ops.StraightThrough)
"""What they choose has the derivative 1, the rest has no influence; each has tests of its own."""
LINEAR: dict[type[Op], tuple[int, ...]] = {
    ops.Negate: (0,),
    ops.Add: (0, 1),
    ops.Subtract: (0, 1),
    ops.Multiply: (0, 1),
    ops.StrongMultiply: (0, 1),
    ops.Divide: (0,),
}
"""The operands that an op is linear in: the derivative is the coefficient."""


@pytest.mark.parametrize(
    "op_class",
    [
        op
        for op in ops.ALL
        if issubclass(op, ops.Elementwise) and not op.not_differentiable and op not in CHOICES
    ],
    ids=lambda op_class: op_class.name,
)
def test_the_derivative_of_every_op_is_nan_where_its_value_is(
    op_class: type[ops.Elementwise],
) -> None:
    op, count = op_class(), operand_count(op_class)
    grids = [grid.ravel() for grid in np.meshgrid(*[EDGES] * count)]
    module = gradient_of([tensor(grids[0].size)] * count, lambda x, *rest: x.apply(op, *rest))
    missing = np.isnan(evaluate(module, "f", *grids))
    if op_class is ops.Power:
        missing &= grids[1] != 1  # there it is u, which is linear
    found = evaluate(module, "df", *grids)
    for k, gradient in enumerate(found if count > 1 else [found]):
        ones = [np.ones_like(grids[k]) if j == k else None for j in range(count)]
        moved = forward(module, "f", grids, ones)
        np.testing.assert_array_equal(np.zeros_like(gradient) if moved is None else moved, gradient)
        if op_class in STEPS:
            np.testing.assert_array_equal(gradient, 0)
        elif k not in LINEAR.get(op_class, ()):
            assert np.isnan(gradient[missing]).all(), [grid[missing] for grid in grids]


@pytest.mark.parametrize("combinator", [Combinator.MAX, Combinator.MIN])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_a_running_extremum_is_nan_from_there_on(
    combinator: Combinator, reverse: bool, exclusive: bool
) -> None:
    op = ops.Scan(combinator, 0, reverse, exclusive)
    module = gradient_of([tensor(4)], lambda x: x.apply(op))
    x = np.array([2.0, 1.0, nan, 3.0])
    moved = forward(module, "f", [x], [np.ones(4)])
    np.testing.assert_array_equal(np.isnan(moved), np.isnan(evaluate(module, "f", x)))
    assert np.isnan(evaluate(module, "df", x)[2])


@pytest.mark.parametrize("combinator", [Combinator.MAX, Combinator.MIN])
def test_an_extremum_that_is_nan_has_the_derivative_nan_by_all_its_elements(
    combinator: Combinator,
) -> None:
    x = np.array([[nan, 1.0, 2.0], [3.0, 4.0, 5.0]])
    module = gradient_of([tensor(2, 3)], lambda x: x.reduce(combinator, 1))
    found = evaluate(module, "df", x)
    assert np.isnan(found[0]).all() and found[1].sum() == 1
    moved = forward(module, "f", [x], [np.ones((2, 3))])
    np.testing.assert_array_equal(moved, [nan, 1.0])
    windows = gradient_of([tensor(3)], lambda x: x.apply(ops.ReduceWindow(combinator, (2,))))
    np.testing.assert_array_equal(np.isnan(evaluate(windows, "df", x[0])), [True, True, False])


BUILTINS: dict[str, tuple[list[float], list[float]]] = {
    "relu": ([nan, inf, -inf, 0.0], [nan, 1, 0, 0]),
    "sigmoid": ([nan, inf, -inf, 0.0], [nan, 0, 0, 0.25]),
    "softplus": ([nan, inf, -inf, 0.0], [nan, 1, 0, 0.5]),
    "silu": ([nan, inf, -inf, 0.0], [nan, 1, 0, 0.5]),
    "gelu": ([nan, inf, -inf, 0.0], [nan, 1, 0, 0.5]),
    "logSumExp": ([inf, 1.0], [1, 0]),
    "l2Norm": ([-inf, 1.0], [-1, 0]),
    "variance": ([nan, 1.0], [nan, nan]),
    "softmax": ([nan, 1.0], [nan, nan]),
    "logSoftmax": ([nan, 1.0], [nan, nan]),
}


@pytest.mark.parametrize("name", BUILTINS)
def test_builtins_at_edges(name: str) -> None:
    at, expected = BUILTINS[name]

    def body(x: Term) -> Term:
        return Term(x.b, definition_of(name).rule(x.b, x.value))

    module = gradient_of([tensor(len(at))], body)
    np.testing.assert_array_equal(evaluate(module, "df", np.array(at)), expected)
    if name not in ("relu", "sigmoid", "softplus", "silu", "gelu"):
        missing = gradient_of([tensor(2)], body)
        assert np.isnan(evaluate(missing, "df", np.array([nan, 1.0]))).all()


def test_kinks_that_meet_have_no_second_derivative() -> None:
    """The row of `max(z, 0) + log1p(exp(−|z|))`, and `softplus`, which is the same function."""

    def of_kinks(z: Term) -> Term:
        small = z.apply(ops.Abs()).apply(ops.Negate()).apply(ops.Exp())
        return z.apply(ops.Maximum(), 0.0) + small.apply(ops.Log1p())

    def softplus(z: Term) -> Term:
        return Term(z.b, definition_of("softplus").rule(z.b, z.value))

    for body, second in ((of_kinks, 0.0), (softplus, 0.25)):
        module = Module()
        define(module, "f", [tensor()], body)
        declare(module, "df", "f")
        declare(module, "ddf", "df")
        differentiate(module)
        assert evaluate(module, "df", 0.0) == 0.5
        assert evaluate(module, "ddf", 0.0) == second


def test_the_document_names_only_tests_that_exist() -> None:
    named = re.findall(r"`(test_\w+)`", DOCUMENT.read_text())
    tests = DOCUMENT.parents[1] / "tests"
    known = "".join(path.read_text() for path in tests.rglob("test_*.py"))
    assert named
    assert [name for name in named if f"def {name}(" not in known] == []
