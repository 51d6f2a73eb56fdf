"""Laws of movement: what only rearranges elements is composed, shortened or left out.

All views of the same row-major elements are written as `shapeCast`, which costs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ...ir import Builder, Instruction, Value
from ...ops import (
    Broadcast,
    Concatenate,
    Pad,
    PadShape,
    Reverse,
    ShapeCast,
    Slice,
    SqueezeShape,
    Transpose,
)
from ...ops.forms import Elementwise
from ...ops.literal import literal_of
from ...ops.movement import reshaped
from ..rewrite import Laws
from .patterns import inputs, made_by, number


def simplify_transpose(b: Builder, instruction: Instruction[Transpose]) -> Value | None:
    (x,) = instruction.operands
    order = instruction.op.order(x.tensor.rank)
    shape = x.tensor.shape
    moved = [axis for axis in order if shape[axis] != 1]
    # axes of extent 1 may go anywhere: Aᵀ is A seen under another shape
    if moved == sorted(moved):
        return reshaped(b, x, instruction.result.tensor.shape)
    match x.op, x.producer:
        # (Aᵖ)ᵠ = Aᵖᵠ
        case Transpose() as inner, Instruction(operands=(y,)):
            before = inner.order(y.tensor.rank)
            return b.emit(Transpose(tuple(before[axis] for axis in order)), y)
        case _:
            return None


def simplify_view(b: Builder, instruction: Instruction) -> Value | None:
    """`shapeCast`, and what is one: `padShape` and `squeezeShape`."""
    (x,) = instruction.operands
    shape = instruction.result.tensor.shape
    # a view under the same shape is x
    if x.tensor.shape == shape:
        return x
    # a view of a view is one view
    if (source := _viewed(x)) is not None:
        return reshaped(b, source, shape)
    return None if isinstance(instruction.op, ShapeCast) else reshaped(b, x, shape)


def simplify_broadcast(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    result = instruction.result.tensor
    # nothing is repeated: x under its own or a longer shape
    if x.tensor.shape == result.shape or x.tensor.size == result.size != 0:
        return reshaped(b, x, result.shape)
    # broadcasting twice is broadcasting once; leading axes of extent 1 come by themselves
    if (source := without_broadcast(x)) is not None:
        return b.emit(Broadcast(result.shape), source)
    return None


def simplify_reverse(b: Builder, instruction: Instruction[Reverse]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    axes = {axis for axis in op.axes if x.tensor.shape[axis] > 1}
    match x.op, inputs(x):
        # reversing twice along an axis is not reversing it
        case Reverse(earlier), (y,):
            x, axes = y, axes ^ set(earlier)
        # reversing fewer than two elements does nothing
        case _ if axes and len(axes) == len(op.axes):
            return None
        case _:
            pass
    return b.emit(Reverse(tuple(sorted(axes))), x) if axes else x


def simplify_slice(b: Builder, instruction: Instruction[Slice]) -> Value | None:
    (x,) = instruction.operands
    result = instruction.result.tensor
    # a slice that takes everything is x
    if result.shape == x.tensor.shape:
        return x
    ranges = _ranges(instruction.op, x)
    match x.op, x.producer:
        # a slice of a slice is one slice
        case Slice() as inner, Instruction(operands=(y,)):
            pairs = zip(_ranges(inner, y), ranges, strict=True)
            return sliced(b, y, [_composed(r, s) for r, s in pairs])
        # a slice of a broadcast is the broadcast of a slice, which is less unless nothing was repeated
        case Broadcast(), Instruction(operands=(y,)) if x.tensor.size:
            skipped = result.rank - y.tensor.rank
            own = zip(y.tensor.shape, x.tensor.shape[skipped:], ranges[skipped:], strict=True)
            kept = [range(extent) if extent != wide else r for extent, wide, r in own]
            return b.emit(Broadcast(result.shape), sliced(b, y, kept))
        case Concatenate(axis), Instruction(operands=parts):
            return _slice_of_part(b, parts, axis, ranges)
        case Pad(low=low) as pad, Instruction(operands=(y, _)) if not any(pad.gaps):
            return _slice_of_padded(b, y, low, ranges)
        # a slice of what is computed with a literal is computed with a slice of it, which is known
        case Elementwise(), Instruction() as producer if _is_cut_up(producer):
            return computed_of_slices(b, producer, ranges)
        case _:
            return None


def _is_cut_up(instruction: Instruction) -> bool:
    """Whether floats are computed with a literal of different numbers, and only slices of them are read, which overlap
    so little that computing them takes no longer."""
    x = instruction.result
    if not x.tensor.dtype.is_float or not any(map(_is_of_numbers, instruction.operands)):
        return False
    if not all(isinstance(use.op, Slice) for use in x.uses):
        return False
    return sum(use.result.tensor.size for use in x.uses) <= x.tensor.size


def _is_of_numbers(x: Value) -> bool:
    literal = literal_of(x)
    return literal is not None and not literal.is_splat


def computed_of_slices(b: Builder, instruction: Instruction, ranges: Sequence[range]) -> Value:
    """A slice of the result of an elementwise function, computed of slices of its operands."""
    rank = len(ranges)
    slices: list[Value] = []
    for x in instruction.operands:
        own = ranges[rank - x.tensor.rank :]
        kept = [
            range(1) if extent == 1 else r for extent, r in zip(x.tensor.shape, own, strict=True)
        ]
        slices.append(sliced(b, x, kept))
    return b.emit(instruction.op, *slices)


def _slice_of_part(
    b: Builder, parts: Sequence[Value], axis: int, ranges: list[range]
) -> Value | None:
    wanted = ranges[axis]
    ends = itertools.accumulate((part.tensor.shape[axis] for part in parts), initial=0)
    for part, (first, end) in zip(parts, itertools.pairwise(ends), strict=True):
        # a slice within one part of a concatenation is a slice of that part
        if wanted and first <= wanted[0] and wanted[-1] < end:
            return sliced(b, part, [*ranges[:axis], _shifted(wanted, -first), *ranges[axis + 1 :]])
    return None


def _slice_of_padded(b: Builder, x: Value, low: Sequence[int], ranges: list[range]) -> Value | None:
    own = [_shifted(r, -by) for r, by in zip(ranges, low, strict=True)]
    # a slice that avoids the padding is a slice of what was padded
    if all(r and r[0] >= 0 and r[-1] < n for r, n in zip(own, x.tensor.shape, strict=True)):
        return sliced(b, x, own)
    return None


def simplify_pad(b: Builder, instruction: Instruction[Pad]) -> Value | None:
    x, value = instruction.operands
    op = instruction.op
    # padding by nothing is x
    if instruction.result.tensor.shape == x.tensor.shape:
        return x
    match x.op, inputs(x):
        # padding twice by the same value is padding once
        case Pad() as inner, (y, other) if not any((*op.gaps, *inner.gaps)) and _same(value, other):
            low = tuple(m + n for m, n in zip(op.low, inner.low, strict=True))
            high = tuple(m + n for m, n in zip(op.high, inner.high, strict=True))
            return b.emit(Pad(low, high), y, value)
        case _:
            return None


def simplify_concatenate(b: Builder, instruction: Instruction[Concatenate]) -> Value | None:
    op, parts = instruction.op, instruction.operands
    # empty parts add nothing
    kept = [part for part in parts if part.tensor.shape[op.axis]]
    if len(kept) < 2:
        return (kept or parts)[0]
    # a concatenation of concatenations along its axis that nobody else reads is one
    flat = [y for x in kept for y in (_parts(x, op) or (x,))]
    return b.emit(op, *flat) if len(kept) < len(parts) or len(flat) > len(kept) else None


def _parts(x: Value, op: Concatenate) -> Sequence[Value]:
    """What `x` is a concatenation of, along the same axis and for one reader; nothing else."""
    return x.producer.operands if x.producer is not None and x.op == op and x.has_one_use else ()


def without_broadcast(x: Value) -> Value | None:
    """What `x` is a broadcast of, if it is one; axes of extent 1 in front count as broadcast."""
    operands = made_by(x, Broadcast)
    if operands is not None:
        return operands[0]
    source = _viewed(x)
    if source is None:
        return None
    own, wide = source.tensor.shape, x.tensor.shape
    leading = len(wide) - len(own)
    return source if leading > 0 and wide == (1,) * leading + own else None


def _viewed(x: Value) -> Value | None:
    operands = made_by(x, ShapeCast) or made_by(x, PadShape) or made_by(x, SqueezeShape)
    return operands[0] if operands else None


def _ranges(op: Slice, x: Value) -> list[range]:
    """What a slice takes of x, per axis."""
    return [range(*triple) for triple in op.ranges(x.tensor.shape)]


def _composed(outer: range, inner: range) -> range:
    """The elements of `outer` at the positions `inner`."""
    return outer[inner.start : inner.stop : inner.step]


def _shifted(r: range, by: int) -> range:
    return range(r.start + by, r.stop + by, r.step)


def sliced(b: Builder, x: Value, ranges: Sequence[range]) -> Value:
    """The elements of `x` at these positions; x itself if that is all of it."""
    shape = x.tensor.shape
    if all(len(r) == extent for r, extent in zip(ranges, shape, strict=True)):
        return x
    start = tuple(r[0] if r else 0 for r in ranges)
    stop = tuple(r[-1] + 1 if r else 0 for r in ranges)
    strides = tuple(r.step if len(r) > 1 else 1 for r in ranges)
    return b.emit(Slice(start, stop, () if set(strides) == {1} else strides), x)


def _same(x: Value, y: Value) -> bool:
    return x is y or (number(x) is not None and x.op == y.op)


MOVEMENT: Laws = {
    Transpose: (simplify_transpose,),
    ShapeCast: (simplify_view,),
    PadShape: (simplify_view,),
    SqueezeShape: (simplify_view,),
    Broadcast: (simplify_broadcast,),
    Reverse: (simplify_reverse,),
    Slice: (simplify_slice,),
    Pad: (simplify_pad,),
    Concatenate: (simplify_concatenate,),
}
