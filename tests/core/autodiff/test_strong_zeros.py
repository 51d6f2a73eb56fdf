"""Zeros that no infinite factor may wake: in both modes, every order, and through every structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.driver.stages import advance, passes_to
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module, TangentOf
from nnkit.core.ops import Combinator
from nnkit.core.ops.nest import Bounds
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.canonicalize import Canonicalize
from nnkit.core.passes.dce import DeadCode
from nnkit.core.passes.inline import Inline
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.types import I64, Array, TensorType
from nnkit.core.verify import verify
from tests.jit.emit.running import run

from .building import Term, call, count, declare, define, differentiate, gradient_of, tensor
from .forward import forward

pytestmark = pytest.mark.usefixtures("unoptimized_code")


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


def root(x: Term) -> Term:
    return x.apply(ops.Sqrt())


def number(x: Term, n: Any) -> Term:
    """A constant, of the type of the array `n`."""
    n = np.asarray(n)
    type = TensorType(n.shape, I64 if n.dtype.kind == "i" else x.value.tensor.dtype)
    return Term(x.b, x.b.emit(ops.dense(type, n)))


MODES: Final = ("r", "f", "rr", "rf", "fr", "ff")
"""Reverse or forward; the last letter is the inner derivative."""


def by_modes(body: Callable[[Term], Term], x: Array) -> Mapping[str, Array]:
    """The derivatives of the sum, forward along each axis in turn; compiled ones are equal."""
    module = Module()
    define(module, "sum", [tensor(*x.shape)], lambda x: body(x).sum())
    for mode in MODES:
        primal = mode[1:] or "sum"
        if mode[0] == "r":
            declare(module, mode, primal, wrt=(0,))
        else:
            tangent = TangentOf(primal, wrt=(0,))
            type = derivative_type(module.functions[primal].type, tangent)
            module.add(Function(mode, type, declaration=tangent))
    verify(module)
    advance(module, Stage.OPTIMIZABLE, *MODES)
    units = np.eye(x.size).reshape(-1, *x.shape)
    given = {
        m: [[x, *[unit] * m.count("f")] for unit in units[: len(units) if "f" in m else 1]]
        for m in MODES
    }
    found = {m: np.array([evaluate(module, m, *one) for one in given[m]]) for m in MODES}
    for step in (Stage.COMPUTE, Stage.SCHEDULE):
        advance(module, step, *MODES)
    for m in MODES:
        native = [run(module.functions[m], one, module.functions)[0] for one in given[m]]
        np.testing.assert_allclose(native, found[m], 1e-14, err_msg=f"compiled {m}")
    return found


HUGE = [-1e200, 1e200, 1e200]
HOLE: Final = [1.0, 4.0, 0.0]
"""√x has an infinite slope by the last element, which is then left out."""
KEPT = [0.5, 0.25, 0.0]


def relu(x: Term) -> Term:
    return x.apply(ops.Relu())


def windowed(combinator: Combinator, *window: Any) -> Callable[[Term], Term]:
    return lambda x: root(x).apply(ops.ReduceWindow(combinator, *window))


def scanned(combinator: Combinator, *, reverse: bool = False) -> Callable[[Term], Term]:
    return lambda x: root(x).apply(ops.Scan(combinator, 0, reverse, exclusive=True))


LEFT_OUT: dict[str, tuple[Callable[[Term], Term], list[float], list[float]]] = {
    "relu of an overflowing product": (
        lambda x: relu(x.reduce(Combinator.MULTIPLY)),
        HUGE,
        [0, 0, 0],
    ),
    "a choice against it": (
        lambda x: where_positive(x.sum() * 0.0, x.reduce(Combinator.MULTIPLY)),
        HUGE,
        [0, 0, 0],
    ),
    "a row of products that is cut off": (
        lambda x: (
            number(x, np.ones((2, 1)))
            .apply(ops.Multiply(), x)
            .reduce(Combinator.MULTIPLY, 1)
            .apply(ops.Slice((2,), (2,)))
        ),
        HUGE,
        [0, 0, 0],
    ),
    "a running product against which is chosen": (
        lambda x: relu(x.apply(ops.Scan(Combinator.MULTIPLY, 0))),
        HUGE,
        [0, 0, 0],
    ),
    "broadcast to nothing": (
        lambda x: root(x).apply(ops.Broadcast((0, 3))),
        HOLE,
        [0, 0, 0],
    ),
    "a power of zero": (lambda x: root(x).apply(ops.Power(), x * 0.0), HOLE, [0, 0, 0]),
    "a factor of zero": (lambda x: root(x) * number(x, [1.0, 1.0, 0.0]), HOLE, KEPT),
    "windows with gaps": (windowed(Combinator.ADD, (1,), (3,)), [1.0, 0.0, 0.0], [0.5, 0, 0]),
    "windows cut off": (windowed(Combinator.ADD, (1,), (), ((0, -1),)), HOLE, KEPT),
    "the greatest of windows": (windowed(Combinator.MAX, (2,)), [0.0, 4.0, 1.0], [0, 0.5, 0]),
    "an exclusive sum": (scanned(Combinator.ADD), HOLE, [1.0, 0.25, 0]),
    "an exclusive sum from the end": (
        scanned(Combinator.ADD, reverse=True),
        HOLE[::-1],
        [0, 0.25, 1.0],
    ),
    "an exclusive product": (scanned(Combinator.MULTIPLY), HOLE, [1.5, 0.25, 0]),
    "a running maximum": (
        lambda x: root(x).apply(ops.Scan(Combinator.MAX, 0)),
        [4.0, 1.0, 0.0],
        [0.75, 0, 0],
    ),
    "rows scattered outside": (
        lambda x: root(x).apply(ops.ScatterAdd((2,), 0, Bounds.ZERO), number(x, [0, 1, 5])),
        HOLE,
        KEPT,
    ),
    "a convolution with gaps": (
        lambda x: (
            root(x)
            .apply(ops.ShapeCast((1, 1, 3)))
            .apply(ops.Convolve(strides=(3,)), number(x, np.ones((1, 1, 1))))
        ),
        [1.0, 0.0, 0.0],
        [0.5, 0, 0],
    ),
    "no operand of a sum": (
        lambda x: root(x).apply(ops.Pad((0,), (0,), (1,)), 0.0).apply(ops.Slice((0,), (3,))),
        HOLE,
        KEPT,
    ),
}
"""√x, or a product that overflows, before what leaves elements out: a function, x, and the derivatives."""

CONSTANT: dict[str, tuple[Callable[[Term], Term], list[float], list[float]]] = {
    "pad": (lambda x: root(x.apply(ops.Pad((1,), (1,)), 0.0)), [1.0, 4.0], [0.5, 0.25]),
    "pad between": (
        lambda x: root(x.apply(ops.Pad((0,), (0,), (2,)), 0.0)),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "concatenate": (
        lambda x: root(x.apply(ops.Concatenate(0), number(x, [0.0]))),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "gather outside": (
        lambda x: root(x.apply(ops.Gather(0, Bounds.ZERO), number(x, [0, 7, 1]))),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "scatterAdd": (
        lambda x: root(x.apply(ops.ScatterAdd((4,), 0), number(x, [0, 2]))),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "an exclusive sum": (
        lambda x: root(x.apply(ops.Scan(Combinator.ADD, 0, exclusive=True))),
        [4.0, 1.0],
        [0.25, 0],
    ),
    "windows with padding": (
        lambda x: root(x.apply(ops.ReduceWindow(Combinator.ADD, (1,), (), ((2, 1),)))),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "a convolution with padding": (
        lambda x: root(
            x.apply(ops.ShapeCast((1, 1, 2))).apply(
                ops.Convolve(padding=((1, 1),)), number(x, np.ones((1, 1, 1)))
            )
        ),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "a sum over nothing": (
        lambda x: root(x.apply(ops.Slice((0,), (0,))).sum()) + root(x).sum(),
        [1.0, 4.0],
        [0.5, 0.25],
    ),
    "sums of such": (
        lambda x: root(x.apply(ops.Pad((1,), (0,)), 0.0) + x.apply(ops.Pad((1,), (0,)), 0.0)),
        [2.0, 8.0],
        [0.5, 0.25],
    ),
    "the greater one": (lambda x: root(x.apply(ops.Maximum(), 0.0)), [-1.0, 4.0], [0, 0.25]),
    "a running maximum": (
        lambda x: root(
            number(x, 4.0)
            - x.apply(ops.Scan(Combinator.MAX, 0)).apply(ops.Maximum(), number(x, [0.0, 4.0, 4.0]))
        ),
        [3.0, 1.0, 2.0],
        [-0.5, 0, 0],
    ),
    "a factor": (lambda x: root(x * number(x, [1.0, 0.0])), [4.0, 1.0], [0.25, 0]),
    "a choice": (lambda x: root(where_positive(x, x)), [4.0, -1.0], [0.25, 0]),
    "what was chosen already": (lambda x: x * root(relu(x * 2.0).sum()), [-1.0], [0.0]),
}
"""What gives a zero that is constant, before √."""


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_has_derivative_zero(name: str) -> None:
    body, at, expected = LEFT_OUT[name]
    check(body, at, expected)


@pytest.mark.parametrize("name", CONSTANT)
def test_what_is_constant_has_derivative_zero(name: str) -> None:
    body, at, expected = CONSTANT[name]
    check(body, at, expected)


def check(body: Callable[[Term], Term], at: list[float], expected: list[float]) -> None:
    """First derivatives are as expected; all second ones are finite, and agree."""
    found = by_modes(body, np.array(at))
    for mode in ("r", "f"):
        np.testing.assert_allclose(found[mode].ravel(), expected, 1e-15, err_msg=mode)
    second = {mode: found[mode] for mode in ("rr", "rf", "fr", "ff")}
    for mode, one in second.items():
        assert np.isfinite(one).all(), mode
    np.testing.assert_allclose(second["rf"], second["fr"], 1e-14)
    np.testing.assert_allclose(second["rr"].ravel(), second["fr"].sum(0).ravel(), 1e-14)
    np.testing.assert_allclose(second["ff"], np.diag(second["fr"].reshape(len(at), -1)), 1e-14)


STRUCTURES: dict[str, str] = {
    "call": """
    func @zero: (f64) -> (f64, f64) {
    'entry(%x: f64):
        %r = literal (%x: f64, 0.0: f64): (f64, f64)
        return %r: (f64, f64)
    }
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %t = apply @zero(%x): (f64) -> (f64, f64)
        %y = extract 1 from %t: (f64, f64)
        %r = sqrt %y: f64
        return %r: f64
    }""",
    "call of a callee that chooses": """
    func @zero: (f64) -> f64 {
    'entry(%x: f64):
        %c = lessThan %x: f64, 0.0: f64
        %r = select %x: f64, 0.0: f64 by %c: bool
        return %r: f64
    }
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %y = apply @zero(%x): (f64) -> f64
        %r = sqrt %y: f64
        return %r: f64
    }""",
    "if": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %c = lessThan %x: f64, 0.0: f64
        %y = if %c: bool -> f64 {
        'then():
            yield %x: f64
        } else {
        'else():
            yield 0.0: f64
        }
        %r = sqrt %y: f64
        return %r: f64
    }""",
    "for": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %a, %b = for 0: i64 upto 3: i64 carrying %x: f64, 0.0: f64 {
        'body(%i: i64, %u: f64, %v: f64):
            %d = sqrt %v: f64
            %c = multiply %u: f64, %d: f64
            yield %u: f64, %c: f64
        }
        %r = sqrt %b: f64
        return %r: f64
    }""",
    "for that does not run": """
    func @f: (f64, i64) -> f64 {
    'entry(%x: f64, %n: i64):
        %r0 = for 0: i64 upto %n: i64 carrying 0.0: f64 {
        'body(%i: i64, %a: f64):
            %b = add %a: f64, %x: f64
            yield %b: f64
        }
        %r = sqrt %r0: f64
        return %r: f64
    }""",
    "for that stacks": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %a, %s = for 0: i64 upto 2: i64 carrying 0.0: f64 stacking <2 x f64> {
        'body(%i: i64, %b: f64):
            yield %x: f64, %b: f64
        }
        %z = slice %s: <2 x f64> from 0 upto 1
        %y = sqrt %z: <1 x f64>
        %r = reduce %y: <1 x f64> by add along 0
        return %r: f64
    }""",
    "while": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %a = while carrying 0.0: f64 {
        'condition(%b: f64):
            %c = greaterThan %b: f64, %x: f64
            yield %c: bool
        } do {
        'body(%d: f64):
            yield %x: f64
        }
        %r = sqrt %a: f64
        return %r: f64
    }""",
    "insert": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %s = literal <%x: f64, %x: f64>: <2 x f64>
        %u = insert 0.0: f64 to %s: <2 x f64> at 1
        %y = sqrt %u: <2 x f64>
        %r = extract 1 from %y: <2 x f64>
        return %r: f64
    }""",
    "row literal": """
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %s = literal <%x: f64, 0.0: f64>: <2 x f64>
        %y = sqrt %s: <2 x f64>
        %r = extract 1 from %y: <2 x f64>
        return %r: f64
    }""",
}
"""Through each of which a constant zero comes to √, beside x or instead of it."""


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_constant_zero_through_a_structure(name: str) -> None:
    module = parse_module(f'module "m"\nstage raw\n{STRUCTURES[name]}')
    tangent = TangentOf("f", wrt=(0,))
    type = derivative_type(module.functions["f"].type, tangent)
    module.add(Function("df", type, declaration=tangent))
    run_pipeline(module, passes_to(Stage.OPTIMIZABLE, level=0), verifier=verify, verify=True)
    rest = [0] if "i64)" in STRUCTURES[name].partition("@f:")[2].partition("->")[0] else []
    assert evaluate(module, "df", 1.0, *rest, 1.0) == 0.0


@pytest.mark.parametrize("body", [root, relu, lambda x: where_positive(x, root(x)), logistic])
def test_the_derivative_by_a_seed_does_not_depend_on_it(body: Callable[[Term], Term]) -> None:
    """J · v as the gradient of ⟨Jᵀu, v⟩ by u: a strong product is bilinear, so nothing of Jᵀu is computed."""
    module = Module()
    define(module, "f", [tensor(3)], body)
    back = declare(module, "back", "f", seedable=True)
    define(module, "pairing", [tensor(3)] * 3, lambda x, u, v: (call(back, x, u) * v).sum())
    declare(module, "along", "pairing", wrt=(1,))
    tangent = TangentOf("f", wrt=(0,))
    type = derivative_type(module.functions["f"].type, tangent)
    module.add(Function("jvp", type, declaration=tangent))
    run_pipeline(module, passes_to(Stage.OPTIMIZABLE))
    for a_pass in (Inline(entries=("along", "jvp")), Canonicalize(), DeadCode()):
        apply_pass(a_pass, module)
    along, jvp = module.functions["along"], module.functions["jvp"]
    _, u, _ = along.parameters
    assert all(u not in i.operands for i in along.entry.instructions)
    products = [count(function)["strongMultiply"] for function in (along, jvp)]
    assert products[0] == products[1]


def test_products_of_a_contraction_are_ordinary() -> None:
    """Forward the slope ∞ comes to a product with 0; in reverse the contraction comes first, and gives 0."""
    module = gradient_of([tensor(2)], lambda x: root(x) @ number(x, [1.0, 0.0]))
    at = np.array([4.0, 0.0])
    np.testing.assert_array_equal(evaluate(module, "df", at), [0.25, 0.0])
    assert np.isnan(forward(module, "f", [at], [np.ones(2)]))


def test_ordinary_networks_multiply_by_numbers_plainly() -> None:
    """A mean of squared differences has no product but by numbers."""
    module = gradient_of(
        [tensor(4, 3), tensor(4, 3)],
        lambda x, target: (x - target).apply(ops.Square()).sum() * (1 / 12),
        wrt=(0,),
    )
    assert count(module.functions["df"])["strongMultiply"] == 0
