"""Calls: differentiated once, shared by all sites, the primal run once at any depth."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module
from nnkit.core.types import F64, I32, VOID, StructType

from .building import (
    Term,
    call,
    calls,
    count,
    declare,
    define,
    differentiate,
    finite_differences,
    pack,
    size,
    tensor,
)

PARAMS = StructType("Params", (("w", tensor(3, 3)), ("n", tensor(dtype=I32)), ("b", tensor(3))))


def wave(x: Term) -> Term:
    """Saves something that is neither argument nor result."""
    return x.apply(ops.Sin()).apply(ops.Exp()) * 0.5


def thrice(module: Module) -> Function:
    f = define(module, "f", [tensor()], wave)
    return define(module, "g", [tensor()], lambda x: call(f, call(f, call(f, x))))


def test_three_calls_share_one_forward_and_one_backward_function() -> None:
    module = Module()
    thrice(module)
    declare(module, "dg", "g")
    differentiate(module)
    assert set(module.functions) == {"f", "g", "dg", "f_fwd", "f_bwd"}
    assert calls(module.functions["dg"]) == {"f_fwd": 3, "f_bwd": 3}
    expected = finite_differences(module, "g", [0.3], 0)
    assert evaluate(module, "dg", 0.3) == pytest.approx(float(expected), rel=1e-8)


def test_other_parents_share_them_too() -> None:
    module = Module()
    thrice(module)
    f = module.functions["f"]
    define(module, "h", [tensor()], lambda x: call(f, x) * 3.0)
    for primal in ("g", "h", "f"):
        declare(module, f"d{primal}", primal)
    differentiate(module)
    assert set(module.functions) == {"f", "g", "h", "dg", "dh", "df", "f_fwd", "f_bwd"}
    assert calls(module.functions["dh"]) == {"f_fwd": 1, "f_bwd": 1}


def test_the_forward_function_is_the_primal_when_nothing_more_is_saved() -> None:
    module = Module()
    f = define(module, "f", [tensor(1, 4), tensor(4, 2)], lambda x, w: (x @ w).apply(ops.Tanh()))
    define(module, "g", [tensor(1, 4), tensor(4, 2)], lambda x, w: call(f, x, w) * 2.0)
    declare(module, "dg", "g", wrt=(1,))
    differentiate(module)
    assert calls(module.functions["dg"]) == {"f": 1, "f_bwd": 1}
    assert module.functions["f_bwd"].type.parameters == (tensor(1, 4), tensor(1, 2), tensor(1, 2))


def executed(module: Module, name: str) -> int:
    """How many instructions a call of `@name` runs."""
    total, pending = 0, [name]
    while pending:
        function = module.functions[pending.pop()]
        total += size(function)
        pending.extend(calls(function).elements())
    return total


def test_the_primal_runs_once_however_deep_the_calls() -> None:
    costs: list[int] = []
    for depth in (5, 10, 20):
        module = Module()
        define(module, "f0", [tensor()], wave)
        for level in range(1, depth + 1):
            inner = module.functions[f"f{level - 1}"]

            def body(x: Term, inner: Function = inner) -> Term:
                return call(inner, x.apply(ops.Sin())).apply(ops.Cos())

            define(module, f"f{level}", [tensor()], body)
        declare(module, "df", f"f{depth}")
        differentiate(module)
        costs.append(executed(module, "df"))
        expected = finite_differences(module, f"f{depth}", [0.4], 0)
        assert float(evaluate(module, "df", 0.4)) == pytest.approx(float(expected), abs=1e-8)
    assert costs[2] - costs[1] == 2 * (costs[1] - costs[0])


def test_a_callee_computes_gradients_only_for_what_the_caller_wants() -> None:
    module = Module()
    f = define(module, "f", [tensor(), tensor()], lambda x, y: x * y.apply(ops.Exp()))
    define(module, "g", [tensor(), tensor()], lambda x, y: call(f, x, y) * 2.0)
    declare(module, "by_x", "g", wrt=(0,))
    declare(module, "by_y", "g", wrt=(1,))
    differentiate(module)
    assert evaluate(module, "by_x", 3.0, 0.0) == 2.0
    assert evaluate(module, "by_y", 3.0, 0.0) == 6.0
    (backward,) = [name for name in calls(module.functions["by_x"]) if name.startswith("f_bwd")]
    assert count(module.functions[backward]) == {"strongMultiply": 1, "return": 1}


def test_callers_that_save_the_same_share_the_forward_function() -> None:
    """`by_x` and `by_y` want other gradients of @f, but need the same values of it."""
    module = Module()
    f = define(module, "f", [tensor(), tensor()], lambda x, y: wave(x + y) * 3.0)
    define(module, "g", [tensor(), tensor()], lambda x, y: call(f, x, y) * 2.0)
    declare(module, "by_x", "g", wrt=(0,))
    declare(module, "by_y", "g", wrt=(1,))
    differentiate(module)
    assert calls(module.functions["by_x"]) == {"f_fwd": 1, "f_bwd": 1}
    assert calls(module.functions["by_y"]) == {"f_fwd": 1, "f_bwd_1": 1}


def test_results_that_are_not_used_need_no_cotangent() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: (x.apply(ops.Sin()), x.apply(ops.Exp()), x * x))
    define(module, "g", [tensor()], lambda x: call(f, x)[2])
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "dg", 3.0) == 6.0
    assert "exp" not in count(module.functions["f_bwd"])
    assert "cos" not in count(module.functions["f_bwd"])


def layer(p: Term, x: Term) -> Term:
    return (x @ p["w"] + p["b"]).apply(ops.Sin()).apply(ops.Tanh())


def test_structs_and_tuples_across_calls() -> None:
    module = Module()
    f = define(module, "f", [PARAMS, tensor(2, 3)], layer)
    both = define(
        module, "both", [PARAMS, tensor(2, 3)], lambda p, x: (call(f, p, x), pack(p["b"], p["n"]))
    )
    define(module, "g", [PARAMS, tensor(2, 3)], lambda p, x: (
        call(f, p, call(both, p, x)[0]) + call(both, p, x)[1][0]))  # fmt: skip
    declare(module, "dg", "g", wrt=(0, 1), keeping=(0,))
    differentiate(module)
    rng = np.random.default_rng(1)
    w, b, x = (rng.normal(size=shape) for shape in ((3, 3), (3,), (2, 3)))
    by_w, by_n, by_b, by_x, y = evaluate(module, "dg", w, 4, b, x)
    np.testing.assert_array_equal(y, evaluate(module, "g", w, 4, b, x))
    assert by_n == 0 and by_n.dtype == np.int32

    for position, found in ((0, by_w), (2, by_b), (3, by_x)):
        expected = finite_differences(module, "g", [w, 4, b, x], position)
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_call_that_only_rounds_hands_nothing_back() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Floor()))
    define(module, "g", [tensor()], lambda x: call(f, x) + x)
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "dg", 2.5) == 1.0
    assert set(module.functions) == {"f", "g", "dg"}


def test_second_derivatives_through_calls() -> None:
    module = Module()
    thrice(module)
    declare(module, "dg", "g")
    declare(module, "ddg", "dg")
    differentiate(module)
    expected = finite_differences(module, "dg", [0.3], 0)
    assert float(evaluate(module, "ddg", 0.3)) == pytest.approx(float(expected), rel=1e-7)


def test_integers_pass_through_calls_as_they_are() -> None:
    module = Module()
    f = define(module, "f", [tensor(), tensor(dtype=I32)], lambda x, n: (
        x * n.apply(ops.DataTypeCast(F64)) * x, n * 2))  # fmt: skip
    define(module, "g", [tensor(), tensor(dtype=I32)], lambda x, n: call(f, x, call(f, x, n)[1])[0])
    declare(module, "dg", "g", wrt=(0,))
    differentiate(module)
    assert evaluate(module, "dg", 3.0, 5) == 60.0


def test_a_call_without_result() -> None:
    module = Module()
    define(module, "f", [tensor()], lambda x: x * x)
    nothing = define(module, "nothing", [tensor()], lambda x: pack(x))
    assert nothing.type.result != VOID
    define(module, "g", [tensor()], lambda x: call(module.functions["f"], x) + call(nothing, x)[0])
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "dg", 3.0) == 7.0
