"""Derivatives of derivatives: right, of moderate size by order, and refused where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.autodiff import higher_order
from nnkit.core.autodiff.declaration_order import declarations_in_order
from nnkit.core.autodiff.higher_order import DerivativeOrders, instruction_count
from nnkit.core.driver.differentiate import Differentiate
from nnkit.core.driver.stages import OPTIMIZABLE
from nnkit.core.errors import UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, GradientOf, Module, TangentOf
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.types import Type
from nnkit.core.verify import verify

from .building import Term, call, declare, define, size, tensor

LEVELS = (0, 1, 2, 3)
NUMBER = tensor()

Unary: TypeAlias = Callable[[Term], Term]


def chain(orders: int, body: Unary, type: Type = NUMBER, *, tangents: str = "") -> Module:
    """@f0, and each derivative of the one before; those whose letter in `tangents` is t are tangents."""
    module = Module()
    define(module, "f0", [type], body)
    for order in range(1, orders + 1):
        primal = f"f{order - 1}"
        if tangents and tangents[(order - 1) % len(tangents)] == "t":
            declaration = TangentOf(primal, wrt=(0,))
            found = derivative_type(module.functions[primal].type, declaration)
            module.add(Function(f"f{order}", found, declaration=declaration))
        else:
            declare(module, f"f{order}", primal, wrt=(0,))
    return module


def sizes(module: Module) -> list[int]:
    """Instructions of the functions named f0, f1, …."""
    return [size(f) for f in module.functions.values() if f.name[1:].isdecimal()]


def tanh(x: Term) -> Term:
    return x.apply(ops.Tanh())


def times_itself(function: Function) -> Unary:
    """x ↦ x · @function(x)"""
    return lambda x: call(function, x) * x


def tanh_derivatives(x: float, count: int) -> list[float]:
    """Those of tanh at `x` by their polynomials in y = tanh x: P' · (1 − y²)."""
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    factor = np.polynomial.Polynomial([1.0, 0.0, -1.0])
    found: list[float] = []
    for _ in range(count):
        polynomial = polynomial.deriv() * factor
        found.append(float(polynomial(math.tanh(x))))
    return found


CLOSED: dict[str, tuple[Unary, Callable[[float, int], list[float]]]] = {
    "tanh": (tanh, tanh_derivatives),
    "exp": (lambda x: x.apply(ops.Exp()), lambda x, count: [math.exp(x)] * count),
    "power": (
        lambda x: x.apply(ops.Power(), 7.0),
        lambda x, count: [math.perm(7, k) * x ** (7 - k) for k in range(1, count + 1)],
    ),
    "log": (
        lambda x: x.apply(ops.Log()),
        lambda x, count: [
            (-1) ** (k - 1) * math.factorial(k - 1) / x**k for k in range(1, count + 1)
        ],
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("shape", [(), (2,)], ids=["number", "tensor"])
def test_six_orders_agree_with_closed_forms(name: str, level: int, shape: tuple[int, ...]) -> None:
    """Of a tensor each gradient is that of the sum, elementwise the same; reverse over reverse."""
    body, closed = CLOSED[name]
    module = chain(6, body, tensor(*shape))
    run_pipeline(module, OPTIMIZABLE[level], verifier=verify, verify=True)
    for order, expected in enumerate(closed(0.7, 6), 1):
        found = evaluate(module, f"f{order}", np.full(shape, 0.7))
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("tangents", ["t", "gt", "tg", "ggt"])
def test_mixtures_of_modes_agree_with_closed_forms(tangents: str) -> None:
    """A derivative is linear in each direction it was taken in."""
    module = chain(6, tanh, tangents=tangents)
    run_pipeline(module, OPTIMIZABLE[2], verifier=verify, verify=True)
    for order, expected in enumerate(tanh_derivatives(0.7, 6), 1):
        directions = [2.0] * (len(module.functions[f"f{order}"].parameters) - 1)
        found = evaluate(module, f"f{order}", 0.7, *directions)
        assert found == pytest.approx(expected * 2.0 ** len(directions), rel=1e-11)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CLOSED)
def test_sizes_of_derivatives_by_a_number_are_polynomials_of_the_order(
    name: str, level: int
) -> None:
    module = chain(16, CLOSED[name][0])
    run_pipeline(module, OPTIMIZABLE[level])
    for order, found in enumerate(sizes(module)[:-1]):  # nobody differentiates the last
        assert found <= 20 + order**3


@pytest.mark.parametrize("level", LEVELS)
def test_sizes_of_reverse_over_reverse_hardly_more_than_double(level: int) -> None:
    module = chain(10, tanh, tensor(3))
    run_pipeline(module, OPTIMIZABLE[level])
    found = sizes(module)[:-1]
    assert found[-1] <= 5 * 2.1 ** (len(found) - 1)


def test_seed_and_kept_results_go_forward_too() -> None:
    module = chain(1, tanh)
    declare(module, "seeded", "f1", keeping=(0,), seedable=True)
    run_pipeline(module, OPTIMIZABLE[2], verifier=verify, verify=True)
    first, second = tanh_derivatives(0.7, 2)
    found = evaluate(module, "seeded", 0.7, 3.0)
    np.testing.assert_allclose(found, (3.0 * second, first), rtol=1e-13)


def test_derivatives_of_what_calls_a_derivative() -> None:
    module = chain(1, tanh)
    slope = module.functions["f1"]
    define(module, "outer", [tensor()], times_itself(slope))
    declare(module, "by_x", "outer")
    run_pipeline(module, OPTIMIZABLE[2], verifier=verify, verify=True)
    first, second = tanh_derivatives(0.7, 2)
    assert evaluate(module, "by_x", 0.7) == pytest.approx(first + 0.7 * second, rel=1e-13)


def test_orders_are_counted_through_calls() -> None:
    module = chain(2, tanh)
    second = module.functions["f2"]
    define(module, "outer", [tensor()], times_itself(second))
    declare(module, "by_x", "outer")
    declared = declarations_in_order(module, list(module.functions))
    orders = DerivativeOrders(module)
    orders.expect(declared)
    assert orders.again >= {"f0", "f1", "f2", "outer"}
    assert "by_x" not in orders.again
    for function in declared:
        assert isinstance(function.declaration, GradientOf)
        orders.add(function, function.declaration, [function])
    assert [orders.of(name) for name in ("f0", "f1", "f2", "outer", "by_x")] == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("level", (0, 2))
@pytest.mark.parametrize("tangents", ["", "t", "tg"])
def test_a_long_chain_of_what_grows_is_refused(
    level: int, tangents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(higher_order, "MOST_INSTRUCTIONS", 2000)
    module = chain(300, tanh, tensor(2), tangents=tangents)
    with pytest.raises(UnsupportedError, match=r"@f\d+ is a derivative of order \d+, .* more than"):
        run_pipeline(module, OPTIMIZABLE[level])


def test_a_long_chain_of_what_does_not_grow_is_differentiated() -> None:
    module = chain(2000, CLOSED["exp"][0])
    run_pipeline(module, OPTIMIZABLE[2])
    assert instruction_count(module.functions.values()) == 2 * 2001
    assert evaluate(module, "f2000", 1.0) == pytest.approx(math.e)


def test_a_large_program_may_have_a_larger_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(higher_order, "MOST_INSTRUCTIONS", 10)
    long = chain(2, lambda x: tanh(tanh(tanh(x))))
    run_pipeline(long, [Differentiate()])
    assert instruction_count([long.functions["f2"]]) > 10


def test_the_bound_is_large_enough_for_tanh_of_order_30() -> None:
    module = chain(30, tanh)
    run_pipeline(module, OPTIMIZABLE[2])
    assert instruction_count(module.functions.values()) < higher_order.MOST_INSTRUCTIONS
