"""Laws of reductions and scans that do not change the order of floating-point operations."""

from __future__ import annotations

import math

import numpy as np

from ...ir import Builder, Instruction, Value
from ...ops import Add, Broadcast, Multiply, Reduce, Scan, ShapeCast, StrongMultiply
from ...ops.combinator import Combinator
from ...ops.literal import literal_of
from ...ops.movement import reshaped
from ...ops.reduction import broadcast_to
from ..rewrite import Laws
from .movement import computed_of_slices
from .patterns import filled, inputs, is_normal, made_by

_MOST_NUMBERS = 256
"""Numbers of a literal that are looked through: unit vectors have few."""

_IDEMPOTENT = (Combinator.MIN, Combinator.MAX, Combinator.AND, Combinator.OR)
"""x ∘ x = x."""


def simplify_reduce(b: Builder, instruction: Instruction[Reduce]) -> Value | None:
    (x,) = instruction.operands
    op, result = instruction.op, instruction.result.tensor
    shape = x.tensor.shape
    # over no axes: x
    if not op.axes:
        return x
    # over axes of one element: x under another shape; a sum of −0 is +0, as x + 0 is
    if all(shape[axis] == 1 for axis in op.axes):
        view = b.emit(ShapeCast(result.shape), x)
        if op.combinator is not Combinator.ADD or result.dtype.is_integer:
            return view
        return b.emit(Add(), view, filled(b, result.with_shape(()), 0))
    if op.combinator in _IDEMPOTENT and (source := _repeated(x, op.axes)) is not None:
        # x ∘ … ∘ x = x
        return broadcast_to(b, _without_axes(b, source, op.axes, len(shape)), result.shape)
    # Σᵢ cᵢ ⊗ xᵢ = cₖ ⊗ xₖ where only cₖ is not 0: products with 0 are +0, also of ∞ and NaN
    if op.combinator is Combinator.ADD and (term := _only_term(b, x, op.axes)) is not None:
        return reshaped(b, term, result.shape)
    match x.op, inputs(x):
        # Σᵢ Σⱼ x = Σᵢⱼ x, of integers and truth values
        case Reduce(op.combinator, inner), (y,) if not result.dtype.is_float:
            return b.emit(Reduce(op.combinator, merged_axes(inner, op.axes, y.tensor.rank)), y)
        # x + … + x = n · x, of integers
        case _ if result.dtype.is_integer:
            return sum_of_equals(b, instruction)
        case _:
            return None


def simplify_scan(b: Builder, instruction: Instruction[Scan]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    # along an axis of one element: x
    return x if x.tensor.shape[op.axis] == 1 and not op.exclusive else None


def sum_of_equals(b: Builder, instruction: Instruction[Reduce]) -> Value | None:
    """n · x for the sum of n elements that are all the same x; None where the element type has no such n."""
    (x,) = instruction.operands
    op, result = instruction.op, instruction.result.tensor
    source = _repeated(x, op.axes) if op.combinator is Combinator.ADD else None
    if source is None:
        return None
    count = math.prod(x.tensor.shape[axis] for axis in op.axes)
    if result.dtype.is_integer:
        count = int(np.asarray(count).astype(result.dtype.numpy))  # wraps around, as the sum does
    elif not is_normal(count, result.dtype):
        return None
    one = _without_axes(b, source, op.axes, x.tensor.rank)
    total = b.emit(Multiply(), one, filled(b, one.tensor.with_shape(()), count))
    return broadcast_to(b, total, result.shape)


def merged_axes(inner: tuple[int, ...], outer: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes of a reduction over `inner` and then over `outer` of what remains."""
    kept = [axis for axis in range(rank) if axis not in inner]
    return tuple(sorted((*inner, *(kept[axis] for axis in outer))))


def _only_term(b: Builder, x: Value, axes: tuple[int, ...]) -> Value | None:
    """Of strong products with a literal the one that is not 0, if there is one along these axes; it keeps them."""
    shape = x.tensor.shape
    wide = [axis for axis in axes if shape[axis] > 1]
    for factor in made_by(x, StrongMultiply) or ():
        literal = literal_of(factor)
        if literal is None or literal.is_splat or literal.type.size > _MOST_NUMBERS:
            continue
        numbers = literal.evaluate()
        new = len(shape) - numbers.ndim
        if any(axis < new or numbers.shape[axis - new] == 1 for axis in wide):
            continue
        found = {tuple(place[axis - new] for axis in wide) for place in np.argwhere(numbers != 0)}
        if len(found) != 1:
            continue
        ranges = [range(extent) for extent in shape]
        for axis, place in zip(wide, found.pop(), strict=True):
            ranges[axis] = range(int(place), int(place) + 1)
        assert x.producer is not None
        return computed_of_slices(b, x.producer, ranges)
    return None


def _repeated(x: Value, axes: tuple[int, ...]) -> Value | None:
    """What `x` broadcasts, if its elements along each of `axes` are one element repeated."""
    operands = made_by(x, Broadcast)
    if operands is None:
        return None
    (source,) = operands
    new = x.tensor.rank - source.tensor.rank
    own, wide = source.tensor.shape, x.tensor.shape
    repeated = all(wide[axis] and (axis < new or own[axis - new] == 1) for axis in axes)
    return source if repeated else None


def _without_axes(b: Builder, x: Value, axes: tuple[int, ...], rank: int) -> Value:
    """`x` without those of the axes (counted in `rank`) that it has, all of extent 1."""
    new = rank - x.tensor.rank
    return reshaped(b, x, [n for axis, n in enumerate(x.tensor.shape, new) if axis not in axes])


REDUCTION: Laws = {Reduce: (simplify_reduce,), Scan: (simplify_scan,)}
