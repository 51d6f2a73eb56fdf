"""Optimisation: what makes a program cheaper and keeps its meaning.

Read `base` (what a pass is), `rewrite` (the walk that applies laws), `rules` (the laws), `fold`, `simplify`
and `cse`, then `canonicalize`, which is these three in one; `dce`, `inline`, `scalarize` and
`dead_functions`; last `pipeline`, which says what runs when.
"""

from .base import FunctionPass, ModulePass, Pass, apply_pass
from .canonicalize import Canonicalize
from .cse import CommonSubexpressions
from .dce import DeadCode
from .dead_functions import DeadFunctions
from .fold import Fold
from .inline import Inline
from .pipeline import (
    AFTER_DIFFERENTIATION,
    BEFORE_DIFFERENTIATION,
    PIPELINES,
    Level,
    PassRun,
    Pipeline,
    code_generation,
    run_pipeline,
)
from .scalarize import Scalarize
from .simplify import Simplify

ALL: tuple[type[FunctionPass] | type[ModulePass], ...] = (
    Fold, Simplify, CommonSubexpressions, Canonicalize, DeadCode, Inline, Scalarize, DeadFunctions,
)  # fmt: skip
"""Every pass, for the command line and the tests."""

__all__ = [
    "AFTER_DIFFERENTIATION", "ALL", "BEFORE_DIFFERENTIATION", "PIPELINES", "Canonicalize",
    "CommonSubexpressions", "DeadCode", "DeadFunctions", "Fold", "FunctionPass", "Inline", "Level",
    "ModulePass", "Pass", "PassRun", "Pipeline", "Scalarize", "Simplify", "apply_pass",
    "code_generation", "run_pipeline",
]  # fmt: skip
