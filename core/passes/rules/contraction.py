"""Laws of matrix products."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import Dot
from ..rewrite import Laws
from .patterns import filled


def simplify_dot(b: Builder, instruction: Instruction) -> Value | None:
    u, _ = instruction.operands
    # a sum of no products is 0
    return filled(b, instruction.result.tensor, 0) if u.tensor.shape[-1] == 0 else None


CONTRACTION: Laws = {Dot: (simplify_dot,)}
