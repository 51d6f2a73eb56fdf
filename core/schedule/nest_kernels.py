"""Chooses which nests become kernels, one by one, once their loops are decided (`nest_writer` writes these).

What stays a nest has a reason (`reasons`): jit still writes its loops.  Which of the kernels' loops threads share is
decided here as well (`is_parallel`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from ..compute.bodies import base_of
from ..compute.footprint import Footprint, footprint
from ..compute.index_maps import axes_of, is_injective
from ..ir import Block, Builder, Instruction, Value
from ..kernels.bodies import stands_in_kernels
from ..kernels.build import KernelBuilder
from ..kernels.prefetch import fetch_ahead
from ..ops.comparison import Select
from ..ops.nest import Bounds
from .cuts import plan_cuts
from .group import GroupedInstruction
from .group_kernels import write_group
from .live_ranges import may_overwrite
from .nest_levels import NestLevels
from .nest_writer import NestLoopWriter
from .ops import Loops, row_block
from .shared_loops import blocks_of_work, nanoseconds_of
from .shared_totals import blocks_of, write_in_blocks
from .summation import kept_axes, scattered_sums
from .switches import is_enabled
from .target import Target


def write_nest_kernels(
    steps: Sequence[GroupedInstruction],
    target: Target,
    contracted: AbstractSet[Value] = frozenset(),
    ahead: Mapping[Instruction, Sequence[int]] = MappingProxyType({}),
) -> list[GroupedInstruction]:
    """The same instructions, with kernels in the places of nests, and groups of nests, that have no reason to stay.

    `contracted` is what has room for one block of rows, `ahead` the outputs whose rows are fetched a block ahead.
    Sums at indices that are read, which are compensated, have no other form.
    """
    is_on = is_enabled("nests")
    found: list[GroupedInstruction] = []
    for part in _groups_of(steps):
        nests = [(step.instruction, step.loops) for step in part if step.loops is not None]
        if not nests or nests[0][1].group < 0:
            found += [
                _written(step, target) if is_on or _is_scattered(step) else step for step in part
            ]
        elif is_on and not _stays_group(nests):
            grain = _grain_of_group(nests)
            found += write_group(part, contracted, ahead, has_fma=target.fma, grain=grain)
        else:
            found += part
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


def _is_scattered(step: GroupedInstruction) -> bool:
    return step.loops is not None and bool(scattered_sums(step.instruction, step.loops))


def reasons(instruction: Instruction, loops: Loops) -> Iterator[str]:
    """Why a nest is written by jit."""
    for computed in instruction.regions[0].entry.instructions[:-1]:
        if not stands_in_kernels(computed.op):
            yield f"{computed.op.name} stands in the body"


def _stays_group(nests: Sequence[tuple[Instruction, Loops]]) -> bool:
    """Whether jit writes a group: a nest of it stays, or threads share totals that its loop carries."""
    return any(_shares_totals(*one) or next(reasons(*one), None) for one in nests)


def _shares_totals(instruction: Instruction, loops: Loops) -> bool:
    """Whether the outermost loop is over what is joined, and long enough for threads."""
    if blocks_of_work(nanoseconds_of(instruction, loops)) < 2 or not loops.order:
        return False
    outer = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    kept = [kept_axes(w) for w in loops.outputs if w.combinator is not None]
    return None not in kept and any(axes is not None and outer not in axes for axes in kept)


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


def _written(step: GroupedInstruction, target: Target) -> GroupedInstruction:
    instruction, loops = step.instruction, step.loops
    if loops is None:
        return step
    if next(reasons(instruction, loops), None) is not None:
        return step
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
    blocks = blocks_of(writer, blocks_of_work(work)) if carries_own_totals(levels) else None
    if blocks is None:
        writer.write()
    else:
        writer.begin()
        write_in_blocks(writer, blocks)
        writer.end()
    places = [k if w.within is None else w.within for k, w in enumerate(loops.outputs)]
    streams = [*map(buffers.get, instruction.operands), *(build.outputs[k] for k in places)]
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


def is_parallel(loops: Loops, outer: int, carried: Collection[int] = ()) -> bool:
    """Whether iterations of the loop over an axis may run at the same time: each writes elements of its own.

    Totals that the loop is said to carry do not count, as blocks of it store these elsewhere.  Checks leave the program
    from the thread that calls only, so that what has checks is not shared.
    """
    if loops.can_fail():
        return False
    own = all(
        outer in axes_of(written.indices, loops.extents)
        and is_injective(written.indices, loops.extents)
        and written.bounds is not Bounds.CLIP
        for number, written in enumerate(loops.outputs)
        if number not in carried
    )
    return own and _updates_apart(loops, outer)


def _updates_apart(loops: Loops, outer: int) -> bool:
    """Whether iterations write apart from each other to what several outputs write, or begins with an operand."""
    shared = {output.within for output in loops.outputs}
    written: dict[int, list[Footprint | None]] = {}
    for number, output in enumerate(loops.outputs):
        whole = number if output.within is None else output.within
        if whole in shared or loops.outputs[whole].init is not None:
            found = footprint(output.type.shape, output, loops.extents, outer)
            written.setdefault(whole, []).append(found)
    return all(
        one is not None and other is not None and one.is_independent(other)
        for found in written.values()
        for one in found
        for other in found
    )


def carries_own_totals(levels: NestLevels) -> bool:
    """Whether the outermost loop carries totals, and blocks of it may run at the same time, each with its own."""
    carried = {target.number for target in levels.targets if target.begins == 0}
    return bool(carried and levels.axes) and is_parallel(levels.op, levels.axes[0], carried)


def _grain(loops: Loops, nanoseconds: float) -> int:
    """Points of the outermost loop that are a block of those that threads share; 0 if one thread runs them all."""
    outer = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    if outer is None or not is_parallel(loops, outer):
        return 0
    unit = loops.lanes if outer == loops.vector else 1
    return _points_of_block(loops.extents[outer], unit, nanoseconds)


def _grain_of_group(nests: Sequence[tuple[Instruction, Loops]]) -> int:
    """The same of the loop that nests share, which may be over blocks."""
    if not all(is_parallel(loops, loops.order[0]) for _, loops in nests):
        return 0
    loops = nests[0][1]
    work = sum(nanoseconds_of(*one) for one in nests)
    return _points_of_block(loops.extents[loops.order[0]], row_block(loops) or 1, work)


def _points_of_block(extent: int, unit: int, nanoseconds: float) -> int:
    """Whole units, where a loop over so many points takes so long; 0 if it is too short to be shared."""
    blocks = blocks_of_work(nanoseconds)
    return -(-(extent - extent % unit) // (blocks * unit)) * unit if blocks > 1 else 0
