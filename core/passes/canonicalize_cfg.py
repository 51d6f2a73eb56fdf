"""Canonicalizes control-flow graphs: one exit, and loops with a preheader, one latch and dedicated exits.

    preheader    the only block outside a loop that goes to its header, and goes nowhere else
    latch        the only block inside that goes back to the header
    exits        blocks that a loop is left to; all that lead there are in the loop

Each is made by a new block between some edges and their target, which takes what the target takes.  A graph
in this form stays in it when its edges are turned around, which is what DLVM wanted it for.

Source: LLVM's loop-simplify form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..analysis import Analyses, Analysis, ControlFlow
from ..ir import Block, Builder, Function, Region, Value
from ..lazy_dataclass import dataclass
from ..ops import Return
from .base import FunctionPass
from .edges import Edge, branch_to, edges_into


@dataclass(frozen=True)
class CanonicalizeCFG(FunctionPass):
    """Gives a graph of blocks one exit, and each of its loops a preheader, one latch and dedicated exits.

    Cycles that are entered at several places are no loops, and stay; blocks that nothing leads to are
    left out of account.

    Requires: nothing; functions of one block are left alone.
    Preserves: results, effects and their order.
    Cost: linear, times the depth to which loops nest.
    """

    name: ClassVar[str] = "canonicalize-cfg"
    preserves_analyses: ClassVar[Analysis] = Analysis.EFFECTS | Analysis.ALIASES

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or not body.entry.terminator.successors:
            return False
        changed = _free_entry(body)
        changed = _one_exit(body) or changed
        if changed:
            analyses.forget(function, preserved=self.preserves_analyses)
        for step in (_preheaders, _latches, _exits):
            if step(body, _loops(analyses.flow(function))):
                analyses.forget(function, preserved=self.preserves_analyses)
                changed = True
        return changed


def _free_entry(region: Region) -> bool:
    """A new entry, if blocks go back to the entry: what comes from outside has a block of its own."""
    edges = edges_into(region)
    old = region.entry
    if not edges[old]:
        return False
    entry = Block(name=old.name)
    arguments = [Builder(entry).argument(x.type, x.name) for x in old.arguments]
    old.name = None
    entry.instructions.append(branch_to(old, arguments, old.terminator))
    region.blocks.insert(0, entry)
    return True


def _one_exit(region: Region) -> bool:
    returns = [block for block in region.blocks if not block.terminator.successors]
    if len(returns) < 2:
        return False
    exit = Block(name=_EdgeSplitter(region).fresh("exit"))
    b = Builder(exit, returns[0].terminator.location)
    results = [b.argument(x.type) for x in returns[0].terminator.operands]
    b.emit_many(Return(), results)
    for block in returns:
        returned = block.terminator
        block.instructions[-1] = branch_to(exit, returned.operands, returned)
        returned.erase()
    region.blocks.append(exit)
    return True


def _preheaders(region: Region, loops: Sequence[_LoopBlocks]) -> bool:
    work = _EdgeSplitter(region)
    for loop in loops:
        outer = [edge for edge in work.edges[loop.header] if work.start(edge) not in loop.inside]
        if len(outer) != 1 or len(outer[0].terminator.successors) != 1:
            work.put_between(outer, loop.header, "preheader")
    return work.finish()


def _latches(region: Region, loops: Sequence[_LoopBlocks]) -> bool:
    work = _EdgeSplitter(region)
    for loop in loops:
        back = [edge for edge in work.edges[loop.header] if work.start(edge) in loop.inside]
        if len(back) > 1:
            work.put_between(back, loop.header, "latch")
    return work.finish()


def _exits(region: Region, loops: Sequence[_LoopBlocks]) -> bool:
    """From the innermost loops outwards: a new exit of an inner loop belongs to those around both its ends."""
    work = _EdgeSplitter(region)
    for loop in loops:
        leaving: dict[Block, list[Edge]] = {}
        for block in loop.inside:
            for number, target in enumerate(block.terminator.successors):
                if target not in loop.inside:
                    leaving.setdefault(target, []).append(Edge(block.terminator, number))
        for target, found in leaving.items():
            if any(work.start(edge) not in loop.inside for edge in work.edges[target]):
                new = work.put_between(found, target, "exit")
                outer = loop.parent
                while outer is not None:
                    if target in outer.inside:
                        outer.inside[new] = None
                    outer = outer.parent
    return work.finish()


@dataclass
class _LoopBlocks:
    header: Block
    inside: dict[Block, None]
    parent: _LoopBlocks | None = None


def _loops(flow: ControlFlow) -> list[_LoopBlocks]:
    """Every natural loop, the inner ones first."""
    blocks = flow.region.blocks
    found = {
        loop: _LoopBlocks(
            blocks[loop.header], dict.fromkeys(blocks[k] for k in sorted(loop.members()))
        )
        for loop in flow.loops.all
    }
    for loop, ours in found.items():
        ours.parent = found[loop.parent] if loop.parent is not None else None
    return list(found.values())


class _EdgeSplitter:
    """Blocks put on edges of `region`: they stand in it, each before its target, when the work is finished."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.edges = {block: list(edges) for block, edges in edges_into(region).items()}
        self.starts = {block.terminator: block for block in region.blocks}
        self.names = {block.name for block in region.blocks}
        self.counts: dict[str, int] = {}
        self.new: dict[Block, list[Block]] = {}

    def start(self, edge: Edge) -> Block:
        """The block that an edge starts from."""
        return self.starts[edge.terminator]

    def put_between(self, edges: Sequence[Edge], target: Block, name: str) -> Block:
        """A new block that `edges` lead to instead of `target`, and that goes on there."""
        block = Block(name=self.fresh(name))
        arguments: list[Value] = [Builder(block).argument(x.type) for x in target.arguments]
        block.instructions.append(branch_to(target, arguments, target.terminator))
        for edge in edges:
            edge.redirect(block, edge.arguments)
        moved = set(edges)
        others = [edge for edge in self.edges[target] if edge not in moved]
        self.edges[target] = [*others, Edge(block.terminator, 0)]
        self.edges[block] = list(edges)
        self.starts[block.terminator] = block
        self.new.setdefault(target, []).append(block)
        return block

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, … when a block is called that."""
        name, number = wanted, self.counts.get(wanted, 0)
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.counts[wanted] = number
        self.names.add(name)
        return name

    def finish(self) -> bool:
        """Put the new blocks into the region; whether there are any."""
        changed = bool(self.new)
        pending = self.region.blocks[::-1] if changed else []
        placed: list[Block] = []
        while pending:
            block = pending.pop()
            waiting = self.new.pop(block, None)
            if waiting is None:
                placed.append(block)
            else:
                pending += [block, *reversed(waiting)]
        if changed:
            self.region.blocks[:] = placed
        return changed
