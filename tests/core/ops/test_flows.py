"""What flows into, around and out of structured instructions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nnkit.core.errors import ShapeError
from nnkit.core.ir import Instruction, Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Structured
from nnkit.core.ops.flows import (
    Role,
    add_flows,
    add_yields,
    arguments_of_bodies,
    element_of,
    flows_in,
    flows_of,
    keep_flows,
    passed_along,
    sources_of,
    targets_of,
)
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, I64, TensorType, TupleType, scalar
from nnkit.core.verify import verify

TEXT = """module "flows"
stage optimized

func @f: (bool, i64, f32, <3 x f32>) -> f32 {
'entry(%c: bool, %n: i64, %x: f32, %v: <3 x f32>):
    %a, %b = if %c: bool -> f32, <3 x f32> given %x: f32, %v: <3 x f32> {
    'then(%t: f32, %u: <3 x f32>):
        yield %t: f32, %u: <3 x f32>
    } else {
    'else(%e: f32, %w: <3 x f32>):
        yield %e: f32, %w: <3 x f32>
    }
    %i, %s = while carrying %n: i64, %a: f32 given %b: <3 x f32> {
    'condition(%j: i64, %p: f32, %q: <3 x f32>):
        %more = lessThan %j: i64, 10: i64
        yield %more: bool
    } do {
    'body(%k: i64, %r: f32, %y: <3 x f32>):
        %next = add %k: i64, 1: i64
        yield %next: i64, %r: f32
    }
    %last, %all = for 0: i64 upto 3: i64 carrying %s: f32 given %b: <3 x f32> stacking <3 x f32> {
    'loop(%m: i64, %o: f32, %z: <3 x f32>):
        yield %o: f32, %o: f32
    }
    %sum = reduce %all: <3 x f32> by add along 0
    %result = add %sum: f32, %last: f32
    return %result: f32
}
"""


def structured() -> tuple[Module, list[Instruction]]:
    """The `if`, the `while` and the `for` of a function."""
    module = parse_module(TEXT)
    verify(module)
    body = module.functions["f"].body
    assert body is not None
    return module, [i for i in walk(body) if isinstance(i.op, Structured)]


@pytest.fixture(params=["if", "while", "for"])
def one(request: pytest.FixtureRequest) -> Iterator[tuple[Module, Instruction]]:
    module, found = structured()
    yield module, next(i for i in found if i.op.name == request.param)


def test_every_place_belongs_to_one_flow(one: tuple[Module, Instruction]) -> None:
    _, instruction = one
    flows = flows_of(instruction)
    assert [flow.number for flow in flows] == list(range(len(flows)))
    assert [k for f in flows for k in f.operands] == list(range(len(instruction.operands)))
    assert [f.result for f in flows if f.result is not None] == list(
        range(len(instruction.results))
    )
    for body, region in enumerate(instruction.regions):
        arguments = [k for f in flows for b, k in f.arguments if b == body]
        yields = [k for f in flows for b, k in f.yields if b == body]
        assert arguments == list(range(len(region.entry.arguments)))
        assert yields == list(range(len(region.entry.terminator.operands)))


def test_what_flows_has_the_type_of_its_flow(one: tuple[Module, Instruction]) -> None:
    _, instruction = one
    for flow in flows_of(instruction):
        inside = arguments_of_bodies(instruction, flow)
        assert all(value.type == flow.inner_type for value in inside)
        if flow.result is not None:
            assert instruction.results[flow.result].type == flow.type
        outside = [x.type for x in sources_of(instruction, flow)[: len(flow.operands)]]
        assert outside == [flow.type] * len(flow.operands)


def test_what_is_passed_along_a_path_comes_from_a_flows_sources_or_its_arguments(
    one: tuple[Module, Instruction],
) -> None:
    _, instruction = one
    op = instruction.op
    assert isinstance(op, Structured)
    flow_of = {x: f for f in flows_of(instruction) for x in targets_of(instruction, f)}
    reached: set[object] = set()
    for path in op.paths:
        for source, target in passed_along(instruction, path):
            flow = flow_of[target]
            allowed = {*sources_of(instruction, flow), *arguments_of_bodies(instruction, flow)}
            assert source in allowed and source.type == target.type
            reached.add(target)
    stacked = {instruction.results[f.result or 0] for f in flows_in(instruction, Role.STACKED)}
    assert reached == set(flow_of) - stacked


def test_paths_lead_from_outside_to_outside() -> None:
    _, found = structured()
    for instruction in found:
        op = instruction.op
        assert isinstance(op, Structured)
        unknown = list(op.possible_paths(*[None] * len(op.deciders(instruction))))
        assert sorted(unknown, key=str) == sorted(op.paths, key=str)
        assert set(op.certain) <= set(op.paths)
        assert any(start is None for start, _ in op.paths) and any(
            end is None for _, end in op.paths
        )
        assert op.is_loop == any(
            (end, start) in op.paths
            for start, end in op.paths
            if start is not None and end is not None
        )


def test_paths_where_the_deciders_are_known() -> None:
    _, (choice, loop, count) = structured()
    assert isinstance(choice.op, Structured) and set(choice.op.possible_paths(True)) == {
        (None, 0),
        (0, None),
    }
    assert (
        set(choice.op.possible_paths(False)) == {(None, 1), (1, None)}
        and choice.op.trips(None) == 1
    )
    assert isinstance(loop.op, Structured) and set(loop.op.possible_paths(False)) == {
        (None, 0),
        (0, None),
    }
    assert set(loop.op.possible_paths(True)) == {(None, 0), (0, 1), (1, 0)} and not loop.op.ends
    assert isinstance(count.op, Structured) and set(count.op.possible_paths(3, 3)) == {(None, None)}
    assert set(count.op.possible_paths(3, 4)) == {(None, 0), (0, None)}
    assert set(count.op.possible_paths(3, 5)) == {(None, 0), (0, 0), (0, None)}
    assert (count.op.trips(3, 5), count.op.trips(5, 3), count.op.trips(None, 3)) == (2, 0, None)


def test_only_some_flows_are_kept() -> None:
    module, (choice, loop, count) = structured()
    for instruction in (choice, loop, count):
        flows = flows_of(instruction)
        assert not keep_flows(instruction, flows)
        # nothing uses what the inputs become but the first body of the if, which yields it
        kept = [f for f in flows if f.role is not Role.INPUT or instruction is choice]
        assert keep_flows(instruction, kept) == (instruction is not choice)
    verify(module)
    assert "given" not in print_module(module).split("while")[1]


def test_flows_are_added_behind_those_of_their_role() -> None:
    module, (choice, loop, count) = structured()
    value = module.functions["f"].parameters[3]
    for instruction, role in ((choice, Role.CHOSEN), (loop, Role.CARRIED), (count, Role.CARRIED)):
        assert isinstance(instruction.op, Structured) and instruction.op.updated is role
        before = len(flows_of(instruction))
        (flow,) = add_flows(instruction, role, [value])
        assert len(flows_of(instruction)) == before + 1 and flow.type == value.type
        for body, region in enumerate(instruction.regions):
            add_yields(instruction, body, [flow], region.entry.arguments[-1:])
        assert flow.result is not None and instruction.results[flow.result].index == flow.result
    verify(module)


def test_stacked_elements() -> None:
    assert element_of(TensorType((4, 2), F32)) == TensorType((2,), F32)
    with pytest.raises(ShapeError, match="for stacks tensors"):
        element_of(TupleType((scalar(I64),)))
