"""The canonical graph of blocks: one exit, and loops with a preheader, one latch and exits of their own.

    preheader    the only block outside a loop that goes to its header, and goes nowhere else
    latch        the only block inside that goes back to the header
    exits        blocks that a loop is left to; all that lead there are in the loop

Each is made by a new block between some edges and their target, which takes what the target takes.  A graph
in this form stays in it when its edges are turned around, which is what DLVM wanted it for.

Source: LLVM's loop-simplify form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..analysis import ControlFlow
from ..ir import Block, Builder, Function, Module, Region, Value
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
    Cost: linear, times the number of loops.
    """

    name: ClassVar[str] = "canonicalize-cfg"

    def run(self, function: Function, module: Module) -> bool:
        body = function.body
        if body is None or not body.entry.terminator.successors:
            return False
        changed = _free_entry(body)
        changed = _one_exit(body) or changed
        for step in (_preheaders, _latches, _exits):
            changed = step(body) or changed
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
    returns = [block for block in region.blocks if isinstance(block.terminator.op, Return)]
    if len(returns) < 2:
        return False
    exit = Block(name=_fresh(region, "exit"))
    b = Builder(exit, returns[0].terminator.location)
    results = [b.argument(x.type) for x in returns[0].terminator.operands]
    b.emit_many(Return(), results)
    for block in returns:
        returned = block.terminator
        block.instructions[-1] = branch_to(exit, returned.operands, returned)
    region.blocks.append(exit)
    return True


def _preheaders(region: Region) -> bool:
    changed = False
    edges, holders = edges_into(region), _holders(region)
    for loop in _loops(region):
        outer = [edge for edge in edges[loop.header] if holders[edge] not in loop.inside]
        if len(outer) != 1 or len(outer[0].terminator.successors) != 1:
            _put_between(region, outer, loop.header, "preheader")
            changed = True
    return changed


def _latches(region: Region) -> bool:
    changed = False
    edges, holders = edges_into(region), _holders(region)
    for loop in _loops(region):
        back = [edge for edge in edges[loop.header] if holders[edge] in loop.inside]
        if len(back) > 1:
            _put_between(region, back, loop.header, "latch")
            changed = True
    return changed


def _exits(region: Region) -> bool:
    """From the innermost loops outwards: a new exit of an inner loop belongs to those around both its ends."""
    changed = False
    for loop in (loops := _loops(region)):
        edges, holders = edges_into(region), _holders(region)
        leaving: dict[Block, list[Edge]] = {}
        for edge, block in holders.items():
            if block in loop.inside and edge.target not in loop.inside:
                leaving.setdefault(edge.target, []).append(edge)
        for target, found in leaving.items():
            if any(holders[edge] not in loop.inside for edge in edges[target]):
                new = _put_between(region, found, target, "exit")
                for outer in loops:
                    if loop.header in outer.inside and target in outer.inside:
                        outer.inside.add(new)
                changed = True
    return changed


@dataclass
class _Loop:
    header: Block
    inside: set[Block]


def _loops(region: Region) -> list[_Loop]:
    """Every natural loop, the inner ones first."""
    blocks = region.blocks
    return [
        _Loop(blocks[loop.header], {blocks[k] for k in loop.members()})
        for loop in ControlFlow(region).loops.all
    ]


def _holders(region: Region) -> dict[Edge, Block]:
    """The block that each edge starts from."""
    return {
        Edge(block.terminator, number): block
        for block in region.blocks
        for number in range(len(block.terminator.successors))
    }


def _fresh(region: Region, wanted: str) -> str:
    """`wanted`, or `wanted_1`, `wanted_2`, … when a block is called that."""
    taken = {block.name for block in region.blocks}
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _put_between(region: Region, edges: Sequence[Edge], target: Block, name: str) -> Block:
    """A new block that `edges` lead to instead of `target`, and that goes on there."""
    block = Block(name=_fresh(region, name))
    arguments: list[Value] = [Builder(block).argument(x.type) for x in target.arguments]
    block.instructions.append(branch_to(target, arguments, target.terminator))
    for edge in edges:
        edge.redirect(block, edge.arguments)
    region.blocks.insert(region.blocks.index(target), block)
    return block
