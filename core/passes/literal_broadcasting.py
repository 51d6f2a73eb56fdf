"""Literal broadcasting promotion: a splat as an operand of an elementwise function becomes a scalar.

    %c = literal 2: <64 x 10 x f32>              %c = literal 2: f32
    %y = multiply %x: <64 x 10 x f32>, %c: …     %y = multiply %x: <64 x 10 x f32>, %c: f32

The function broadcasts the scalar by itself, so nothing is stored, read or broadcast for it.  The law is that
of `rules.elementwise`, shown only the literals: what else is broadcast stays as it is written.
"""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Builder, Function, Instruction, Value
from ..ir.surgery import replace_operands
from ..lazy_dataclass import dataclass
from ..ops import Elementwise
from ..ops.literal import splat_literal
from ..types import broadcast_shapes
from .base import FunctionPass
from .rewrite import Laws, rewrite
from .rules.elementwise import simplify_elementwise


@dataclass(frozen=True)
class LiteralBroadcasting(FunctionPass):
    """Makes scalars of splats that elementwise functions take, where the other operands give the shape.

    The splats stay for their other uses, and for `dce` if there are none.

    Requires: nothing.
    Preserves: every bit.
    Cost: linear.
    Source: Wei, Schwartz & Adve 2017, "DLVM", where the pass is named.
    """

    name: ClassVar[str] = "literal-broadcasting"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS | Analysis.ALIASES

    def run(self, function: Function, analyses: Analyses) -> bool:
        return rewrite(function, _LAWS, analyses)


def promote_literals(b: Builder, instruction: Instruction) -> Value | None:
    """The same function of scalars in the place of splats."""
    operands = instruction.operands
    others = [x for x in operands if splat_literal(x) is None]
    if len(others) == len(operands) or not others:
        return None
    if broadcast_shapes([x.tensor.shape for x in others]) != instruction.result.tensor.shape:
        return None
    # values that nothing is known of stand for all but the literals
    shown = {x: Value(x.type) for x in others}
    stand_in = Instruction(
        instruction.op, tuple(shown.get(x, x) for x in operands), instruction.results
    )
    value = simplify_elementwise(b, stand_in)
    stand_in.set_operands(())
    replace_operands(b.block.instructions, {stranger: x for x, stranger in shown.items()})
    return value


_LAWS: Laws = {Elementwise: (promote_literals,)}
