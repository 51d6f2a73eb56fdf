"""The base of passes that reassociate sums or products."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

from ..analysis import Analyses, Analysis
from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from .base import FunctionPass
from .dce import remove_dead

Reassociation: TypeAlias = Callable[[Builder], Value]
"""Emits what an instruction computes, in another grouping."""


@dataclass(frozen=True)
class Reassociate(FunctionPass):
    """Puts a cheaper grouping in the place of the last instruction of the old one, which is then dead.

    Another grouping rounds differently: without `fast_math`, floats are left alone.
    """

    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    fast_math: bool = False

    @abc.abstractmethod
    def regroupings(self, block: Block) -> Mapping[Instruction, Reassociation]:
        """The instructions of `block` that are better computed another way."""

    def may_regroup(self, value: Value) -> bool:
        """Whether sums and products of this element type may be grouped anew."""
        return self.fast_math or not value.tensor.dtype.is_float

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        made: list[tuple[Instruction, Value]] = []
        for block in walk_blocks(function.body):
            better = self.regroupings(block)
            if not better:
                continue
            old, block.instructions = block.instructions, []
            for instruction in old:
                block.instructions.append(instruction)
                if instruction in better:
                    value = better[instruction](Builder(block, instruction.location))
                    value.name = instruction.result.name
                    made.append((instruction, value))
        # not before: they are made of what is regrouped, too
        for instruction, value in made:
            instruction.result.replace_all_uses_with(value)
        if made:
            remove_dead(function, analyses)
        return bool(made)
