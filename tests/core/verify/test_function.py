"""Rules 10 to 12, and 15 to 18."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.analysis import Graph
from nnkit.core.ir import (
    Block,
    Builder,
    Function,
    Instruction,
    Op,
    Region,
    Value,
)
from nnkit.core.ops import (
    Branch,
    Conditional,
    Exp,
    If,
    Negate,
    Return,
    Yield,
    splat,
)
from nnkit.core.types import (
    BOOL,
    VOID,
    FunctionType,
    scalar,
)
from nnkit.core.verify import violations

from ..analysis.graphs import graphs, is_dominator, reached
from .building import (
    PLAIN,
    S,
    X,
    found,
    function,
    module_of,
    negated,
    with_nest,
)


def test_rule_10_entries() -> None:
    empty = Function("f", FunctionType((), VOID), Region())
    assert "has no entry block" in found(module_of(empty))
    wrong = negated()
    wrong.type = FunctionType((X, X), X)
    assert "the entry takes (<4 x f32>), the function (<4 x f32>, <4 x f32>)" in found(
        module_of(wrong)
    )


def test_rule_11_terminators() -> None:
    cut = negated()
    cut.entry.instructions.pop().erase()
    assert "the block 'entry does not end with a terminator" in found(module_of(cut))
    early = negated()
    early.entry.instructions.insert(0, Instruction(Return(), tuple(early.parameters), ()))
    assert "return ends a block and is not its last instruction\n    in: return %x0: <4 x f32>" in (
        found(module_of(early))
    )
    yielding = negated()
    yielding.entry.instructions[-1].op = Yield()
    assert "yield ends a body, not a block of a function" in found(module_of(yielding))
    assert "does not end with a terminator" in found(
        module_of(Function("f", FunctionType((), VOID), Region([Block()])))
    )


def test_rule_12_the_returned_type() -> None:
    wrong = negated()
    wrong.type = FunctionType((X,), S)
    assert "returns <4 x f32>; the function returns f32\n    in: return %0.0: <4 x f32>" in found(
        module_of(wrong)
    )
    nothing = function(lambda b: None)
    nothing.type = FunctionType((), S)
    assert "returns nothing; the function returns f32" in found(module_of(nothing))
    two = negated()
    two.entry.instructions[-1].set_operands(two.entry.terminator.operands * 2)
    assert "returns <4 x f32>, <4 x f32>; the function returns <4 x f32>" in found(module_of(two))


def test_rule_15_definitions_before_uses() -> None:
    late = negated()
    late.entry.instructions.insert(0, Instruction(Exp(), (), ()))
    exp = late.entry.instructions[0]
    exp.set_operands([late.entry.instructions[1].result])
    exp.results = (Value(X, "y", exp),)
    message = found(module_of(late))
    assert message == (
        "  @f: the operand %0.1: <4 x f32> is not defined before its use\n"
        "    in: %y = exp %0.1: <4 x f32>"
    )
    stranger = negated()
    stranger.entry.instructions[0].set_operands([Value(X, "z")])
    assert "the operand %z: <4 x f32> is not defined in this function" in found(module_of(stranger))


def test_rule_16_nothing_is_defined_twice() -> None:
    same = negated()
    same.entry.instructions.insert(0, same.entry.instructions[0])
    assert "the value %0.1: <4 x f32> is defined twice" in found(module_of(same))
    blocks = [Builder(Block(name="b")).block for _ in range(2)]
    for block in blocks:
        Builder(block).emit_many(Return(), [])
    wrong = Function("f", FunctionType((), VOID), Region(blocks))
    assert "the block 'b is defined twice" in found(module_of(wrong))


def test_rule_17_results_know_where_they_come_from() -> None:
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


def test_rule_17_values_know_their_uses() -> None:
    wrong = negated()
    negate, end = wrong.entry.instructions
    other = Instruction(Negate(), (wrong.parameters[0],), ())
    message = "%x0: <4 x f32> is used by an instruction that is not there: <negate of 1 operands>"
    assert message in found(module_of(wrong))
    other.erase()
    assert not violations(module_of(wrong))
    object.__setattr__(end, "operands", (wrong.parameters[0],))
    messages = "".join(violations(module_of(wrong)))
    assert "the operand %x0: <4 x f32> does not know this use of it\n    in: return" in messages
    assert "%0.0: <4 x f32> is used by an instruction that is not there: <return" in messages
    object.__setattr__(end, "operands", negate.results)
    wrong.entry.instructions[:] = [end]
    messages = "".join(violations(module_of(wrong)))
    assert "%x0: <4 x f32> is used by an instruction that is not there: <negate" in messages


def test_rule_16_blocks_bodies_and_instructions_stand_once() -> None:
    twice = with_nest(PLAIN)
    nest = twice.functions["f"].entry.instructions[0]
    nest.regions *= 2
    assert "a body of nest stands in two places" in found(twice)
    inside_itself = with_nest(PLAIN)
    function = inside_itself.functions["f"]
    function.entry.instructions[0].regions = (function.body or Region(),)
    assert "a body of nest stands in two places" in found(inside_itself)
    block = Block(name="b")
    Builder(block).emit_many(Return(), [])
    again = Function("f", FunctionType((), VOID), Region([block, block]))
    assert "the block 'b stands in two places" in "".join(violations(module_of(again)))
    leaving = Instruction(Return(), (), ())
    blocks = [Block([], [leaving], "a"), Block([], [leaving], "b")]
    assert "the same instruction stands in two places" in found(
        module_of(Function("f", FunctionType((), VOID), Region(blocks)))
    )


def test_rule_15_values_of_other_bodies() -> None:
    def build(b: Builder, x: Value) -> Value:
        regions: list[Region] = []
        inner = x
        condition = b.emit(splat(scalar(BOOL), True))
        for _ in range(2):
            body = Builder()
            inner = body.emit(Negate(), inner)
            body.emit_many(Yield(), [inner])
            regions.append(Region([body.block]))
        return b.emit_many(If((X,)), [condition], regions)[0]

    wrong = function(build, X)
    assert "is defined in a body that is not around its use" in found(module_of(wrong))
    instruction = wrong.entry.instructions[1]
    body = instruction.regions[1].entry
    body.instructions[0].set_operands(instruction.results)
    assert "is not defined before its use" in found(module_of(wrong))


def test_rule_18_closed_bodies() -> None:
    module = with_nest(PLAIN)
    f = module.functions["f"]
    f.entry.instructions[0].regions[0].entry.instructions[-1].set_operands(f.parameters)
    messages = "".join(violations(module))
    assert (
        "%x: <4 x f32> comes from outside a closed body, which uses only what it is given"
        in messages
    )


@given(graphs(), st.data())
def test_rule_15_agrees_with_the_definition_of_dominance(graph: Graph, data: st.DataObject) -> None:
    """Every block makes a value and uses that of another one."""
    count = len(graph)
    used = data.draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    blocks = [Block(name=f"b{n}") for n in range(count)]
    made = [Builder(block).emit(splat(S, 1)) for block in blocks]
    for n, after in enumerate(graph.successors):
        Builder(blocks[n]).emit(Negate(), made[used[n]])
        ahead = [blocks[k] for k in after if k != 0][:2]
        condition = Builder(blocks[n]).emit(splat(scalar(BOOL), True))
        ends: dict[int, tuple[Op, list[Value]]] = {
            0: (Return(), []), 1: (Branch(), []), 2: (Conditional(), [condition])
        }  # fmt: skip
        op, operands = ends[len(ahead)]
        Builder(blocks[n]).emit_many(op, operands, (), ahead)
    module = module_of(Function("f", FunctionType((), VOID), Region(blocks)))
    flow = Graph([[k for k in after if k != 0][:2] for after in graph.successors])
    inside = reached(flow)
    wrong = [n for n in range(count) if n in inside and not is_dominator(flow, used[n], n)]
    found = violations(module)
    assert len(found) == len(wrong)
    assert all(
        f"which the block 'b{n} can be reached without" in m
        for n, m in zip(wrong, found, strict=True)
    )
