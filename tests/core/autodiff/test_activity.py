"""Nothing is computed for derivatives that nobody asked for."""

from __future__ import annotations

import numpy as np

from nnkit.core import ops
from nnkit.core.autodiff.activity import Activity
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.passes import Flatten, apply_pass
from nnkit.core.types import F64, I32, DType, StructType

from .building import (
    Term,
    call,
    calls,
    count,
    declare,
    define,
    differentiate,
    gradient_of,
    pack,
    tensor,
)

MIXED = StructType("Mixed", (("x", tensor()), ("n", tensor(dtype=I32)), ("y", tensor())))


def cast(x: Term, dtype: DType) -> Term:
    return x.apply(ops.DataTypeCast(dtype))


def test_wrt_one_of_two_computes_nothing_for_the_other() -> None:
    types = [tensor(4, 5), tensor(5, 6)]
    both = gradient_of(types, lambda x, w: x @ w)
    one = gradient_of(types, lambda x, w: x @ w, wrt=(1,))
    assert count(both.functions["df"])["dot"] == 2
    assert count(one.functions["df"]) == {"literal": 1, "transpose": 1, "dot": 1, "return": 1}


def test_each_result_depends_on_the_parameters_that_reach_it_as_floats() -> None:
    module = Module()
    define(module, "f", [tensor(), tensor(), tensor(dtype=I32)], lambda x, y, n: (
        x * y, cast(x, I32), cast(cast(x, I32), F64) + y, cast(n, F64), y))  # fmt: skip
    assert Activity(module).of_results("f") == (0b011, 0, 0b010, 0, 0b010)


def test_fields_of_a_struct_are_told_apart() -> None:
    module = Module()
    define(module, "f", [MIXED, tensor()], lambda p, z: (
        p["x"] * z, pack(p["y"], p["n"], p["x"])[0], p["n"]))  # fmt: skip
    apply_pass(Flatten(), module)
    assert Activity(module).of_results("f") == (0b1001, 0b0100, 0)


def test_dependence_is_seen_through_calls() -> None:
    module = Module()
    swap = define(module, "swap", [tensor(), tensor()], lambda x, y: (y, x * x))
    define(module, "f", [tensor(), tensor()], lambda x, y: call(swap, call(swap, x, y)[0], x)[1])
    apply_pass(Flatten(), module)
    assert Activity(module).of_results("f") == (0b10,)


def test_a_call_that_nothing_reaches_stays_a_plain_call() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()))
    define(module, "g", [tensor(), tensor()], lambda x, y: call(f, x) * y)
    declare(module, "dg", "g", wrt=(1,))
    differentiate(module)
    assert calls(module.functions["dg"]) == {"f": 1}
    assert set(module.functions) == {"f", "g", "dg"}


def test_stopped_gradients_are_constants_and_the_stop_is_gone_afterwards() -> None:
    module = gradient_of(
        [tensor()], lambda x: x * x.apply(ops.Exp()).apply(ops.stop_gradient.StopGradient())
    )
    assert evaluate(module, "df", 2.0) == np.exp(2.0)
    assert evaluate(module, "f", 2.0) == 2.0 * np.exp(2.0)
    for function in module.functions.values():
        assert "stopGradient" not in count(function)


def test_what_only_reaches_another_result_is_not_differentiated() -> None:
    module = gradient_of([tensor()], lambda x: (x * 3.0, x.apply(ops.Sin())), sources=(0,))
    assert evaluate(module, "df", 1.0) == 3.0
    assert "cos" not in count(module.functions["df"])
    assert "sin" not in count(module.functions["df"])
