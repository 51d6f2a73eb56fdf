"""Rules 19 to 21, and 23 to 25."""

from __future__ import annotations

from nnkit.core.ir import (
    Builder,
    Region,
    Value,
    Variable,
)
from nnkit.core.ops import (
    Add,
    Apply,
    Broadcast,
    Dot,
    Extract,
    For,
    Gather,
    Literal,
    Negate,
    Reduce,
    ReduceBy,
    Reference,
    Yield,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Access, Nest, Output, coordinate
from nnkit.core.types import (
    BOOL,
    F32,
    I64,
    FunctionType,
    PointerType,
    TensorType,
    Type,
    scalar,
)
from nnkit.core.verify import verify, violations

from .building import (
    PAIR,
    PLAIN,
    POINT,
    I,
    S,
    X,
    found,
    function,
    module_of,
    negated,
    with_nest,
)


def test_rule_19_operands() -> None:
    for count, said in ((0, "not 0"), (1, "not 1"), (3, "not 3")):
        wrong = function(lambda b, x: b.emit(Add(), x, x), X)
        wrong.entry.instructions[0].set_operands(wrong.parameters * count)
        assert f"add takes 2 operands, {said}" in found(module_of(wrong))
    none = function(lambda b, x: b.emit(Negate(), x), X)
    none.entry.instructions[0].op = Gather(0)
    assert "gather takes indices" in found(module_of(none))
    wrong = function(lambda b, x: b.emit(Negate(), x), X)
    pair = wrong.entry.instructions[0].operands[0]
    pair.type = PAIR
    wrong.type = FunctionType((PAIR,), X)
    assert "negate takes tensors, not a (<4 x f32>, <4 x f32>)" in found(module_of(wrong))


def test_rule_20_type_rules() -> None:
    wrong = negated()
    wrong.entry.instructions[0].op = Reduce(Combinator.ADD, (7,))
    assert "out of range" in found(module_of(wrong))
    wrong = negated()
    wrong.entry.instructions[0].op = Broadcast((2, 4))
    assert "the results are (<4 x f32>); by its rule they are (<2 x 4 x f32>)" in found(
        module_of(wrong)
    )
    wrong = function(lambda b, x: b.emit(Extract((1,)), x), PAIR)  # type: ignore[arg-type]
    wrong.entry.instructions[0].op = Extract((2,))
    assert "(<4 x f32>, <4 x f32>) has no element 2" in found(module_of(wrong))
    outside = with_nest(Nest((4,), (Access((coordinate(3),)),), (Output(X, POINT),)))
    assert "index d3 leaves the 1 axes" in found(outside)
    products = function(lambda b, x: b.emit(Dot(), x, x), X)
    products.entry.instructions[0].op = Add()
    assert (
        "the results are (f32); by its rule they are (<4 x f32>)"
        in violations(module_of(products))[0]
    )


def test_rule_21_calls() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Apply("g", FunctionType((X,), X)), x)

    assert "calls @g, which does not exist" in found(module_of(function(build, X)))
    other = function(lambda b, x: b.emit(Negate(), x), S, name="g")
    assert "calls @g as (<4 x f32>) -> <4 x f32>; it is (f32) -> f32" in found(
        module_of(other, function(build, X))
    )
    called = function(build, X)
    called.entry.instructions[0].set_operands(())
    assert "@g takes (<4 x f32>), not ()" in found(module_of(negated("g"), called))


def test_rule_23_bodies_of_instructions() -> None:
    bare = with_nest(PLAIN)
    bare.functions["f"].entry.instructions[0].regions = ()
    assert "nest has one body of one block, not none" in found(bare)
    wrong = negated()
    wrong.entry.instructions[0].regions = (Region([Builder().block]),)
    assert "negate has no body, not bodies of 1 blocks" in "".join(violations(module_of(wrong)))


def test_rule_25_elements_of_literals() -> None:
    def build(b: Builder) -> Value:
        return b.emit(Literal(X, b"12345678"))

    assert found(module_of(function(build))) == (
        "  @f: a literal of <4 x f32> has 8 bytes of 16\n    in: literal of 8 bytes: <4 x f32>"
    )


def test_rule_21_references() -> None:
    def build(b: Builder) -> Value:
        return b.emit(Reference("f", PointerType(S)))

    module = module_of(function(build, name="g"))
    assert "refers to @f, which does not exist" in found(module)
    module.variables["f"] = Variable("f", I)
    assert "refers to @f as *f32; it is *<4 x i64>" in found(module)
    module.variables["f"] = Variable("f", S)
    verify(module)


def test_rule_24_structured_bodies() -> None:
    def body(*arguments: Type) -> Builder:
        b = Builder()
        for type in arguments:
            b.argument(type)
        return b

    def build(b: Builder, lower: Value) -> None:
        inner = body(scalar(I64), S)
        inner.emit_many(Yield(), [inner.block.arguments[0]])
        loop = For((TensorType((3, 2), F32),))
        b.emit_many(loop, [lower, lower], [Region([inner.block])])

    wrong = module_of(function(build, scalar(I64)))
    [takes, yields] = violations(wrong)
    assert "body 1 of for takes (i64, f32); it should take (i64)" in takes
    assert "body 1 of for yields (i64); it should yield (<2 x f32>)" in yields


def test_rule_25_truth_values() -> None:
    def build(b: Builder) -> Value:
        return b.emit(Literal(TensorType((2,), BOOL), bytes((1, 2))))

    assert "a literal of <2 x bool> has bytes other than 0 and 1" in found(
        module_of(function(build))
    )


def test_rule_19_operands_that_can_be_left_out() -> None:
    binary = FunctionType((S, S), S)

    def build(b: Builder, x: Value, init: Value) -> Value:
        by = b.emit(Reference("add", binary))
        y = b.emit(ReduceBy((0,)), x, by)
        return b.emit(Add(), y, b.emit(ReduceBy((0,)), x, init, by))

    module = module_of(function(build, X, S))
    add = function(lambda b, x, y: b.emit(Add(), x, y), S, S, name="add")
    module.functions["add"] = add
    verify(module)
    instruction = module.functions["f"].entry.instructions[1]
    instruction.set_operands(instruction.operands * 2)
    assert "reduceBy takes 2 to 3 operands, not 4" in found(module)
