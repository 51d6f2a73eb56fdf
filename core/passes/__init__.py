"""Optimisation passes, which preserve semantics.

Read `base` (what a pass is), `structurize` (from blocks to structured ops), `rewrite` (the walk that applies
laws), `rules` (the laws), `simplify_structured` (those of structured ops), `fold`, `simplify` and `cse`, then
`canonicalize`, which is these in one; `integer_ranges`, `licm`, `distribute_loops` and `interleave_stacks`, for loops;
`dce`, `inline`, `inline_chains` and `dead_functions`; `scalarize`, `flatten`, `expand` and `isolate`, which prepare
for what follows, `split_memory` and `index_pointers` for derivatives of what lies in memory; last `pipeline`, which
runs them.
"""

from .base import FunctionPass, ModulePass, Pass, apply_pass
from .canonicalize import Canonicalize
from .canonicalize_cfg import CanonicalizeCFG
from .constant_propagation import ConstantPropagation
from .cse import CommonSubexpressions
from .dce import DeadCode
from .dead_functions import DeadFunctions
from .distribute_loops import DistributeLoops
from .expand import Expand
from .flatten import Flatten
from .fold import Fold
from .index_pointers import IndexPointers
from .inline import Inline
from .inline_chains import InlineChains
from .integer_ranges import IntegerRanges
from .interleave_stacks import InterleaveStacks
from .isolate import Isolate
from .licm import LoopInvariants
from .linear_algebra_fusion import LinearAlgebraFusion
from .literal_broadcasting import LiteralBroadcasting
from .matrix_chain import MatrixChain
from .pipeline import PassRun, Pipeline, run_pipeline
from .redundant_loads import RedundantLoads
from .scalarize import Scalarize
from .simplify import Simplify
from .simplify_cfg import SimplifyCFG
from .split_memory import SplitMemory
from .stack_promotion import StackPromotion
from .structurize import Structurize
from .value_promotion import ValuePromotion

ALL: tuple[type[FunctionPass] | type[ModulePass], ...] = (
    SimplifyCFG, CanonicalizeCFG, Structurize, Expand, StackPromotion, ValuePromotion, RedundantLoads,
    ConstantPropagation, IntegerRanges, Fold, LiteralBroadcasting, Simplify, CommonSubexpressions, Canonicalize,
    DeadCode, LoopInvariants, DistributeLoops, MatrixChain, LinearAlgebraFusion, Inline, InlineChains, Flatten,
    Scalarize, DeadFunctions, SplitMemory, IndexPointers, InterleaveStacks, Isolate,
)  # fmt: skip
"""Every pass, for the command line and the tests, about in the order in which they run; docs/passes.md has the same."""

__all__ = [
    "ALL", "Canonicalize",
    "CanonicalizeCFG", "CommonSubexpressions", "ConstantPropagation", "DeadCode", "DeadFunctions", "DistributeLoops",
    "Expand", "Flatten", "Fold", "FunctionPass", "IndexPointers", "Inline", "InlineChains", "IntegerRanges",
    "InterleaveStacks", "Isolate", "LinearAlgebraFusion", "LiteralBroadcasting", "LoopInvariants",
    "MatrixChain", "ModulePass", "Pass", "PassRun", "Pipeline", "RedundantLoads", "Scalarize",
    "Simplify", "SimplifyCFG", "SplitMemory", "StackPromotion", "Structurize", "ValuePromotion", "apply_pass",
    "run_pipeline",
]  # fmt: skip
