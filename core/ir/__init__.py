"""SSA: values, ops, instructions, blocks, regions, functions, modules and the builder.

Read `instruction` (the data structures and the op protocol), `module`, then `builder`.
"""

from ..stage import EARLY, LATE, Stage, Stages
from .builder import Builder, finish_function, start_function
from .effect import Effect
from .instruction import (
    Block,
    Emitter,
    Instruction,
    MemoryUse,
    Op,
    Pure,
    Region,
    Value,
    evaluates_to,
)
from .module import (
    NO_RULES,
    BatchOf,
    CustomRules,
    Declaration,
    Extern,
    Function,
    GradientOf,
    Module,
    Nominal,
    SavePolicy,
    TangentOf,
    Variable,
    nominals_in,
)
from .placement import ALIGNMENT, HEADER_BYTES, NOT_PLACED, Place, Placement

__all__ = [
    "ALIGNMENT", "EARLY", "HEADER_BYTES", "LATE", "NOT_PLACED", "NO_RULES", "BatchOf", "Block", "Builder",
    "CustomRules", "Declaration", "Effect", "Emitter", "Extern", "Function", "GradientOf", "Instruction", "MemoryUse",
    "Module", "Nominal", "Op", "Place", "Placement", "Pure", "Region", "SavePolicy", "Stage", "Stages", "TangentOf",
    "Value", "Variable", "evaluates_to", "finish_function", "nominals_in", "start_function",
]  # fmt: skip
