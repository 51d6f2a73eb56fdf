"""The control-flow graph of a region, with its dominator trees and loops.

Every answer is computed when it is first asked for, and holds until blocks or terminators change: make a
new one then.
"""

from __future__ import annotations

from functools import cached_property

from ..ir import Block, Region
from ..lazy_dataclass import dataclass
from .dominance import DominatorTree, dominators
from .graph import Graph
from .loops import LoopInfo, natural_loops


@dataclass(frozen=True, eq=False)
class ControlFlow:
    """The control-flow graph of `region`; block 0 is the entry.

    The analyses speak of numbers of blocks, the lists here of blocks.  Successors that are not in the
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
    def loops(self) -> LoopInfo:
        return natural_loops(self.graph, self.dominators)

    @property
    def order(self) -> list[Block]:
        """The blocks that are reachable, in reverse postorder."""
        return [self.region.blocks[number] for number in self.graph.order]

    @property
    def unreachable(self) -> list[Block]:
        """The blocks that nothing leads to, in the order of the text."""
        blocks = enumerate(self.region.blocks)
        return [block for number, block in blocks if not self.graph.is_reachable(number)]

    def _after(self, block: Block) -> list[int]:
        if not block.instructions:
            return []
        following = block.instructions[-1].successors
        return [self.number[after] for after in following if after in self.number]
