"""What passes have in common that compute the same sums or products in another grouping."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..analysis import Analyses, Analysis
from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import replace_uses, walk_blocks
from .base import FunctionPass
from .dce import remove_dead

Uses: TypeAlias = Mapping[Value, Sequence[Instruction]]

Regrouping: TypeAlias = Callable[[Builder], Value]
"""Emits what an instruction computes, in another grouping."""


@dataclass(frozen=True)
class Regroup(FunctionPass):
    """Puts a cheaper grouping in the place of the last instruction of the old one, which is then dead.

    Another grouping rounds differently: without `fast_math`, floats are left alone.
    """

    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    fast_math: bool = False

    @abc.abstractmethod
    def regroupings(self, block: Block, uses: Uses) -> Mapping[Instruction, Regrouping]:
        """The instructions of `block` that are better computed another way."""

    def may_regroup(self, value: Value) -> bool:
        """Whether sums and products of this element type may be grouped anew."""
        return self.fast_math or not value.tensor.dtype.is_float

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        uses = analyses.uses(function)
        replaced: dict[Value, Value] = {}
        for block in walk_blocks(function.body):
            better = self.regroupings(block, uses)
            if not better:
                continue
            old, block.instructions = block.instructions, []
            for instruction in old:
                block.instructions.append(instruction)
                if instruction in better:
                    made = better[instruction](Builder(block, instruction.location))
                    made.name = instruction.result.name
                    replaced[instruction.result] = made
        replace_uses(function.body, replaced)
        if replaced:
            remove_dead(function, analyses)
        return bool(replaced)
