"""Makes kernels of nests whose loops are decided: one of each (`nest_writer`), or of a group (`group_kernels`).

Which of the kernels' loops threads share is decided here as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from ..compute.bodies import base_of
from ..ir import Block, Builder, Instruction, Value
from ..kernels.build import KernelBuilder
from ..kernels.prefetch import fetch_ahead
from .cuts import plan_cuts
from .group import GroupedInstruction
from .group_kernels import write_group
from .jam_rows import jam_rows
from .live_ranges import may_overwrite
from .nest_levels import NestLevels
from .nest_writer import NestLoopWriter
from .ops import Loops
from .shared_loops import is_parallel, nanoseconds_of, points_of_block
from .shared_totals import blocks_of, carries_own_totals, write_in_blocks
from .target import Target
from .turned_reads import turn_reads


def write_nest_kernels(
    steps: Sequence[GroupedInstruction],
    target: Target,
    contracted: AbstractSet[Value] = frozenset(),
    far: Mapping[Instruction, Sequence[int]] = MappingProxyType({}),
) -> list[GroupedInstruction]:
    """The same instructions, with kernels in the places of nests, and of groups of nests.

    `contracted` is what has room for one block of rows, `far` the results that groups write (`far_outputs`).
    """
    found: list[GroupedInstruction] = []
    for part in _groups_of(steps):
        loops = part[0].loops
        if loops is None:
            found += part
        elif loops.group < 0:
            found.append(_written(part[0].instruction, loops, target))
        else:
            found += write_group(part, contracted, far, has_fma=target.fma)
    return found


def _groups_of(steps: Sequence[GroupedInstruction]) -> Iterator[list[GroupedInstruction]]:
    """Each group from its first member to its last, and all else one by one."""
    last = {
        step.loops.group: n
        for n, step in enumerate(steps)
        if step.loops is not None and step.loops.group >= 0
    }
    position = 0
    while position < len(steps):
        loops = steps[position].loops
        end = position if loops is None else last.get(loops.group, position)
        yield list(steps[position : end + 1])
        position = end + 1


def _written(instruction: Instruction, loops: Loops, target: Target) -> GroupedInstruction:
    cuts = plan_cuts(instruction, loops)
    levels = NestLevels(instruction, loops, has_fma=target.fma, cuts=cuts)
    operands = list(
        dict.fromkeys(
            x
            for number, x in enumerate(instruction.operands)
            if levels.scalars[number] not in levels.literals or number in loops.updates
        )
    )
    build = KernelBuilder([x.tensor for x in operands], [w.type for w in loops.own_outputs])
    results = instruction.results
    buffers = dict(zip((*operands, *results), (*build.operands, *build.outputs), strict=True))
    work = nanoseconds_of(instruction, loops)
    writer = NestLoopWriter(build, levels, buffers, grain=_grain(loops, work))
    blocks = blocks_of(writer, work) if carries_own_totals(levels) else None
    if blocks is None:
        writer.write()
    else:
        write_in_blocks(writer, blocks)
    jam_rows(build.block, instruction, loops, target)
    places = [k if w.within is None else w.within for k, w in enumerate(loops.outputs)]
    streams = [*map(buffers.get, instruction.operands), *(build.outputs[k] for k in places)]
    for buffer in dict.fromkeys(streams[number] for number in loops.turned):
        if buffer is not None:
            turn_reads(build.block, buffer, loops.lanes)
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


def _grain(loops: Loops, nanoseconds: float) -> int:
    """Points of the outermost loop that are a block of those that threads share; 0 if one thread runs them all."""
    outer = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    if outer is None or not is_parallel(loops, outer):
        return 0
    unit = loops.lanes if outer == loops.vector else 1
    if loops.turned:
        unit = loops.blocks[loops.order.index(outer)] or unit
    return points_of_block(loops.extents[outer], unit, nanoseconds)
