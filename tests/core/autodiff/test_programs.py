"""Whole programs: derivatives against closed forms, finite differences and forward rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from nnkit.core import ops
from nnkit.core.analysis.derivatives import elements, has_float
from nnkit.core.evaluate import evaluate, flatten
from nnkit.core.ir import Module, Op
from nnkit.core.ops.combinator import Combinator
from nnkit.core.types import F32, F64, I64, TensorType, TupleType, elements_of
from tests.programs import Program, programs

from .building import Term, count, declare, differentiate, finite_differences, gradient_of, tensor
from .forward import forward

RNG = np.random.default_rng(7)


def check(
    shapes: Sequence[tuple[int, ...]], body: Callable[..., Term], scale: float = 1.0
) -> Module:
    """The gradient by every parameter is that of finite differences; the module, for more."""
    module = gradient_of([tensor(*shape) for shape in shapes], body)
    values = [scale * RNG.uniform(-1, 1, shape) for shape in shapes]
    found = evaluate(module, "df", *values)
    for position, gradient in enumerate(found if len(shapes) > 1 else [found]):
        assert gradient.shape == shapes[position]
        expected = finite_differences(module, "f", values, position)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    return module


def test_rows_taken_twice_add_up() -> None:
    module = gradient_of(
        [tensor(4), TensorType((3,), I64)],
        lambda x, at: x.apply(ops.Gather(0), at).apply(ops.Square()).sum(),
        wrt=(0,),
    )
    found = evaluate(module, "df", np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 2]))
    np.testing.assert_array_equal(found, [4.0, 0.0, 6.0, 0.0])


def test_scattering_is_differentiated_by_gathering() -> None:
    module = gradient_of(
        [tensor(3), TensorType((3,), I64)],
        lambda x, at: x.apply(ops.ScatterAdd((4,), 0), at).apply(ops.Square()).sum(),
        wrt=(0,),
    )
    found = evaluate(module, "df", np.array([1.0, 2.0, 3.0]), np.array([1, 1, 3]))
    np.testing.assert_array_equal(found, [6.0, 6.0, 6.0])


def test_powers_by_both_sides() -> None:
    module = gradient_of([tensor()], lambda x: x.apply(ops.Power(), 2.0) * 3.0)
    assert evaluate(module, "df", 5.0) == 30.0
    module = gradient_of([tensor(), tensor()], lambda x, y: x.apply(ops.Power(), y))
    assert evaluate(module, "df", 2.0, 3.0) == pytest.approx((12.0, 8.0 * np.log(2.0)))


def test_the_product_of_a_vector_with_a_zero() -> None:
    module = gradient_of([tensor(3)], lambda x: x.reduce(Combinator.MULTIPLY))
    np.testing.assert_array_equal(
        evaluate(module, "df", np.array([0.0, 2.0, 3.0])), [6.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(
        evaluate(module, "df", np.array([0.0, 0.0, 3.0])), [0.0, 0.0, 0.0]
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)), ((1, 1), (1, 1)), ((3, 0), (0, 2)),
    ],
)  # fmt: skip
def test_matrix_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check([left, right], lambda x, w: (x @ w).apply(ops.Sin()))


def test_a_matrix_product_makes_one_transpose_for_each_factor() -> None:
    module = gradient_of([tensor(3, 4), tensor(4, 5)], lambda x, w: x @ w)
    assert count(module.functions["df"])["transpose"] == 2


MOVEMENTS: dict[str, tuple[tuple[int, ...], Op]] = {
    "broadcast": ((3, 1), ops.Broadcast((2, 3, 4))),
    "broadcast scalar": ((), ops.Broadcast((2, 3))),
    "reshape": ((2, 6), ops.ShapeCast((3, 4))),
    "transpose": ((2, 3, 4), ops.Transpose((1, 2, 0))),
    "reverse": ((2, 3), ops.Reverse((0, 1))),
    "slice": ((7, 3), ops.Slice((1, 0), (6, 2), (2, 1))),
    "expand": ((2, 3), ops.PadShape(1)),
    "squeeze": ((2, 1, 3), ops.SqueezeShape(1)),
    "running sum": ((2, 5), ops.Scan(Combinator.ADD, 1)),
    "running product": ((2, 5), ops.Scan(Combinator.MULTIPLY, 1, reverse=True, exclusive=True)),
    "sum": ((2, 3, 4), ops.Reduce(Combinator.ADD, (0, 2))),
    "product": ((2, 3, 4), ops.Reduce(Combinator.MULTIPLY, (1,))),
    "maximum": ((2, 3, 4), ops.Reduce(Combinator.MAX, (0, 2))),
    "minimum": ((2, 3, 4), ops.Reduce(Combinator.MIN, ())),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements_and_reductions(name: str) -> None:
    shape, op = MOVEMENTS[name]
    check([shape], lambda x: x.apply(op).apply(ops.Sin()))


def test_joining_splitting_and_padding() -> None:
    check([(2, 3), (4, 3)], lambda x, y: x.apply(ops.Concatenate(0), y).apply(ops.Square()))
    pad = ops.Pad((1, 0), (2, 1), (1, 0))
    check([(2, 3), ()], lambda x, value: x.apply(pad, value).apply(ops.Sin()))


def test_the_gradient_of_a_bias_has_its_static_shape() -> None:
    module = gradient_of([tensor(64, 10), tensor(10), tensor(64, 1)], lambda x, b, c: x + b + c)
    expected = TupleType((tensor(64, 10), tensor(10), tensor(64, 1)))
    assert module.functions["df"].type.result == expected
    check([(4, 3), (3,), (4, 1), ()], lambda x, b, c, d: (x * b + c) / (d * d + 2.0))


def logsumexp(x: Term) -> Term:
    top = x.max(1).apply(ops.stop_gradient.StopGradient()).apply(ops.ShapeCast((2, 1)))
    return (x - top).apply(ops.Exp()).sum(1).apply(ops.Log()) + top.apply(ops.ShapeCast((2,)))


def test_the_gradient_of_logsumexp_is_softmax_at_large_logits() -> None:
    module = gradient_of([tensor(2, 3)], logsumexp)
    logits = np.array([[1e4, -1e4, 1e4 - 1.0], [-1e4, -1e4, -1e4]])
    found = evaluate(module, "df", logits)
    powers = np.exp(logits - logits.max(1, keepdims=True))
    softmax = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(found, softmax, rtol=1e-14)
    direction = np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 1.0]])
    moved = forward(module, "f", [logits], [direction])
    assert moved is not None
    np.testing.assert_allclose(moved, (softmax * direction).sum(1), rtol=1e-14)


def test_the_gradient_of_cross_entropy_is_softmax_minus_one_hot() -> None:
    def body(x: Term, labels: Term) -> Term:
        chosen = labels.apply(ops.OneHot(3, F64)) * x
        return (logsumexp(x) - chosen.sum(1)).sum()

    module = gradient_of([tensor(2, 3), TensorType((2,), I64)], body, wrt=(0,))
    logits, labels = np.array([[1e4, -1e4, 0.0], [1.0, 2.0, 3.0]]), np.array([0, 1])
    powers = np.exp(logits - logits.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True) - np.eye(3)[labels]
    np.testing.assert_allclose(evaluate(module, "df", logits, labels), expected, atol=1e-15)


def test_low_precision_stays_low() -> None:
    module = gradient_of([tensor(3, dtype=F32)], lambda x: x.apply(ops.Tanh()).apply(ops.Square()))
    kinds = {
        leaf.tensor.dtype
        for instruction in module.functions["df"].entry.instructions
        for leaf in instruction.results
    }
    assert kinds == {F32}


# a builtin is expanded before anything is differentiated
SPECIAL = (ops.Trigamma, ops.Digamma, ops.Lgamma, ops.Erf, ops.Erfc, ops.Builtin)
SMOOTH = tuple(op for op in ops.ALL if op not in SPECIAL)


@given(programs(ops=SMOOTH, dtypes=(F64, I64), tame=True))
def test_reverse_agrees_with_forward_rules_on_random_programs(program: Program) -> None:
    agree(program.module, "main", program.arguments)


@given(programs(ops=SMOOTH, dtypes=(F64, I64), tame=True, max_instructions=5))
def test_so_do_second_derivatives(program: Program) -> None:
    type = program.module.functions["main"].type
    agree(program.module, "main", program.arguments)
    pairs = zip(type.parameters, program.arguments, strict=True)
    agree(program.module, "d_main", [leaf for pair in pairs for leaf in flatten(*pair)])


def agree(module: Module, name: str, arguments: Sequence[Any]) -> None:
    """⟨ȳ, J ẋ⟩ = ⟨Jᵀ ȳ, ẋ⟩, for ȳ of ones and ẋ of ones and twos; leaves `@d_name` in the module."""
    primal = module.functions[name]
    results = elements(primal.type.result)
    floats = [k for k, type in enumerate(results) if has_float(type)]
    wrt = tuple(k for k, type in enumerate(primal.type.parameters) if has_float(type))
    assume(bool(floats and wrt))
    with np.errstate(all="ignore"):
        left, right = both_sides(module, name, arguments, floats, wrt)
    assume(bool(np.isfinite(left + right)))  # else an infinite factor met a zero of chance
    assume(abs(left) < 1e12)
    np.testing.assert_allclose(right, left, rtol=1e-8, atol=1e-8)


def both_sides(
    module: Module, name: str, arguments: Sequence[Any], floats: list[int], wrt: tuple[int, ...]
) -> tuple[float, float]:
    primal = module.functions[name]
    tangents = [spread(*pair) for pair in zip(primal.type.parameters, arguments, strict=True)]
    moved = forward(module, name, arguments, tangents)
    parts = moved if isinstance(primal.type.result, TupleType) else [moved]
    left = sum(total(parts[k]) for k in floats)
    declare(module, f"d_{name}", name, sources=tuple(floats), wrt=wrt)
    type = module.functions[f"d_{name}"].type
    differentiate(module)
    found = evaluate(module, f"d_{name}", *arguments, type=type)
    gradients = found if len(wrt) > 1 else (found,)
    return left, sum(inner(g, tangents[k]) for g, k in zip(gradients, wrt, strict=True))


def spread(type: Any, data: Any) -> Any:
    """A tangent for an argument: ones and twos in turn, None for what is not a float."""
    parts = elements_of(type)
    if parts is not None:
        return tuple(spread(part, element) for part, element in zip(parts, data, strict=True))
    return np.resize([1.0, 2.0], type.shape) if type.dtype.is_float else None


def total(tangent: Any) -> float:
    if isinstance(tangent, tuple):
        return sum(map(total, tangent))
    return 0.0 if tangent is None else float(np.sum(tangent))


def inner(gradient: Any, tangent: Any) -> float:
    if isinstance(gradient, tuple):
        return sum(inner(g, t) for g, t in zip(gradient, tangent, strict=True))
    return 0.0 if tangent is None else float(np.sum(gradient * tangent))
