"""Functions nobody needs."""

from __future__ import annotations

from nnkit.core.ir import Function, GradientOf, Module
from nnkit.core.ops import Exp
from nnkit.core.passes import DeadFunctions, apply_pass
from nnkit.core.types import F32, FunctionType, TensorType
from tests.core.passes.laws import call, define

X = TensorType((3,), F32)


def program() -> Module:
    """main calls leaf; other calls nobody; gradient is that of leaf."""
    module = Module()
    leaf = define(module, "leaf", [X], lambda b, x: b.emit(Exp(), x))
    define(module, "main", [X], lambda b, x: call(b, leaf, x))
    define(module, "other", [X], lambda b, x: call(b, leaf, x))
    module.add(Function("gradient", FunctionType((X,), X), declaration=GradientOf("leaf")))
    return module


def test_callees_of_roots_stay() -> None:
    module = program()
    assert apply_pass(DeadFunctions(("main",)), module)
    assert list(module.functions) == ["leaf", "main"]
    assert not apply_pass(DeadFunctions(("main",)), module)


def test_a_gradient_needs_its_primal() -> None:
    module = program()
    apply_pass(DeadFunctions(("gradient",)), module)
    assert list(module.functions) == ["leaf", "gradient"]


def test_without_roots_everything_stays() -> None:
    assert not apply_pass(DeadFunctions(), program())
