"""Blocks as the nodes of a graph."""

from __future__ import annotations

from nnkit.core.analysis import ControlFlow
from nnkit.core.ir import Block, Instruction, Region
from nnkit.core.text import parse_module

LOOP = """module "m"

func @f: (bool) -> f32 {
'entry(%c: bool):
    branch 'head
'dead():
    branch 'head
'head():
    conditional %c: bool then 'body else 'done
'body():
    conditional %c: bool then 'head else 'forever
'forever():
    branch 'forever
'done():
    return 1: f32
}
"""


def loop() -> tuple[ControlFlow, dict[str, Block]]:
    body = parse_module(LOOP).functions["f"].body
    assert body is not None
    return ControlFlow(body), {block.name or "": block for block in body.blocks}


def names(blocks: list[Block]) -> list[str | None]:
    return [block.name for block in blocks]


def test_edges() -> None:
    flow, blocks = loop()
    head = flow.number[blocks["head"]]
    assert names([flow.region.blocks[k] for k in flow.graph.successors[head]]) == ["body", "done"]
    before = names([flow.region.blocks[k] for k in flow.graph.predecessors[head]])
    assert before == ["entry", "dead", "body"]
    assert names(flow.unreachable) == ["dead"]
    assert names(flow.order)[:2] == ["entry", "head"] and len(flow.order) == 5


def test_dominance() -> None:
    flow, blocks = loop()
    number = {name: flow.number[block] for name, block in blocks.items()}
    tree = flow.dominators
    assert tree.dominates(number["head"], number["forever"])
    assert not tree.dominates(number["dead"], number["dead"])
    assert tree.parents[number["done"]] == number["head"]
    assert tree.parents[number["entry"]] == tree.parents[number["dead"]] == -1


def test_loops() -> None:
    flow, _ = loop()
    assert {names([flow.region.blocks[k] for k in loop.members()])[0] for loop in flow.loops.all} == {
        "head", "forever",
    }  # fmt: skip


def test_what_is_not_in_the_region_is_left_out() -> None:
    _, blocks = loop()
    stray = Block([], [Instruction(blocks["head"].terminator.op, (), (), (), None, (Block(),))])
    flow = ControlFlow(Region([stray, Block()]))
    assert flow.graph.successors == [[], []]
    assert ControlFlow(Region()).order == []
