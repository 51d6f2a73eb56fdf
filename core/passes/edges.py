"""Control-flow edges with their block arguments, and redirecting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..ir import Block, Instruction, Region, Value
from ..lazy_dataclass import dataclass
from ..ops import Branch, arguments_of
from ..ops.terminators import case_of, pass_arguments


@dataclass(frozen=True)
class Edge:
    """Successor number `number` of `terminator`."""

    terminator: Instruction
    number: int

    @property
    def target(self) -> Block:
        return self.terminator.successors[self.number]

    @property
    def arguments(self) -> Sequence[Value]:
        """What the target is given; nothing of what an enum carries there."""
        return arguments_of(self.terminator, self.number)

    @property
    def is_by_case(self) -> bool:
        """Whether the target's arguments are what an enum carries, which cannot be changed."""
        return case_of(self.terminator, self.number) is not None

    def redirect(self, target: Block, arguments: Sequence[Value]) -> None:
        """Go to `target` with `arguments` instead; those of an enum's case stay as they are."""
        terminator = self.terminator
        everything = [
            list(arguments if k == self.number else arguments_of(terminator, k))
            for k in range(len(terminator.successors))
        ]
        pass_arguments(terminator, everything)
        successors = list(terminator.successors)
        successors[self.number] = target
        terminator.successors = tuple(successors)


EdgesInto: TypeAlias = Mapping[Block, Sequence[Edge]]


def edges_into(region: Region) -> EdgesInto:
    """For every block of `region`, the edges that lead to it."""
    found: dict[Block, list[Edge]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        terminator = block.terminator
        for number, target in enumerate(terminator.successors):
            found[target].append(Edge(terminator, number))
    return found


def keep_arguments(block: Block, edges: Sequence[Edge], kept: Sequence[int]) -> bool:
    """Leave a block only these of its arguments; `edges` are all that lead to it, by no case.

    Whether there were other arguments.
    """
    if len(kept) == len(block.arguments):
        return False
    for edge in edges:
        edge.redirect(block, [edge.arguments[k] for k in kept])
    block.arguments[:] = [block.arguments[k] for k in kept]
    return True


def branch_to(target: Block, arguments: Sequence[Value], like: Instruction) -> Instruction:
    """An unconditional branch at the place of `like`."""
    return Instruction(Branch(), tuple(arguments), (), (), like.location, (target,))
