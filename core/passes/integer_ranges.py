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

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from ..analysis import Analyses, Analysis
from ..ir import Block, Function, Instruction, Op, Value
from ..ir.surgery import walk_blocks
from ..ops import (
    Add,
    And,
    Broadcast,
    DataTypeCast,
    Equal,
    For,
    Gather,
    GreaterThan,
    GreaterThanOrEqual,
    Iota,
    LessThan,
    LessThanOrEqual,
    Literal,
    Maximum,
    Minimum,
    Modulo,
    Multiply,
    Negate,
    Not,
    NotEqual,
    Or,
    ScatterAdd,
    Select,
    ShapeCast,
    Subtract,
    Transpose,
)
from ..ops.literal import splat
from ..ops.nest import Bounds
from ..ops.scatter import Scatter
from ..types import DType, TensorType
from .base import FunctionPass

Range: TypeAlias = "tuple[int, int]"
"""The least and the greatest element; truth values are 0 and 1."""

AT_CORNERS: Final[Mapping[type[Op], Callable[..., int]]] = MappingProxyType(
    {
        Add: operator.add,
        Subtract: operator.sub,
        Multiply: operator.mul,
        Negate: operator.neg,
        Minimum: min,
        Maximum: max,
        LessThan: operator.lt,
        LessThanOrEqual: operator.le,
        GreaterThan: operator.gt,
        GreaterThanOrEqual: operator.ge,
        And: operator.and_,
        Or: operator.or_,
        Not: operator.not_,
    }
)
"""What rises or falls along each operand, so that its extremes are where the operands have theirs."""

MOVED: Final = (Broadcast, ShapeCast, Transpose)
MOST_ELEMENTS: Final = 1 << 16
"""Of literals that are looked at."""


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
        known: dict[Value, Range] = {}
        changed = False
        # a block comes before those inside of it, which see what is known there
        for block in walk_blocks(function.body):
            changed |= _visit(block, known)
        return changed


def _visit(block: Block, known: dict[Value, Range]) -> bool:
    """Find the ranges of a block's values, and improve it; whether that changed anything."""
    changed = False
    for instruction in block.instructions:
        if isinstance(instruction.op, For):
            _enter(instruction, known)
        if len(instruction.results) != 1 or not _is_integral(instruction.result):
            changed |= _mark_inside(instruction, known)
            continue
        found = _range_of(instruction, known)
        if found is not None:
            known[instruction.result] = found
            changed |= _answer(instruction, found)
        changed |= _mark_inside(instruction, known)
    return changed


def _is_integral(value: Value) -> bool:
    return isinstance(value.type, TensorType) and not value.type.dtype.is_float


def _enter(loop: Instruction, known: dict[Value, Range]) -> None:
    """The range of a loop's index."""
    lower, upper = (known.get(x) for x in loop.operands[:2])
    if lower is not None and upper is not None and lower[0] < upper[1]:
        known[loop.regions[0].entry.arguments[0]] = lower[0], upper[1] - 1


def _range_of(instruction: Instruction, known: Mapping[Value, Range]) -> Range | None:
    """The range of a result, if nothing wraps around."""
    op, type = instruction.op, instruction.result.tensor
    if not type.size:
        return None
    xs = [known.get(x) for x in instruction.operands]
    found: Range | None = None
    match op:
        case Literal():
            found = _literal_range(op)
        case Iota():
            found = 0, type.shape[op.axis] - 1
        case Select():
            found = _selected(*xs)
        case _:
            if all(x is not None for x in xs):
                found = _computed(op, [x for x in xs if x is not None])
    return found if found is not None and _fits(found, type.dtype) else None


def _selected(x: Range | None, y: Range | None, condition: Range | None) -> Range | None:
    """The range of the one where the condition is true, and the other where it is false."""
    if condition in ((0, 0), (1, 1)):
        return x if condition == (1, 1) else y
    return (min(x[0], y[0]), max(x[1], y[1])) if x is not None and y is not None else None


def _computed(op: Op, xs: Sequence[Range]) -> Range | None:
    """The range of what is computed of operands within `xs`."""
    if type(op) in AT_CORNERS:
        at_corners = [int(AT_CORNERS[type(op)](*point)) for point in itertools.product(*xs)]
        return min(at_corners), max(at_corners)
    match op, xs:
        case (Equal() | NotEqual(), (x, y)):
            is_apart = x[1] < y[0] or y[1] < x[0]
            is_one = x == y and x[0] == x[1]
            answer = int(is_one == isinstance(op, Equal))
            return (answer, answer) if is_apart or is_one else None
        case Modulo(), (x, y) if y[0] > 0:
            return x if 0 <= x[0] and x[1] < y[0] else (0, y[1] - 1)
        case DataTypeCast(), (x,) if op.dtype.kind != "boolean":
            return x
        case _:
            return xs[0] if isinstance(op, MOVED) else None


def _literal_range(op: Literal) -> Range | None:
    number = op.splat_value()
    if number is not None:
        return int(number), int(number)
    if op.type.size > MOST_ELEMENTS:
        return None
    elements: Any = np.asarray(op.evaluate())
    return int(elements.min()), int(elements.max())


def _fits(found: Range, dtype: DType) -> bool:
    if dtype.kind == "boolean":
        return 0 <= found[0] and found[1] <= 1
    info = np.iinfo(dtype.numpy)
    return bool(info.min <= found[0] and found[1] <= info.max)


def _answer(instruction: Instruction, found: Range) -> bool:
    """Make a literal of a truth value that is known; whether it was none."""
    type = instruction.result.tensor
    if type.dtype.kind != "boolean" or found[0] != found[1] or isinstance(instruction.op, Literal):
        return False
    instruction.set_operands(())
    instruction.op = splat(type, bool(found[0]))
    return True


def _mark_inside(instruction: Instruction, known: Mapping[Value, Range]) -> bool:
    """Say that indices are inside of their axes; whether that was new."""
    op = instruction.op
    match op:
        case Gather():
            shape, indices = instruction.operands[0].tensor.shape, instruction.operands[1:]
        case ScatterAdd():
            shape, indices = op.shape, instruction.operands[1:]
        case Scatter():
            shape, indices = instruction.operands[1].tensor.shape, instruction.operands[2:]
        case _:
            return False
    if op.bounds is Bounds.INSIDE or not indices:
        return False
    extents = shape[op.axis : op.axis + len(indices)]
    for index, extent in zip(indices, extents, strict=True):
        found = known.get(index)
        if found is None or found[0] < 0 or found[1] >= extent:
            return False
    instruction.op = replace(op, bounds=Bounds.INSIDE)
    return True
