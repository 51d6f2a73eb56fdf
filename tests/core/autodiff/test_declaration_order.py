"""Declarations come after what they depend on; what depends on itself is refused."""

from __future__ import annotations

import pytest

from nnkit.core.autodiff.declaration_order import declarations_in_order
from nnkit.core.errors import DifferentiationError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Extern, Function, GradientOf, Module, TangentOf
from nnkit.core.types import FunctionType

from .building import Term, call, declare, define, differentiate, tensor

SCALARS = FunctionType((tensor(),), tensor())


def test_gradients_of_gradients_come_last_wherever_they_stand() -> None:
    module = Module()
    third = module.add(Function("third", SCALARS, declaration=GradientOf("second")))
    second = module.add(Function("second", SCALARS, declaration=GradientOf("first")))
    first = module.add(Function("first", SCALARS, declaration=GradientOf("f")))
    define(module, "f", [tensor()], lambda x: x * x * x)
    assert declarations_in_order(module, list(module.functions)) == [first, second, third]
    differentiate(module)
    assert evaluate(module, "third", 5.0) == 6.0


def test_a_function_that_needs_its_own_gradient_is_refused() -> None:
    module = Module()
    gradient = Function("df", SCALARS, declaration=GradientOf("f"))
    module.add(gradient)
    define(module, "f", [tensor()], lambda x: call(gradient, x) * x)
    with pytest.raises(UnsupportedError, match=r"@df → @f → @df"):
        differentiate(module)


def test_recursion_elsewhere_in_the_module_does_no_harm() -> None:
    module = Module()
    itself = Function("loop", SCALARS)
    define(module, "loop", [tensor()], lambda x: call(itself, x))
    define(module, "f", [tensor()], lambda x: x * x)
    declare(module, "df", "f")
    differentiate(module)
    assert evaluate(module, "df", 3.0) == 6.0


def test_recursion_elsewhere_does_no_harm_beside_generated_functions() -> None:
    module = Module()
    itself = Function("loop", SCALARS)
    define(module, "loop", [tensor()], lambda x: call(itself, x))
    f = define(module, "f", [tensor()], lambda x: x * x)
    define(module, "g", [tensor()], lambda x: call(f, x) * 2.0)
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "dg", 3.0) == 12.0
    assert set(module.functions) == {"loop", "f", "g", "dg", "f_bwd"}


def test_a_primal_without_body() -> None:
    module = Module()
    module.add(Function("f", SCALARS))
    declare(module, "df", "f")
    with pytest.raises(UnsupportedError, match="@f has no body, so it cannot be differentiated"):
        differentiate(module)


@pytest.mark.parametrize("mode", [GradientOf("f"), TangentOf("f")])
def test_a_callee_defined_elsewhere(mode: GradientOf | TangentOf) -> None:
    module = Module()
    elsewhere = Function("g", SCALARS, declaration=Extern())
    module.add(elsewhere)
    define(module, "f", [tensor()], lambda x: call(elsewhere, x))
    primal = module.functions["f"]
    count = 2 if isinstance(mode, TangentOf) else 1
    type = FunctionType((tensor(),) * count, primal.type.result)
    module.add(Function("df", type, declaration=mode))
    with pytest.raises(DifferentiationError, match="@g is a foreign function, which has no deriv"):
        differentiate(module)


def test_a_primal_that_is_not_there() -> None:
    module = Module()
    module.add(Function("df", SCALARS, declaration=GradientOf("f")))
    with pytest.raises(DifferentiationError, match="@df speaks of @f, which is not in the module"):
        differentiate(module)


def test_calls_nested_beyond_the_stack_of_python() -> None:
    module = Module()
    define(module, "f0", [tensor()], lambda x: x * x)
    for depth in range(1, 1_500):
        inner = module.functions[f"f{depth - 1}"]

        def body(x: Term, inner: Function = inner) -> Term:
            return call(inner, x + 0.0)

        define(module, f"f{depth}", [tensor()], body)
    declare(module, "df", "f1499")
    differentiate(module)
    assert evaluate(module, "df", 3.0) == 6.0
