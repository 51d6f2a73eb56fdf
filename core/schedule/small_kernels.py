"""Chooses which kernels that follow each other become one (`kernels.merge`): short ones, whose values fit registers.

Of programs on a few numbers, such as a step of a differential equation, most kernels compute one vector, for which the
next one waits: through memory that takes some ten cycles, as long as a multiplication and an addition.  A value that
is no vector has a register anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..ir.instruction import Instruction
from ..kernels.merge import is_plain, merge
from ..kernels.ops import Kernel, executed, is_kernel
from .group import GroupedInstruction
from .switches import is_enabled
from .target import Target

_MOST_INSTRUCTIONS: Final = 64
"""Of a kernel, those of loops counted as often as they run: what takes longer is not a matter of ten cycles."""

_MOST_TOGETHER: Final = 192
"""Of a run of kernels: so that it is written in place, and LLVM's time for it is no more than linear."""


def merge_small_kernels(
    steps: Sequence[GroupedInstruction], target: Target
) -> list[GroupedInstruction]:
    """The same instructions, with one kernel for each run of small ones."""
    if not is_enabled("merge"):
        return [*steps]
    found: list[GroupedInstruction] = []
    for run in _runs(steps):
        kernels = [one.instruction for one in run if is_kernel(one.instruction)]
        if _pass_vectors(kernels, target):
            found.append(GroupedInstruction(merge(kernels), None))
        else:
            found += run
    return found


def _runs(steps: Sequence[GroupedInstruction]) -> Iterator[list[GroupedInstruction]]:
    """Small kernels that follow each other, a number of them at a time, and all other instructions alone."""
    run: list[GroupedInstruction] = []
    together = 0
    for step in steps:
        length = _length(step.instruction)
        if run and not 0 < length <= _MOST_TOGETHER - together:
            yield run
            run, together = [], 0
        if length:
            run.append(step)
            together += length
        else:
            yield [step]
    if run:
        yield run


def _pass_vectors(kernels: Sequence[Instruction[Kernel]], target: Target) -> bool:
    """Whether one of them reads a vector that another one made."""
    return any(
        result.tensor.rank
        and result.tensor.size <= target.lanes(result.tensor.dtype.bytes)
        and not result.uses.keys().isdisjoint(kernels)
        for kernel in kernels
        for result in kernel.results
    )


def _length(instruction: Instruction) -> int:
    """How many instructions a small kernel runs; 0 for all else."""
    if not is_kernel(instruction) or instruction.op.private:
        return 0
    length = 0
    for count, one in executed(instruction):
        length += count
        if length > _MOST_INSTRUCTIONS or not is_plain(one):
            return 0
    return length
