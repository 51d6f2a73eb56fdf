"""Static analyses: control flow, dominance, loops, effects and aliases.

Read `graph`, `dominance` and `loops`, which know numbered nodes only, then `flow`, which applies them to
the blocks of a region, `effects` and `alias`; then `manager`, which remembers all of these while they hold.
What programs cost stands apart: `symbolic_count` and `cost`; so does which memory pointers lead to, `pointer_bases`.
"""

from .alias import Aliases
from .dominance import DominatorTree, dominators
from .effects import EVERYTHING, Effects, callees_of
from .flow import ControlFlow
from .graph import Graph, components
from .loops import LoopInfo, NaturalLoop, natural_loops
from .manager import Analyses, Analysis

__all__ = [
    "EVERYTHING", "Aliases", "Analyses", "Analysis", "ControlFlow", "DominatorTree", "Effects",
    "Graph", "LoopInfo", "NaturalLoop", "callees_of", "components", "dominators", "natural_loops",
]  # fmt: skip
