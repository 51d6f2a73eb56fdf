"""SSA: values, ops, instructions, blocks, regions, functions, modules and the builder.

Read `graph` (the data structures and the op protocol), `module`, then `builder`.
"""

from .builder import Builder, finish_function, start_function
from .graph import Block, Emitter, Instruction, Op, Region, Value, evaluates_to
from .module import Function, GradientOf, Module, Stage, structs_in

__all__ = [
    "Block", "Builder", "Emitter", "Function", "GradientOf", "Instruction", "Module", "Op", "Region",
    "Stage", "Value", "evaluates_to", "finish_function", "start_function", "structs_in",
]  # fmt: skip
