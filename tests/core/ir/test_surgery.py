"""Walking, copying and redirecting IR."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Block, Builder, Function, GradientOf, Region, Value
from nnkit.core.ir.surgery import (
    clone_function,
    clone_instructions,
    clone_module,
    clone_region,
    drop_operands,
    replace_operands,
    walk,
    walk_blocks,
)
from nnkit.core.ops import Add, Exp, Negate, Nest, Return
from nnkit.core.ops.nest import Access, Output, build_nest, coordinate
from nnkit.core.text import parse_module
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify
from tests.core.passes.laws import module_of
from tests.programs import Program, describe, programs, same_bits

X = TensorType((3,), F32)


def nested(b: Builder, x: Value) -> Value:
    """A nest that adds one scalar to itself."""

    def body(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
        return [inner.emit(Add(), *read, *read)]

    point = (coordinate(0),)
    return build_nest(b, (3,), [(x, Access(point))], [Output(X, point)], body)[0]


def function(build=nested) -> Function:  # type: ignore[no-untyped-def]
    return module_of([X], build).functions["main"]


def body_of(a_function: Function) -> Region:
    assert a_function.body is not None
    return a_function.body


def test_walk_enters_regions() -> None:
    body = body_of(function())
    assert [i.op.name for i in walk(body)] == ["nest", "return", "add", "yield"]
    assert len(list(walk_blocks(body))) == 2


def test_operands_are_replaced_in_some_instructions_only() -> None:
    f = function(lambda b, x: b.emit(Add(), b.emit(Exp(), x), x))
    exp, add, end = f.entry.instructions
    (x,), other = f.parameters, Value(X)
    replace_operands([add], {x: other, end.operands[0]: other})
    assert exp.operands == (x,) and add.operands == (exp.result, other)
    assert list(x.uses) == [exp] and list(other.uses) == [add]


def test_operands_are_dropped_and_bodies_left() -> None:
    nest, end = function().entry.instructions
    (x,) = nest.operands
    inside = nest.regions[0].entry.instructions[0]
    drop_operands([end, nest])
    assert not nest.operands and not x.uses and not nest.result.uses
    assert inside.operands


def test_copies_know_where_they_come_from() -> None:
    text = "func @f: (f32) -> f32 { 'entry(%x: f32): return %x: f32 } [gradient @f] func @d: (f32) -> f32"
    module = parse_module(f'module "m" {text}')
    copy = clone_module(module)
    for name, function in module.functions.items():
        assert function.location is not None
        assert copy.functions[name].location is function.location
    start = module.functions["f"].entry.location
    assert start is not None and copy.functions["f"].entry.location is start
    declared, copied = module.functions["d"].declaration, copy.functions["d"].declaration
    assert isinstance(declared, GradientOf) and isinstance(copied, GradientOf)
    assert declared.location is not None and copied.location is declared.location


def test_copies_share_nothing_that_changes() -> None:
    f = function()
    copy = clone_function(f, "copy")
    originals, copies = list(walk(body_of(f))), list(walk(body_of(copy)))
    assert [i.op for i in originals] == [i.op for i in copies]
    own = {id(i) for i in originals} | {id(r) for i in originals for r in i.results}
    assert not any(id(i) in own or any(id(r) in own for r in i.results) for i in copies)
    values = {*copy.parameters, *(r for i in copies for r in i.results)}
    values |= {a for block in walk_blocks(body_of(copy)) for a in block.arguments}
    assert all(x in values for i in copies for x in i.operands)
    assert all(r.producer is i for i in copies for r in i.results)


def test_instructions_are_copied_onto_other_values() -> None:
    f = function(lambda b, x: b.emit(Negate(), b.emit(Exp(), x)))
    other, block = Value(X), Block()
    values = {f.parameters[0]: other}
    clone_instructions(block, f.entry.instructions[:-1], values)
    exp, negate = block.instructions
    assert exp.operands == (other,) and negate.operands == (exp.result,)
    assert values[f.entry.instructions[1].result] is negate.result


def test_values_from_outside_are_kept() -> None:
    captured = Value(X)
    inner = Builder(Block())
    inner.emit_many(Return(), [inner.emit(Exp(), captured)])
    copy = clone_region(Region([inner.block]), {})
    assert copy.entry.instructions[0].operands == (captured,)


def test_blocks_in_any_order() -> None:
    late, early = Builder(Block(name="late")), Builder(Block(name="early"))
    value = early.emit(Exp(), early.argument(X))
    late.emit_many(Return(), [value])
    copy = clone_region(Region([late.block, early.block]), {})
    last, first = copy.blocks
    assert last.terminator.operands == (first.instructions[0].result,)


def test_deep_nesting_does_not_recurse() -> None:
    block = Block()
    for _ in range(5000):
        outer = Builder(Block())
        outer.emit_many(Nest((1,)), (), [Region([block])])
        block = outer.block
    assert len(list(walk(clone_region(Region([block]), {})))) == 5000


@given(program=programs())
def test_a_copy_means_the_same(program: Program) -> None:
    copy = clone_module(program.module)
    assert describe(copy) == describe(program.module)
    verify(program.module)
    verify(copy)
    one, other = (evaluate(m, program.entry, *program.arguments) for m in (program.module, copy))
    assert same_bits(one, other)


def test_names_stay() -> None:
    f = function(lambda b, x: b.emit(Exp(), x))
    f.entry.instructions[0].result.name = "h"
    assert clone_function(f, "g").entry.instructions[0].result.name == "h"
