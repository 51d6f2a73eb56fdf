"""Rules 6 to 9."""

from __future__ import annotations

from nnkit.core.ir import (
    Extern,
    Function,
    GradientOf,
    TangentOf,
    Variable,
)
from nnkit.core.types import (
    FunctionType,
)
from nnkit.core.verify import verify, violations

from .building import (
    S,
    X,
    found,
    module_of,
    negated,
)


def test_rule_6_functions_under_their_own_name() -> None:
    module = module_of(negated())
    module.functions["g"] = negated("h")
    assert found(module) == "  @h: stands in the module as @g"


def test_rule_7_declarations() -> None:
    gradient = Function("d", FunctionType((X,), X), declaration=GradientOf("g"))
    assert "is the gradient of @g, which does not exist" in found(module_of(negated(), gradient))
    gradient.declaration = GradientOf("f", wrt=(3,))
    assert "wrt 3 is out of range: @f has 1 parameter" in found(module_of(negated(), gradient))
    gradient.declaration = GradientOf("f", seedable=True)
    assert (
        "is declared as (<4 x f32>) -> <4 x f32>; the gradient is (<4 x f32>, <4 x f32>) -> <4 x f32>"
        in found(module_of(negated(), gradient))
    )


def test_rule_8_bodies() -> None:
    nothing = Function("d", FunctionType((X,), X))
    assert "has neither a body nor a declaration of what it is" in found(module_of(nothing))
    both = negated("d")
    both.declaration = GradientOf("f")
    assert "has both a body and a declaration that asks for one" in found(
        module_of(negated(), both)
    )


def test_rule_6_variables() -> None:
    module = module_of(negated())
    module.variables = {"f": Variable("f", S), "x": Variable("y", S)}
    assert violations(module) == [
        "  @f: is both a variable and a function",
        "  @y: stands in the module as @x",
    ]


def test_rule_7_tangents() -> None:
    tangent = Function("t", FunctionType((X,), X), declaration=TangentOf("f"))
    assert (
        "is declared as (<4 x f32>) -> <4 x f32>; the tangent is (<4 x f32>, <4 x f32>) -> <4 x f32>"
        in found(module_of(negated(), tangent))
    )
    tangent.type = FunctionType((X, X), X)
    verify(module_of(negated(), tangent))
    tangent.declaration = TangentOf("g")
    assert "is the tangent of @g, which does not exist" in found(module_of(negated(), tangent))


def test_rule_7_derivatives_of_derivatives() -> None:
    first = Function("d", FunctionType((X,), X), declaration=GradientOf("f"))
    second = Function("dd", FunctionType((X,), X), declaration=GradientOf("d"))
    verify(module_of(second, first, negated()))
    outside = Function("f", FunctionType((X,), X), declaration=Extern())
    assert found(module_of(second, first, outside)) == (
        "  @d: is the gradient of @f, which is defined elsewhere"
    )
    first.declaration = GradientOf("dd")
    assert violations(module_of(second, first)) == [
        "  @dd: is the gradient of @d, which is a derivative of itself",
        "  @d: is the gradient of @dd, which is a derivative of itself",
    ]


def test_rule_8_extern() -> None:
    verify(module_of(Function("e", FunctionType((X,), X), declaration=Extern())))
    both = negated()
    both.declaration = Extern()
    assert "has both a body and a declaration that says it is elsewhere" in found(module_of(both))


def test_rule_9_attributes() -> None:
    wrong = negated()
    wrong.attributes = ("inline", "fast")
    assert (
        found(module_of(wrong))
        == "  @f: has the attribute !fast; known are !inline, !noinline, !checkpoint"
    )
