"""The control-flow graph of a region, with its dominator trees and loops.

Every answer is computed when it is first asked for, and holds until blocks or terminators change: make a
new one then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..ir import Block, Region
from .dominance import DominatorTree, dominators, post_dominators
from .graph import Graph
from .loops import LoopInfo, is_reducible, natural_loops


@dataclass(frozen=True, eq=False)
class ControlFlow:
    """The control-flow graph of `region`; block 0 is the entry.

    The analyses speak of numbers of blocks, the methods here of blocks.  Successors that are not in the
    region, and the bodies of structured ops, are left out.
    """

    region: Region

    @cached_property
    def number(self) -> dict[Block, int]:
        """The position of each block in the region."""
        return {block: number for number, block in enumerate(self.region.blocks)}

    @cached_property
    def graph(self) -> Graph:
        return Graph([self._after(block) for block in self.region.blocks])

    @cached_property
    def dominators(self) -> DominatorTree:
        return dominators(self.graph)

    @cached_property
    def post_dominators(self) -> DominatorTree:
        """Its root is the exit: one number more than there are blocks."""
        return post_dominators(self.graph)

    @cached_property
    def loops(self) -> LoopInfo:
        return natural_loops(self.graph, self.dominators)

    @cached_property
    def is_reducible(self) -> bool:
        """Whether all cycles are natural loops."""
        return is_reducible(self.graph, self.dominators)

    @property
    def order(self) -> list[Block]:
        """The blocks that are reachable, in reverse postorder."""
        return [self.region.blocks[number] for number in self.graph.order]

    @property
    def unreachable(self) -> list[Block]:
        """The blocks that nothing leads to, in the order of the text."""
        blocks = enumerate(self.region.blocks)
        return [block for number, block in blocks if not self.graph.is_reachable(number)]

    def successors(self, block: Block) -> list[Block]:
        """Where the terminator goes on, as often as it says so."""
        return [self.region.blocks[k] for k in self.graph.successors[self.number[block]]]

    def predecessors(self, block: Block) -> list[Block]:
        """Whose terminators go on to `block`, as often as they say so."""
        return [self.region.blocks[k] for k in self.graph.predecessors[self.number[block]]]

    def is_reachable(self, block: Block) -> bool:
        """Whether the entry leads to `block`."""
        return self.graph.is_reachable(self.number[block])

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether `b` is reached only through `a`; false if it is not reached at all."""
        return self.dominators.dominates(self.number[a], self.number[b])

    def post_dominates(self, a: Block, b: Block) -> bool:
        """Whether nothing ends after `b` but through `a`; false if nothing ends after `b`."""
        return self.post_dominators.dominates(self.number[a], self.number[b])

    def immediate_dominator(self, block: Block) -> Block | None:
        """The nearest other block that dominates; None for the entry and what is not reached."""
        parent = self.dominators.parents[self.number[block]]
        return self.region.blocks[parent] if parent >= 0 else None

    def immediate_post_dominator(self, block: Block) -> Block | None:
        """The nearest other block that post-dominates; None if that is the exit, or nothing ends."""
        parent = self.post_dominators.parents[self.number[block]]
        return self.region.blocks[parent] if 0 <= parent < len(self.number) else None

    def _after(self, block: Block) -> list[int]:
        if not block.instructions:
            return []
        following = block.instructions[-1].successors
        return [self.number[after] for after in following if after in self.number]
