"""Laws of calls."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Builder, Instruction, Value
from ...ops import Apply, ApplyValue, Reference
from ...types import FunctionType
from ..rewrite import Laws


def simplify_apply_value(b: Builder, instruction: Instruction) -> Sequence[Value] | None:
    function, *arguments = instruction.operands
    # apply (@f)(x, …) = apply @f(x, …)
    if isinstance(function.op, Reference) and isinstance(function.type, FunctionType):
        return b.emit_many(Apply(function.op.symbol, function.type), arguments)
    return None


CALLS: Laws = {ApplyValue: (simplify_apply_value,)}
