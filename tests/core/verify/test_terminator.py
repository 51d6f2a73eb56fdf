"""Rules 13 and 14."""

from __future__ import annotations

from nnkit.core.ir import (
    Block,
    Builder,
    Instruction,
    Module,
    Op,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops import (
    Branch,
    BranchEnum,
    Conditional,
    Return,
)
from nnkit.core.types import (
    BOOL,
    VOID,
    EnumType,
    Type,
    scalar,
)
from nnkit.core.verify import verify

from .building import (
    S,
    X,
    found,
    module_of,
    negated,
)


def going(op: Op, operands: int, *successors: Block) -> Module:
    """@f: (bool, f32) -> void, whose entry ends with `op` on the first operands."""
    b = start_function([scalar(BOOL), S], ["c", "x"])
    leaving = Instruction(op, tuple(b.block.arguments[:operands]), (), (), None, successors)
    b.block.instructions.append(leaving)
    made = finish_function("f", b, VOID)
    assert made.body is not None
    made.body.blocks += [block for block in successors if block.name != "elsewhere"]
    return module_of(made)


def end(name: str, *arguments: Type) -> Block:
    """A block that returns."""
    b = Builder(Block(name=name))
    for type in arguments:
        b.argument(type)
    b.emit_many(Return(), [])
    return b.block


def test_rule_13_successors() -> None:
    verify(going(Conditional(1), 2, end("a", S), end("b")))
    assert "branch has 1 successor, not 0" in found(going(Branch(), 0))
    assert "conditional has 2 successors, not 1" in found(going(Conditional(), 1, end("a")))
    assert "return has no successors, not 1" in found(going(Return(), 0, end("a")))
    assert "the block 'elsewhere, which is not a block of the same region" in found(
        going(Branch(), 0, end("elsewhere"))
    )
    negating = module_of(negated())
    f = negating.functions["f"]
    f.entry.instructions[0].successors = (f.entry,)
    assert "negate has no successors, not 1" in found(negating)


def test_rule_13_the_first_block() -> None:
    module = going(Branch(), 2, end("a"))
    entry = module.functions["f"].entry
    entry.instructions[-1].successors = (entry,)
    assert "branch goes on to the block 'entry: nothing leads back to the first block" in found(
        module
    )


def test_rule_14_arguments() -> None:
    assert "the block 'b is given (f32); it takes ()" in found(
        going(Conditional(0), 2, end("a"), end("b"))
    )
    assert "the block 'a is given (bool); it takes (f32)" in found(going(Branch(), 1, end("a", S)))
    for taken in (-1, 2):
        assert f"conditional gives its first successor {taken} of 1 arguments" in found(
            going(Conditional(taken), 2, end("a", S), end("b"))
        )


def test_rule_14_what_cases_carry() -> None:
    enum = EnumType("E")
    enum.define([("a", (S, X)), ("b", ())])
    b = start_function([enum])
    b.emit_many(BranchEnum(("b", "a")), b.block.arguments, (), [end("one"), end("two", S)])
    f = finish_function("f", b, VOID)
    assert f.body is not None
    f.body.blocks += b.block.instructions[-1].successors
    assert "the block 'two is given (f32, <4 x f32>) by ?a; it takes (f32)" in found(module_of(f))
    b.block.instructions[-1].successors[1].arguments.append(Value(X))
    verify(module_of(f))
