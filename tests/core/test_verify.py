"""One broken module per rule of the verifier, in the order of its list."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

import nnkit as nk
from nnkit import Rep, Tensor2D, f32
from nnkit.core import verify as verify_package
from nnkit.core.errors import InternalError, VerifyError
from nnkit.core.ir import (
    Block,
    Builder,
    Function,
    GradientOf,
    Instruction,
    Module,
    Region,
    Stage,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops import (
    Add,
    Aggregate,
    Apply,
    Broadcast,
    Dot,
    Exp,
    Extract,
    Gather,
    Literal,
    Negate,
    Reduce,
    Return,
    Yield,
    splat,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Access, Loaded, Nest, Output, coordinate
from nnkit.core.passes import DeadCode
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule.arena import ALIGNMENT, RESERVED
from nnkit.core.schedule.ops import Gemm, Loops, Place, ScheduledScan, arena, output
from nnkit.core.text import parse_module
from nnkit.core.types import (
    F32,
    F64,
    I64,
    VOID,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    scalar,
)
from nnkit.core.verify import verify, violations
from nnkit.core.verify.nest import UNIT
from nnkit.stages import advance, check

X = TensorType((4,), F32)
S = scalar(F32)
I = TensorType((4,), I64)
PAIR = TupleType((X, X))
POINT = (coordinate(0),)


def module_of(*functions: Function, stage: Stage = Stage.RAW) -> Module:
    module = Module("m", stage)
    for function in functions:
        module.functions[function.name] = function
    return module


def function(build: Callable[..., Value | None], *types: TensorType, name: str = "f") -> Function:
    """A function whose body `build(builder, *parameters)` writes; it returns what that returns."""
    b = start_function(types, [f"x{i}" for i in range(len(types))])
    result = build(b, *b.block.arguments)
    b.emit_many(Return(), [] if result is None else [result])
    return finish_function(name, b, VOID if result is None else result.type)


def negated(name: str = "f") -> Function:
    """@f: x ↦ −x, which is valid."""
    return function(lambda b, x: b.emit(Negate(), x), X, name=name)


def found(module: Module) -> str:
    """The one violation."""
    [message] = violations(module)
    return message


def nest_of(op: Nest, *operands: Value, body: Callable[[Builder], None]) -> Instruction:
    """An instruction that no rule has looked at."""
    inner = Builder()
    body(inner)
    instruction = Instruction(op, operands, (), (Region([inner.block]),))
    types = [target.type for target in op.outputs]
    instruction.results = tuple(Value(t, None, instruction, i) for i, t in enumerate(types))
    return instruction


def ordinary_body(b: Builder) -> None:
    """Takes one coordinate and one scalar, and yields the scalar."""
    b.argument(scalar(I64), "d0")
    b.emit_many(Yield(), [b.argument(S, "v")])


PLAIN = Nest((4,), (Access(POINT),), (Output(X, POINT),))


def with_nest(
    op: Nest, body: Callable[[Builder], None] = ordinary_body, *types: TensorType
) -> Module:
    """A module in stage compute, or schedule for loops, whose function is one nest."""
    b = start_function(types or [X], ["x", "y"])
    instruction = nest_of(op, *b.block.arguments, body=body)
    b.block.instructions.append(instruction)
    b.emit_many(Return(), instruction.results[:1])
    stage = Stage.SCHEDULE if isinstance(op, Loops) else Stage.COMPUTE
    return module_of(finish_function("f", b, X), stage=stage)


def test_what_is_right_passes() -> None:
    verify(module_of(negated()))
    verify(with_nest(PLAIN))
    verify(with_nest(LOOPS))
    assert not violations(Module())


def test_every_rule_of_the_list_has_a_test() -> None:
    rules = re.findall(r"^\S*\s+(\d+)\. ", verify_package.__doc__ or "", re.MULTILINE)
    tested = {match for name in globals() for match in re.findall(r"^test_rule_(\d+)_", name)}
    assert rules == [str(number) for number in range(1, len(rules) + 1)]
    assert set(rules) == tested


def test_rule_1_structs() -> None:
    one, other = StructType("S", (("a", X),)), StructType("S", (("a", S),))
    module = module_of(function(lambda b, x: b.emit(Aggregate(other), b.emit(splat(S, 1))), X))
    module.structs["S"] = one
    assert "two different structs are called $S" in found(module)
    assert "the name of the struct $a b is not a word" in found(
        Module(structs={"a b": StructType("a b", ())})
    )
    twice = StructType("S", (("a", X), ("a", S)))
    assert "two fields of the struct $S have the same name" in found(Module(structs={"S": twice}))
    assert "the struct $S stands in the module as $T" in found(Module(structs={"T": one}))


def test_rule_2_functions_under_their_own_name() -> None:
    module = module_of(negated())
    module.functions["g"] = negated("h")
    assert found(module) == "  @h: stands in the module as @g"


def test_rule_3_declarations() -> None:
    gradient = Function("d", FunctionType((X,), X), declaration=GradientOf("g"))
    assert "is the gradient of @g, which does not exist" in found(module_of(negated(), gradient))
    gradient.declaration = GradientOf("f", wrt=(3,))
    assert "wrt=3 is out of range: @f has 1 parameter" in found(module_of(negated(), gradient))
    gradient.declaration = GradientOf("f", seedable=True)
    assert (
        "is declared as (<4 x f32>) -> <4 x f32>; the gradient is (<4 x f32>, <4 x f32>) -> <4 x f32>"
        in found(module_of(negated(), gradient))
    )


def test_rule_4_bodies() -> None:
    nothing = Function("d", FunctionType((X,), X))
    assert "has neither a body nor a declaration of what it is" in found(module_of(nothing))
    both = negated("d")
    both.declaration = GradientOf("f")
    assert "has both a body and a declaration that asks for one" in found(
        module_of(negated(), both)
    )


def test_rule_5_entries() -> None:
    empty = Function("f", FunctionType((), VOID), Region())
    assert "has no entry block" in found(module_of(empty))
    wrong = negated()
    wrong.type = FunctionType((X, X), X)
    assert "the entry takes (<4 x f32>), the function (<4 x f32>, <4 x f32>)" in found(
        module_of(wrong)
    )


def test_rule_6_terminators() -> None:
    cut = negated()
    cut.entry.instructions.pop()
    assert "the block 'entry does not end with a terminator" in found(module_of(cut))
    early = negated()
    early.entry.instructions.insert(0, Instruction(Return(), tuple(early.parameters), ()))
    assert "return ends a block and is not its last instruction\n    in: return %x0: <4 x f32>" in (
        found(module_of(early))
    )
    yielding = negated()
    yielding.entry.instructions[-1].op = Yield()
    assert "yield ends the body of a nest, not a function" in found(module_of(yielding))
    assert "does not end with a terminator" in found(
        module_of(Function("f", FunctionType((), VOID), Region([Block()])))
    )


def test_rule_7_the_returned_type() -> None:
    wrong = negated()
    wrong.type = FunctionType((X,), S)
    assert "returns <4 x f32>; the function returns f32\n    in: return %0.0: <4 x f32>" in found(
        module_of(wrong)
    )
    nothing = function(lambda b: None)
    nothing.type = FunctionType((), S)
    assert "returns nothing; the function returns f32" in found(module_of(nothing))
    two = negated()
    two.entry.instructions[-1].operands *= 2
    assert "returns <4 x f32>, <4 x f32>; the function returns <4 x f32>" in found(module_of(two))


def test_rule_8_definitions_before_uses() -> None:
    late = negated()
    late.entry.instructions.insert(0, Instruction(Exp(), (), ()))
    exp = late.entry.instructions[0]
    exp.operands, exp.results = (late.entry.instructions[1].result,), (Value(X, "y", exp),)
    message = found(module_of(late))
    assert message == (
        "  @f: the operand %0.1: <4 x f32> is not defined before its use\n"
        "    in: %y = exp %0.1: <4 x f32>"
    )
    stranger = negated()
    stranger.entry.instructions[0].operands = (Value(X, "z"),)
    assert "the operand %z: <4 x f32> is not defined before its use" in found(module_of(stranger))


def test_rule_9_nothing_is_defined_twice() -> None:
    same = negated()
    same.entry.instructions.insert(0, same.entry.instructions[0])
    assert "the value %0.1: <4 x f32> is defined twice" in found(module_of(same))
    blocks = [Builder(Block(name="b")).block for _ in range(2)]
    for block in blocks:
        Builder(block).emit_many(Return(), [])
    wrong = Function("f", FunctionType((), VOID), Region(blocks))
    assert "the block 'b is defined twice" in found(module_of(wrong))


def test_rule_10_results_know_where_they_come_from() -> None:
    for change in ({"producer": None}, {"index": 1}):
        wrong = negated()
        for name, value in change.items():
            setattr(wrong.entry.instructions[0].result, name, value)
        assert "a result does not know where it comes from\n    in: %0.0 = negate" in found(
            module_of(wrong)
        )
    wrong = negated()
    wrong.parameters[0].producer = wrong.entry.instructions[0]
    assert "the argument %x0: <4 x f32> has an instruction that computes it" in found(
        module_of(wrong)
    )


def test_rule_11_operands() -> None:
    for count, said in ((0, "not 0"), (1, "not 1"), (3, "not 3")):
        wrong = function(lambda b, x: b.emit(Add(), x, x), X)
        wrong.entry.instructions[0].operands = tuple(wrong.parameters) * count
        assert f"add takes 2 operands, {said}" in found(module_of(wrong))
    none = function(lambda b, x: b.emit(Negate(), x), X)
    none.entry.instructions[0].op = Gather(0)
    assert "gather takes 2 operands, not 1" in found(module_of(none))
    wrong = function(lambda b, x: b.emit(Negate(), x), X)
    pair = wrong.entry.instructions[0].operands[0]
    pair.type = PAIR
    wrong.type = FunctionType((PAIR,), X)
    assert "negate takes tensors, not a (<4 x f32>, <4 x f32>)" in found(module_of(wrong))


def test_rule_12_type_rules() -> None:
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


def test_rule_13_calls() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Apply("g", FunctionType((X,), X)), x)

    assert "calls @g, which does not exist" in found(module_of(function(build, X)))
    other = function(lambda b, x: b.emit(Negate(), x), S, name="g")
    assert "calls @g as (<4 x f32>) -> <4 x f32>; it is (f32) -> f32" in found(
        module_of(other, function(build, X))
    )
    called = function(build, X)
    called.entry.instructions[0].operands = ()
    assert "@g takes (<4 x f32>), not ()" in found(module_of(negated("g"), called))


@pytest.mark.parametrize("stage", Stage)
def test_rule_14_stages(stage: Stage) -> None:
    def said(module: Module) -> str:
        module.stage = stage
        return "".join(violations(module))

    late = stage in (Stage.COMPUTE, Stage.SCHEDULE)
    assert ("negate has no place in stage" in said(module_of(negated()))) == late
    nest = said(with_nest(PLAIN))
    assert ("nest stands in stage" in nest) == (not late)
    assert ("nest has no place in stage schedule" in nest) == (stage is Stage.SCHEDULE)
    loops = said(with_nest(LOOPS))
    assert ("loops stands in stage" in loops) == (not late)
    assert ("loops has no place in stage compute" in loops) == (stage is Stage.COMPUTE)


def test_rule_15_bodies_of_instructions() -> None:
    bare = with_nest(PLAIN)
    bare.functions["f"].entry.instructions[0].regions = ()
    assert "a nest has one body of one block" in found(bare)
    wrong = negated()
    wrong.entry.instructions[0].regions = (Region([Builder().block]),)
    assert "negate has no body" in "".join(violations(module_of(wrong)))


def test_rule_16_elements_of_literals() -> None:
    def build(b: Builder) -> Value:
        return b.emit(Literal(X, b"12345678"))

    assert found(module_of(function(build))) == (
        "  @f: a literal of <4 x f32> has 8 bytes of 16\n    in: literal of 8 bytes: <4 x f32>"
    )


def test_rule_17_bodies_take_coordinates_and_scalars() -> None:
    def short(b: Builder) -> None:
        b.emit_many(Yield(), [b.argument(S)])

    assert "the body takes (f32); it should take (i64, f32)" in found(with_nest(PLAIN, short))

    module = with_nest(PLAIN)
    outside = module.functions["f"].parameters[0]

    def greedy(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        b.argument(S, "v")
        b.emit_many(Yield(), [b.emit(Reduce(Combinator.ADD, (0,)), outside)])

    instruction = module.functions["f"].entry.instructions[0]
    inner = Builder()
    greedy(inner)
    instruction.regions = (Region([inner.block]),)
    messages = "".join(violations(module))
    assert (
        "the operand %x: <4 x f32> is not defined before its use\n    in: %1.0 = reduce" in messages
    )


def test_rule_18_bodies_are_scalar() -> None:
    def reducing(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        v = b.argument(S, "v")
        b.emit_many(Yield(), [b.emit(Reduce(Combinator.ADD), v)])

    def wide(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        v = b.argument(S, "v")
        b.emit(Broadcast((2,)), v)
        b.emit_many(Yield(), [v])

    def endless(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        b.argument(S, "v")

    def wrong(b: Builder) -> None:
        b.emit_many(Yield(), [b.argument(scalar(I64), "d0")])
        b.argument(S, "v")

    assert "reduce cannot stand in the body of a nest" in found(with_nest(PLAIN, reducing))
    assert "broadcast makes more than a scalar in the body" in found(with_nest(PLAIN, wide))
    assert "the body of a nest ends with yield" in "".join(violations(with_nest(PLAIN, endless)))
    assert "the body yields (i64); the outputs hold (f32)" in found(with_nest(PLAIN, wrong))
    assert "a nest writes nothing" in "".join(
        violations(with_nest(Nest((4,), (Access(POINT),), ())))
    )


def test_rule_19_indices_that_are_read() -> None:
    def both(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        first, second = b.argument(scalar(I64)), b.argument(S)
        assert first.type != second.type
        b.emit_many(Yield(), [second])

    def nest(*accesses: Access) -> Nest:
        return Nest((4,), accesses, (Output(X, POINT),))

    verify(with_nest(nest(Access(POINT), Access((Loaded(0),))), both, I, X))
    late = with_nest(nest(Access((Loaded(1),)), Access(POINT)), both, I, X)
    assert "the index read 1 is read from an operand that does not stand before" in found(late)
    negative = with_nest(nest(Access(POINT), Access((Loaded(-1),))), both, I, X)
    assert "the index read -1 is read from an operand that does not stand before" in found(negative)
    scatter = Nest((4,), (Access(POINT), Access(POINT)), (Output(X, (Loaded(1),)),))
    assert "the index read 1 is read from f32[4], which holds no integers" in found(
        with_nest(scatter, both, I, X)
    )


LOOPS = Loops((4,), (Access(POINT),), (Output(X, POINT),), (output(0),), (0,))


def loops(
    *, places: tuple[Place, ...] = (output(0),), order: tuple[int, ...] = (0,), **more: int
) -> Module:
    return with_nest(Loops((4,), (Access(POINT),), (Output(X, POINT),), places, order, **more))


def test_rule_20_loops() -> None:
    for order in ((), (0, 0), (1,)):
        assert f"the order of loops {list(order)} does not visit each of 1 axes once" in found(
            loops(order=order)
        )
    assert "the vector axis 1 is not one of 1 axes" in found(loops(vector=1, lanes=4))
    assert "the vector axis -2 is not one of 1 axes" in found(loops(vector=-2))
    assert "a vector of 0 lanes with 1 accumulators does not exist" in found(
        loops(vector=0, lanes=0)
    )
    assert "a vector of 4 lanes with 1 accumulators does not exist" in found(loops(lanes=4))
    assert "a vector of 1 lanes with 0 accumulators does not exist" in found(loops(accumulators=0))


def test_rule_21_places() -> None:
    assert (ALIGNMENT, RESERVED) == (UNIT, UNIT)
    for place in (arena(0), arena(-64), arena(96), output(1), output(-1), Place("stack", 64)):
        assert f"{place} is no place for a buffer" in found(loops(places=(place,)))
    assert "0 places for 1 outputs" in found(loops(places=()))

    def scan(b: Builder, x: Value) -> Value:
        return b.emit(ScheduledScan(Combinator.ADD, 0, place=arena(8)), x)

    assert "arena 8 is no place for a buffer" in found(
        module_of(function(scan, X), stage=Stage.SCHEDULE)
    )


def test_rule_22_the_blas() -> None:
    integers, mixed = TensorType((2, 2), I64), TensorType((2, 2), F64)

    def product(b: Builder, x: Value) -> Value:
        return b.emit(Gemm(output(0)), x, x)

    verify(module_of(function(product, mixed), stage=Stage.SCHEDULE))
    assert "the BLAS multiplies f32 and f64 only" in found(
        module_of(function(product, integers), stage=Stage.SCHEDULE)
    )


TEXT = """module "m"
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = exp %x: f32
    return %y: f32
}
func @g: (f32) -> i64 {
'entry(%x: f32):
    %y = apply @h(%x) -> f32
    return %y: f32
}
"""


def test_all_violations_are_listed_with_instruction_and_place() -> None:
    module = parse_module(TEXT, "model.dl")
    module.functions["f"].entry.instructions[0].op = Add()
    with pytest.raises(VerifyError) as caught:
        verify(module)
    assert str(caught.value) == (
        "module 'm' has 3 violations:\n"
        "  @f: add takes 2 operands, not 1\n"
        "    in: %y = add %x: f32, %?\n"
        "    at: model.dl:4\n"
        "  @g: calls @h, which does not exist\n"
        "    in: %y = apply @h(%x): (f32) -> f32\n"
        "    at: model.dl:9\n"
        "  @g: returns f32; the function returns i64\n"
        "    in: return %y: f32\n"
        "    at: model.dl:10"
    )


@nk.staged
def twice(x: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return x + x


def test_a_violation_shows_the_line_of_the_user() -> None:
    spec = nk.spec((2, 2), f32)
    module, entry = twice._specialization((spec,)).module("raw")  # type: ignore[attr-defined]
    entry.entry.instructions[0].op = Negate()
    assert "return x + x\n" in found(module) and "^^^^^" in found(module)


def test_a_pass_that_breaks_a_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Module:
        module = parse_module(TEXT[: TEXT.index("func @g")])
        module.functions["f"].entry.instructions[-1].operands = ()
        return module

    run_pipeline(broken(), [DeadCode()], verifier=verify)
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    with pytest.raises(InternalError, match="after pass 'dce': module 'm' has 1 violation:"):
        run_pipeline(broken(), [DeadCode()], verifier=verify)
    with pytest.raises(InternalError, match="after stage 'raw': module 'm' has 1 violation:"):
        check(broken(), "raw")
    with pytest.raises(InternalError, match=r"after pass '.*': module 'm' has"):
        advance(broken(), "f", "optimizable")


def test_every_stage_of_a_program_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    seen: list[str] = []
    monkeypatch.setattr("nnkit.stages.verify", lambda module: seen.append(module.stage.value))
    twice.ir(nk.spec((2, 2), f32), stage="schedule")
    assert {"raw", "optimizable", "compute", "schedule"} <= set(seen)


def test_verifying_takes_time_in_proportion_to_the_program() -> None:
    def chain(count: int) -> Module:
        b = start_function([X])
        [value] = b.block.arguments
        for _ in range(count):
            value = b.emit(Add(), value, b.block.arguments[0])
        b.emit_many(Return(), [value])
        return module_of(finish_function("f", b, X))

    module = chain(10_000)
    start = time.process_time()
    verify(module)
    assert time.process_time() - start < 1.5, "a tenth of a second on an idle machine"


def test_many_violations_are_found_as_fast() -> None:
    module = parse_module(TEXT[: TEXT.index("func @g")])
    block = module.functions["f"].entry
    for _ in range(2000):
        block.instructions.insert(0, Instruction(Add(), (Value(S),), ()))
    start = time.process_time()
    assert len(violations(module)) >= 4000
    assert time.process_time() - start < 3
