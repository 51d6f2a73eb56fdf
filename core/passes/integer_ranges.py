"""Ranges of integers: what the least and the greatest value of each is, by the bounds of loops and by arithmetic.

An index that counts from 0 upto 100 is less than 100 and not negative: so `x[i]` needs no check, and neither the
question whether it counts from the end.

1. The range of an index comes from those of its bounds; of what is computed, from the ranges at whose ends its extremes
   lie.  What could wrap around, or comes from a parameter, memory or an earlier round, has none.
2. A comparison that has one answer for all of its operands' values becomes that.
3. Indices that are inside of their axes are said to be.

Source: Harrison 1977, "Compiler analysis of the value ranges for variables"; MLIR's integer range analysis.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..analysis import Analyses, Analysis
from ..ir import Block, Function, Instruction, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.flows import Role, arguments_of_bodies, flows_in, operands_of
from ..ops.literal import splat
from ..types import DType, IntegerRange, KnownRanges, TensorType
from .base import FunctionPass


@dataclass(frozen=True)
class IntegerRanges(FunctionPass):
    """Finds between which numbers integers are, answers comparisons by it, and marks indices that are inside.

    Known are literals, the indices of loops, and what arithmetic makes of them.

    Requires: structured control flow; blocks of other functions are looked at one by one.
    Preserves: every bit.
    Cost: linear.
    Source: Harrison 1977.
    """

    name: ClassVar[str] = "integer-ranges"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        known: dict[Value, IntegerRange] = {}
        changed = False
        # a block comes before those inside of it, which see what is known there
        for block in walk_blocks(function.body):
            changed |= _visit(block, known)
        return changed


def _visit(block: Block, known: dict[Value, IntegerRange]) -> bool:
    """Find the ranges of a block's values, and improve it; whether that changed anything."""
    changed = False
    for instruction in block.instructions:
        for flow in flows_in(instruction, Role.INDEX):
            bounds = operands_of(instruction, flow)
            if bounds:  # those of kernels' loops are numbers, and all that they are asked for is proved (`bounds`)
                _enter(known, *bounds, *arguments_of_bodies(instruction, flow))
        ranges = [known.get(x) for x in instruction.operands]
        found = _range_of(instruction, ranges)
        if found is not None:
            known[instruction.result] = found
            changed |= _answer(instruction, found)
        op = instruction.op.with_indices_inside(instruction.operands, ranges)
        if op is not instruction.op and op != instruction.op:
            instruction.op = op
            changed = True
    return changed


def _enter(known: dict[Value, IntegerRange], lower: Value, upper: Value, index: Value) -> None:
    """The range of a loop's index, if it runs at all."""
    least, greatest = known.get(lower), known.get(upper)
    if least is not None and greatest is not None and least[0] < greatest[1]:
        known[index] = least[0], greatest[1] - 1


def _range_of(instruction: Instruction, ranges: KnownRanges) -> IntegerRange | None:
    """The range of a result, if it is one tensor that has elements, and nothing wraps around."""
    if len(instruction.results) != 1:
        return None
    type = instruction.result.type
    if not isinstance(type, TensorType) or type.dtype.is_float or not type.size:
        return None
    found = instruction.op.integer_range(ranges)
    return found if found is not None and _fits(found, type.dtype) else None


def _fits(found: IntegerRange, dtype: DType) -> bool:
    if dtype.kind == "boolean":
        return 0 <= found[0] and found[1] <= 1
    info = np.iinfo(dtype.numpy)
    return bool(info.min <= found[0] and found[1] <= info.max)


def _answer(instruction: Instruction, found: IntegerRange) -> bool:
    """Make a literal of a truth value that is known; whether it was none."""
    type = instruction.result.tensor
    if type.dtype.kind != "boolean" or found[0] != found[1] or instruction.op.is_constant:
        return False
    instruction.set_operands(())
    instruction.op = splat(type, bool(found[0]))
    return True
