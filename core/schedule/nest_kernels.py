"""Chooses which nests become kernels, one by one, once their loops are decided (`nest_writer` writes these).

What stays a nest has a reason (`reasons`): jit still writes its loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..compute.bodies import base_of
from ..ir import Block, Builder, Instruction
from ..kernels.bodies import stands_in_kernels
from ..kernels.build import KernelBuilder
from ..kernels.prefetch import fetch_ahead
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.nest import Bounds, Loaded, Output, axes_in
from ..types import BOOL, I64, DType
from .buffer_assignment import may_overwrite
from .cuts import plan_cuts
from .group import GroupedInstruction
from .nest_levels import NestLevels
from .nest_writer import NestLoopWriter
from .ops import Loops, compensated_outputs
from .shared_loops import blocks_of_work, nanoseconds_of
from .summation import scattered_sums
from .switches import is_enabled
from .target import Target


def write_nest_kernels(
    steps: Sequence[GroupedInstruction], target: Target
) -> list[GroupedInstruction]:
    """The same instructions, with kernels in the places of nests that have no reason to stay."""
    if not is_enabled("nests"):
        return list(steps)
    return [_written(step, target) for step in steps]


def reasons(instruction: Instruction, loops: Loops) -> Iterator[str]:
    """Why a nest is written by jit."""
    op = loops
    if loops.group >= 0:
        yield "it shares its outermost loop with others"
    if 0 in op.extents:
        yield "it has no points"
    if compensated_outputs(loops) or scattered_sums(instruction, loops):
        yield "it adds to sums in memory"
    if _shares_totals(instruction, loops):
        yield "threads share its totals"
    for access in op.accesses:
        if access.bounds is not Bounds.INSIDE or any(
            isinstance(index, Loaded) for index in access.indices
        ):
            yield f"it reads at {access}"
    for written in op.outputs:
        if not _is_written_once(written, loops):
            yield f"it writes {written}"
    body = instruction.regions[0].entry
    for computed in body.instructions[:-1]:
        if not stands_in_kernels(computed.op):
            yield f"{computed.op.name} stands in the body"
    read = {operand.tensor.dtype for operand in instruction.operands}
    narrow = any(w.type.dtype in read and _is_narrow_integer(w.type.dtype) for w in op.outputs)
    if loops.lanes > 1 and narrow and selects_by_place(body, len(op.extents)):
        yield "LLVM gets wrong what is selected by place and written over an operand"


def _is_narrow_integer(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits < I64.bits


def selects_by_place(body: Block, rank: int) -> bool:
    """Whether a `select` depends on coordinates: only then can LLVM derive a mask that differs between lanes."""
    placed = set(body.arguments[:rank])
    for instruction in body.instructions:
        operands = instruction.operands
        if isinstance(instruction.op, Select) and operands[2] in placed:
            return True
        if any(operand in placed for operand in operands):
            placed.update(instruction.results)
    return False


def _is_written_once(written: Output, loops: Loops) -> bool:
    """Whether each element is written at one point, or when all loops that are inside of it have run."""
    if (written.bounds, written.init, written.within) != (Bounds.INSIDE, None, None):
        return False
    kept = written.kept_axes
    if kept is None or tuple(loops.extents[axis] for axis in kept) != written.type.shape:
        return False
    is_bool = written.type.dtype is BOOL
    if is_bool and written.combinator not in (None, Combinator.AND, Combinator.OR):
        return False
    order = [axis for axis in loops.order if loops.extents[axis] > 1]
    inside = max([n for n, axis in enumerate(order) if axis in kept], default=-1) + 1
    joined = [axis for axis in order if axis not in kept]
    if written.combinator is None:
        return not joined
    return not any(axis in joined for axis in order[:inside])


def _shares_totals(instruction: Instruction, loops: Loops) -> bool:
    """Whether the outermost loop is over what is joined, and long enough for threads."""
    if blocks_of_work(nanoseconds_of(instruction, loops)) < 2 or not loops.order:
        return False
    outer = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    return any(w.combinator is not None and outer not in axes_in(w.indices) for w in loops.outputs)


def _written(step: GroupedInstruction, target: Target) -> GroupedInstruction:
    instruction, loops = step.instruction, step.loops
    if loops is None or next(reasons(instruction, loops), None) is not None:
        return step
    loops = replace(loops, cuts=plan_cuts(instruction, loops))
    levels = NestLevels(instruction, loops, has_fma=target.fma)
    operands = list(
        dict.fromkeys(
            x
            for value, x in zip(levels.scalars, instruction.operands, strict=True)
            if value not in levels.literals
        )
    )
    build = KernelBuilder([x.tensor for x in operands], [w.type for w in loops.outputs])
    buffers = dict(zip(operands, build.operands, strict=True))
    NestLoopWriter(build, levels, buffers, _grain(instruction, loops)).write()
    streams = [*(buffers.get(operand) for operand in instruction.operands), *build.outputs]
    fetch_ahead(build.block, {x: far for n, far in loops.fetch if (x := streams[n]) is not None})
    pairs = [
        (number, result.index)
        for number, operand in enumerate(operands)
        for result in instruction.results
        if operand.tensor == result.tensor and may_overwrite(instruction, result, base_of(operand))
    ]
    b = Builder(Block(), instruction.location)
    made = build.kernel(b, *operands, overwriting=tuple(pairs))
    instruction.replace_with(*made)
    (kernel,) = b.block.instructions
    return GroupedInstruction(kernel, None)


def _grain(instruction: Instruction, loops: Loops) -> int:
    """Points of the outermost loop that are a block of those that threads share; 0 if one thread runs them all."""
    blocks = blocks_of_work(nanoseconds_of(instruction, loops))
    outer = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    if blocks < 2 or outer is None:
        return 0
    unit = loops.lanes if outer == loops.vector else 1
    done = loops.extents[outer] - loops.extents[outer] % unit
    return -(-done // (blocks * unit)) * unit
