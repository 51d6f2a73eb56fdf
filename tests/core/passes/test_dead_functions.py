"""Functions nobody needs."""

from __future__ import annotations

from nnkit.core.ir import Function, GradientOf, Module, Stage
from nnkit.core.ops import Exp
from nnkit.core.passes import DeadFunctions, apply_pass
from nnkit.core.types import F32, FunctionType, TensorType
from tests.core.passes.laws import call, define, parsed

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


def test_what_is_a_value_is_needed_and_other_variables_go() -> None:
    module = parsed("""
    struct $Used { #a: f32 }
    struct $Unused { #a: f32 }
    var @used: f32
    var @unused: f32
    func @value: (f32) -> f32 {
    'entry(%x: f32): return %x: f32
    }
    func @main: ($Used) -> f32 {
    'entry(%s: $Used):
        %f = literal @value: (f32) -> f32
        %p = literal @used: *f32
        %x = load %p: *f32
        %y = apply %f(%x): (f32) -> f32
        return %y: f32
    }
    """)
    assert apply_pass(DeadFunctions(("main",)), module)
    assert list(module.functions) == ["value", "main"] and list(module.variables) == ["used"]
    assert list(module.structs) == ["Used", "Unused"]
    module.stage = Stage.OPTIMIZABLE
    assert apply_pass(DeadFunctions(("main",)), module)
    assert list(module.structs) == ["Used"]
    assert not apply_pass(DeadFunctions(("main",)), module)


def test_a_gradient_needs_its_primal() -> None:
    module = program()
    apply_pass(DeadFunctions(("gradient",)), module)
    assert list(module.functions) == ["leaf", "gradient"]


def test_without_roots_everything_stays() -> None:
    assert not apply_pass(DeadFunctions(), program())
