"""Simplification of the graph of blocks.

1. A choice that is known, or that makes no difference, becomes a branch.
2. What the entry does not reach is removed.
3. A block that only goes on is left out: whoever went there goes on at once.
4. A block with one successor, whose only predecessor it is, is joined with it.
5. An argument that is the same value on every way in is that value; one that nobody uses is not passed.

Every step removes an edge, a block or an argument, so the repetition ends.
"""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses
from ..ir import Block, Function, Region
from ..lazy_dataclass import dataclass
from ..ops.terminators import is_unconditional, successor_taken, values_passed
from .base import FunctionPass
from .dce import remove_unreachable
from .edges import Edge, branch_to, edges_into, keep_arguments


@dataclass(frozen=True)
class SimplifyCFG(FunctionPass):
    """Removes blocks, edges and arguments that make no difference.

    Requires: nothing; functions of one block are left alone.
    Preserves: results, effects and their order.
    Cost: linear for each round; a round more for every chain of choices that becomes known.
    Source: LLVM's pass of that name, for the list of what is done.
    """

    name: ClassVar[str] = "simplify-cfg"

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or not body.entry.terminator.successors:
            return False
        changed = False
        while _round(function, body, analyses):
            changed = True
        return changed


def _round(function: Function, region: Region, analyses: Analyses) -> bool:
    def note(changed: bool) -> bool:
        if changed:
            analyses.forget(function)
        return changed

    changed = note(_decide(region))
    changed = remove_unreachable(function, analyses) or changed
    changed = note(_thread(region)) or changed
    changed = remove_unreachable(function, analyses) or changed
    changed = note(_join(region)) or changed
    return note(_drop_arguments(region)) or changed


def _decide(region: Region) -> bool:
    """Step 1."""
    changed = False
    for block in region.blocks:
        terminator = block.terminator
        edges = [Edge(terminator, k) for k in range(len(terminator.successors))]
        number = successor_taken(terminator)
        if number is None and len(edges) == 2 and not edges[0].is_by_case:
            then, other = edges
            is_same = then.target is other.target and [*then.arguments] == [*other.arguments]
            number = 0 if is_same else None
        if number is not None:
            arguments = values_passed(terminator, number)
            assert arguments is not None
            block.instructions[-1] = branch_to(edges[number].target, arguments, terminator)
            terminator.erase()
            changed = True
    return changed


def _thread(region: Region) -> bool:
    """Step 3.  A cycle of blocks that only go on is an infinite loop, and stays."""
    changed = False
    for block, edges in edges_into(region).items():
        if not _only_goes_on(block) or block is region.entry:
            continue
        ahead = Edge(block.terminator, 0)
        for edge in edges:
            if edge.is_by_case or ahead.target is block or edge.terminator is block.terminator:
                continue
            given = dict(zip(block.arguments, edge.arguments, strict=True))
            edge.redirect(ahead.target, [given.get(x, x) for x in ahead.arguments])
            changed = True
    return changed


def _only_goes_on(block: Block) -> bool:
    terminator = block.terminator
    return (
        len(block.instructions) == 1
        and is_unconditional(terminator)
        and all(user is terminator for x in block.arguments for user in x.uses)
    )


def _join(region: Region) -> bool:
    """Step 4."""
    edges = edges_into(region)
    gone: set[Block] = set()
    for block in region.blocks:
        if block in gone:
            continue
        while is_unconditional(block.terminator):
            (target,) = block.terminator.successors
            if target is block or target is region.entry or len(edges[target]) != 1:
                break
            branch = block.terminator
            for argument, value in zip(target.arguments, branch.operands, strict=True):
                argument.replace_all_uses_with(value)
            branch.erase()
            block.instructions[-1:] = target.instructions
            gone.add(target)
    region.blocks[:] = [block for block in region.blocks if block not in gone]
    return bool(gone)


def _drop_arguments(region: Region) -> bool:
    """Step 5."""
    edges = edges_into(region)
    changed = False
    for block, ways in edges.items():
        if block is region.entry or any(edge.is_by_case for edge in ways):
            continue
        kept: list[int] = []
        for position, argument in enumerate(block.arguments):
            given = {edge.arguments[position] for edge in ways} - {argument}
            if len(given) == 1:
                argument.replace_all_uses_with(given.pop())
            elif argument.uses:
                kept.append(position)
        changed = keep_arguments(block, ways, kept) or changed
    return changed
