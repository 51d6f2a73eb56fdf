"""Laws of questions about shapes: the answer is known."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import ShapeQuery
from ..rewrite import Laws


def answer(b: Builder, instruction: Instruction[ShapeQuery]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    # rank, shape and unitCount of x are literals
    return b.emit(op.answer(x.tensor))


SHAPE_QUERY: Laws = {ShapeQuery: (answer,)}
