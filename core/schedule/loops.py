"""Loop decisions of one nest: the order of its axes, the vector axis and lanes, accumulators.

1. Reduced axes run inside kept ones, so that sums stay in registers; except where the data do not fit the
   second level cache and the reduced axes come first in memory: then the loops follow memory and the sums
   (a row of them) are accumulated there.
2. The vector axis is the one that makes a point cheapest: accesses along it are contiguous or do not move;
   others cost a scalar access per lane.  Elementwise it becomes the innermost loop; in a reduction it is the
   innermost of the kept or of the reduced loops.
3. A reduction in registers waits for its own last result: cheap bodies get several accumulators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..compute.fusion_cost import LOAD, STORE
from ..ir import Instruction
from ..lazy_dataclass import dataclass
from ..ops.nest import Affine, Bounds, Index, Loaded, Nest, Output
from ..types import F32, I64, DType, TensorType
from .ops import Loops, is_float_sum, is_scattered_sum
from .summation import kept_axes, plan_rows, plan_sums
from .target import Target

_PER_LANE = 2.0
"""A scalar access and moving its element into or out of a vector: two instructions.

1 to 2 give the benchmarks the same code; with 4, x + xᵀ of 1000 × 1000 has no vectors and takes 3.5 times as long.
An element that is written, or whose index is checked, costs twice that: 10⁵ numbers that are just taken at
indices take 1.3 to 1.6 times as long with vectors, and 0.2 where the sine of each is taken as well.
"""

_PARTIAL = 2.0
"""A contiguous access some of whose lanes may be outside: the mask is a second instruction. 1 to 4 give the same
code."""

_LATENCY = 8.0
"""Cost units between a reduction's step and the next one that needs its result: 4 cycles of two vector instructions."""

_MOST_ACCUMULATORS = 4
"""With 4096 f32 in the nearest cache, a maximum takes 913, 622, 507 and 479 ns with 1, 2, 4 and 8 of them, and a sum
421, 355, 358 and 320: twice as many registers and lines of code are not worth the last 5 to 10 %.

A block of rows that are added in registers has one for each row: a loop over 16 rows of each vector of columns keeps
the machine from asking for the next ones. Sums of columns take 0.5 to 0.8 of the time, 1 where they lie in a cache."""

_LEAST_STEPS = 4
"""Steps for each accumulator, so that joining them, a step each, is a quarter of the work at most."""

_JOIN = 3.0
"""Joining the halves of a vector that is summed, where the sums are no more than a vector themselves, in a program that
waits for each of its steps: 3 × 3 times 3 f64 takes 3 ns longer by rows, as what reads the sums as a vector waits until
they are in the cache. Of longer results nobody waits, and reading by columns takes 1.5 times as long."""

_VECTOR_GAIN = 0.9
"""Vectors are taken if a point costs less than this part of what it costs without.

0.7 to 1 give the same code; with 0.5, x + xᵀ has no vectors and takes 3.3 times as long.
"""


_NEAR_ROW = 512
"""Bytes of a row of which eight or sixteen stay in the nearest cache beside others."""

_MOST_REPEATS = 8
"""Points of short axes inside of vectors along a long one: the registers of what is the same for all stay full."""


@dataclass(frozen=True)
class _Use:
    """An operand or result of a nest as the loops see it."""

    type: TensorType
    indices: tuple[Index, ...]
    bounds: Bounds
    is_written: bool


def plan_loops(instruction: Instruction, nest: Nest, target: Target, registers: int = 1) -> Loops:
    """The loops of `instruction`, which is a `nest`, on `target`; a vector has so many `registers`."""
    summed = summed_axes(nest)
    widths = [registers * lanes for lanes in full_lanes(instruction, nest, target)]
    vector = _vector_axis(instruction, nest, widths, summed)
    order = _order(instruction, nest, summed, vector, target)
    lanes = _width(nest, vector, widths[vector], summed) if vector >= 0 else 1
    plan = Loops(nest.extents, nest.accesses, nest.outputs, order, vector, lanes)
    has_sums = bool(summed) and any(is_float_sum(written) for written in nest.outputs)
    if has_sums and _follows_memory(nest, order, summed):
        plan = plan_rows(plan, in_registers=_adds_only(instruction, nest, vector))
    if plan.order and plan.order[-1] in summed:
        innermost = plan.order[-1]
        is_block = plan.order.count(innermost) > 1
        points = max(plan.blocks) if is_block else nest.extents[innermost]
        steps = points // (lanes if innermost == vector else 1)
        accumulators = _accumulators(_body_cost(instruction), steps)
        if is_block and innermost != vector and accumulators == _MOST_ACCUMULATORS:
            accumulators = points
        plan = replace(plan, accumulators=accumulators)
    return plan_sums(plan) if has_sums and not plan.blocks else plan


def _adds_only(instruction: Instruction, nest: Nest, vector: int) -> bool:
    """Whether a row is only added to sums, and stored if short, and computes nothing that is the same along it."""
    if not all(
        is_float_sum(written) or _is_near(nest, written, vector) for written in nest.outputs
    ):
        return False
    loaded = [i for access in nest.accesses for i in access.indices if isinstance(i, Loaded)]
    if any(depends_on(nest, i, axis) for i in loaded for axis in range(len(nest.extents))):
        return False
    inner = instruction.regions[0].entry
    rank = len(nest.extents)
    along = {inner.arguments[vector]}
    for value, access in zip(inner.arguments[rank:], nest.accesses, strict=True):
        if any(depends_on(nest, index, vector) for index in access.indices):
            along.add(value)
    for computed in inner.instructions:
        if not along.isdisjoint(computed.operands):
            along.update(computed.results)
        elif computed.operands and not computed.op.is_terminator:
            return False
    return True


def _is_near(nest: Nest, written: Output, vector: int) -> bool:
    """Whether a result is stored row by row, and rows are so short that a few of them stay in the nearest cache."""
    is_stored = written.combinator is None and written.bounds is Bounds.INSIDE
    return is_stored and nest.extents[vector] * written.type.dtype.bytes <= _NEAR_ROW


def _follows_memory(nest: Nest, order: Sequence[int], summed: frozenset[int]) -> bool:
    """Whether sums are accumulated in memory."""
    axes = [axis for axis in order if nest.extents[axis] > 1]
    return (
        bool(axes)
        and axes[-1] not in summed
        and any(axis in summed for axis in axes)
        and 0 not in nest.extents
    )


def summed_axes(nest: Nest) -> frozenset[int]:
    """Axes that some combining result does not keep."""
    combined = [kept_axes(written) for written in nest.outputs if written.combinator is not None]
    return frozenset(
        axis
        for axis, extent in enumerate(nest.extents)
        if extent != 1 and any(kept is not None and axis not in kept for kept in combined)
    )


def depends_on(nest: Nest, index: Index, axis: int) -> bool:
    """Whether the index differs between points that differ along `axis`."""
    if isinstance(index, Affine):
        return index.coefficient(axis) != 0
    pending = [index.operand]
    while pending:
        for inner in nest.accesses[pending.pop()].indices:
            if isinstance(inner, Loaded):
                pending.append(inner.operand)
            elif inner.coefficient(axis):
                return True
    return False


def full_lanes(instruction: Instruction, nest: Nest, target: Target) -> list[int]:
    """For each axis, elements of the widest type that a vector register along it holds.

    Coordinates and other i64 that never meet memory do not count, nor does the number of a row, which is the same
    along it: they would halve the lanes of all else.
    """
    inner = instruction.regions[0].entry
    written = {output.type.dtype for output in nest.outputs}
    dtypes = written | {operand.tensor.dtype for operand in instruction.operands}
    computed = {r.tensor.dtype for i in inner.instructions for r in i.results}
    others = (dtypes | computed) - {I64}
    with_i64 = target.lanes(max(map(_register_bytes, others | {I64})))
    if I64 in written:
        return [with_i64] * len(nest.extents)
    without = target.lanes(max(map(_register_bytes, others)))
    read = [
        access.indices
        for operand, access in zip(instruction.operands, nest.accesses, strict=True)
        if operand.tensor.dtype == I64
    ]
    return [
        with_i64 if any(depends_on(nest, i, axis) for one in read for i in one) else without
        for axis in range(len(nest.extents))
    ]


def _register_bytes(dtype: DType) -> int:
    """The narrow floats are computed in 32 bits."""
    return max(dtype.bytes, F32.bytes) if dtype.is_float else dtype.bytes


def _vector_axis(
    instruction: Instruction, nest: Nest, widths: Sequence[int], summed: frozenset[int]
) -> int:
    """The axis whose vectors make a point cheapest, of so many lanes at most; −1 when no vectors are cheaper."""
    uses = _uses(instruction, nest)
    computed = computed_cost(instruction)
    best, cheapest = -1, computed + LOAD * len(uses)
    kept = math.prod(n for axis, n in enumerate(nest.extents) if axis not in summed)
    for axis in reversed(range(len(nest.extents))):
        is_short = 1 < kept <= widths[axis]
        width = _width(nest, axis, widths[axis], summed)
        if width > 1 and not _needs_single_points(nest, axis):
            extent = nest.extents[axis]
            accesses = sum(_access_cost(nest, use, axis, min(width, extent)) for use in uses)
            steps = extent // width + (extent % width != 0)
            joins = _JOIN * math.log2(width) + STORE if axis in summed and is_short else 0.0
            cost = ((computed + accesses) * steps + joins) / extent
            if cost < cheapest * _VECTOR_GAIN:
                best, cheapest = axis, cost
    return best


def _uses(instruction: Instruction, nest: Nest) -> list[_Use]:
    operands = zip(instruction.operands, nest.accesses, strict=True)
    return [
        *(_Use(value.tensor, access.indices, access.bounds, False) for value, access in operands),
        *(_Use(output.type, output.indices, output.bounds, True) for output in nest.outputs),
    ]


def _access_cost(nest: Nest, use: _Use, axis: int, lanes: int) -> float:
    """The cost of one vector of accesses along `axis`."""
    stride, per_element = 1, 0
    is_loaded = is_partial = False
    for index, extent in zip(reversed(use.indices), reversed(use.type.shape), strict=True):
        if depends_on(nest, index, axis):
            is_loaded |= isinstance(index, Loaded) or use.bounds is Bounds.CLIP
            is_partial |= use.bounds is Bounds.ZERO
            per_element += stride * (index.coefficient(axis) if isinstance(index, Affine) else 1)
        stride *= extent
    if per_element == 0 and not is_loaded:
        return 0.0
    if per_element != 1 or is_loaded:
        is_checked = is_loaded and use.bounds is Bounds.CHECK
        return _PER_LANE * lanes * (2 if use.is_written or is_checked else 1)
    return _PARTIAL if is_partial else STORE if use.is_written else LOAD


def _needs_single_points(nest: Nest, axis: int) -> bool:
    """Whether it hangs on an index read at each point along `axis` which element is written."""
    found = [output.indices for output in nest.outputs]
    return any(
        depends_on(nest, index, axis)
        for indices in found
        for index in indices
        if isinstance(index, Loaded)
    )


def _order(
    instruction: Instruction, nest: Nest, summed: frozenset[int], vector: int, target: Target
) -> tuple[int, ...]:
    axes = range(len(nest.extents))
    kept = [axis for axis in axes if axis not in summed]
    inner = [axis for axis in axes if axis in summed]
    for part in (kept, inner):
        if vector in part:
            part.remove(vector)
            part.append(vector)
    follows_memory = kept and inner and max(inner) < max(kept) and kept[-1] == vector
    is_streamed = _streamed_bytes(instruction, nest) > target.l2_bytes
    is_scattered = any(map(is_scattered_sum, nest.outputs))
    if follows_memory and is_streamed and not is_scattered and not _rounds_each_step(nest):
        return (*(axis for axis in axes if axis != vector), vector)
    if kept and kept[-1] == vector and _repeats(nest, kept):
        kept.insert(0, kept.pop())
    return (*kept, *inner)


def _streamed_bytes(instruction: Instruction, nest: Nest) -> int:
    """The bytes of the largest tensor that a nest walks through, which may be a part of that.

    What is read of a tensor that fills the second cache comes from behind it, also a matrix at a time.
    """
    streamed = math.prod(nest.extents) * max(o.type.dtype.bytes for o in nest.outputs)
    axes = [axis for axis, extent in enumerate(nest.extents) if extent > 1]
    for operand, access in zip(instruction.operands, nest.accesses, strict=True):
        if all(any(depends_on(nest, i, axis) for i in access.indices) for axis in axes):
            streamed = max(streamed, operand.tensor.bytes)
    return streamed


def _repeats(nest: Nest, kept: Sequence[int]) -> bool:
    """Whether most of what a point reads is the same along all kept axes but the last, which are short."""
    *short, _ = kept
    if not 1 < math.prod(nest.extents[axis] for axis in short) <= _MOST_REPEATS:
        return False
    differs = sum(
        any(depends_on(nest, index, axis) for index in access.indices for axis in short)
        for access in nest.accesses
    )
    return 2 * differs < len(nest.accesses)


def _rounds_each_step(nest: Nest) -> bool:
    """Whether sums kept in memory lose what registers keep: those of f16 and bf16 are f32 in registers."""
    return any(o.type.dtype.is_float and o.type.dtype.bits < F32.bits for o in nest.outputs)


def _accumulators(cost: float, steps: int) -> int:
    """Independent partial results that hide the latency of combining, a power of two."""
    wanted = _LATENCY / max(cost / 2, 1.0)
    count = 1
    # a quarter more than there are is not worth twice as many
    while count < _MOST_ACCUMULATORS and 1.25 * count < wanted and steps >= _LEAST_STEPS * count:
        count *= 2
    return count


def computed_cost(instruction: Instruction) -> float:
    """What the instructions of a point cost."""
    inner = instruction.regions[0].entry
    return sum(i.op.cost for i in inner.instructions)


def _body_cost(instruction: Instruction) -> float:
    """What a point costs besides joining its result to the sums."""
    return computed_cost(instruction) + LOAD * (len(instruction.operands) - 1)


def _width(nest: Nest, axis: int, lanes: int, summed: frozenset[int]) -> int:
    """The lanes of vectors along `axis`, at most `lanes`, a power of two.

    A short axis that is kept is one vector, some of whose lanes are not active, if that is at most half of a register
    of 512 bits: three columns of 784 rows times a vector take 0.4 of the time of two columns and one, five to seven
    0.75. Wider ones lie in two cache lines each and gain nothing; and lanes that are summed would have to be masked.
    """
    extent = nest.extents[axis]
    width = _power_below(extent)
    if width < extent and 2 * width <= lanes // 2 and axis not in summed:
        return 2 * width
    return min(lanes, width)


def _power_below(extent: int) -> int:
    """The greatest power of two that is at most `extent`, at least 1."""
    return 1 << max(extent.bit_length() - 1, 0)
