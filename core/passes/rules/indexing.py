"""Laws of indices: what is read or written in equal steps is a slice, and needs no indices."""

from __future__ import annotations

from dataclasses import replace

from ...ir import Builder, Instruction, Value
from ...ops import Add, Gather, Pad, Reverse, Scatter, ScatterAdd
from ...ops.literal import constant
from ...ops.movement import reshaped
from ...ops.progressions import Progression, progression_of
from ...types import scalar
from ..rewrite import Laws
from .movement import sliced


def simplify_gather(b: Builder, instruction: Instruction[Gather]) -> Value | None:
    x, *indices = instruction.operands
    axis = instruction.op.axis
    numbers = _inside(indices, x.tensor.shape[axis])
    if numbers is None:
        return None
    # x at start, start + step, … is a slice of x, read from its end where the step is negative
    ranges = [range(extent) for extent in x.tensor.shape]
    ranges[axis] = _ascending(numbers)
    taken = _in_order(b, sliced(b, x, ranges), axis, numbers)
    return reshaped(b, taken, instruction.result.tensor.shape)


def simplify_scatter_add(b: Builder, instruction: Instruction[ScatterAdd]) -> Value | None:
    updates, *indices = instruction.operands
    axis, shape = instruction.op.axis, instruction.op.shape
    numbers = _inside(indices, shape[axis])
    if numbers is None:
        return None
    # what is added to zeros in equal steps lies between zeros
    dtype = updates.tensor.dtype
    zero = constant(b, scalar(dtype), 0)
    rows = reshaped(b, updates, (*shape[:axis], len(numbers), *shape[axis + 1 :]))
    rows = _in_order(b, rows, axis, numbers)
    if dtype.is_float:
        rows = b.emit(Add(), rows, zero)  # 0 + −0 is 0
    steps = _ascending(numbers)
    if len(steps) == shape[axis]:
        return rows
    return b.emit(
        Pad(
            _at(axis, shape, steps[0]),
            _at(axis, shape, shape[axis] - 1 - steps[-1]),
            _at(axis, shape, steps.step - 1),
        ),
        rows,
        zero,
    )


def simplify_scatter(b: Builder, instruction: Instruction[Scatter]) -> Value | None:
    updates, x, *indices = instruction.operands
    op, shape = instruction.op, x.tensor.shape
    if not indices:
        return None
    numbers = _inside(indices, shape[op.axis])
    if numbers is None:
        return None
    # what is written in equal steps is written to a slice
    steps = _ascending(numbers)
    window = op.window(x.tensor.rank)
    window[op.axis] = (steps[0], steps.step)
    start, strides = (tuple(each) for each in zip(*window, strict=True))
    own = list(updates.tensor.shape)
    own[op.axis : op.axis + indices[0].tensor.rank] = [len(numbers)]
    rows = _in_order(b, reshaped(b, updates, own), op.axis, numbers)
    return b.emit(replace(op, axis=0, start=start, strides=strides), rows, x)


def _inside(indices: list[Value], extent: int) -> Progression | None:
    """The numbers that the indices of one axis are known to be, all of them inside."""
    numbers = progression_of(indices[0]) if len(indices) == 1 else None
    if numbers is None:
        return None
    steps = _ascending(numbers)
    return numbers if steps[0] >= 0 and steps[-1] < extent else None


def _ascending(numbers: Progression) -> range:
    """The same numbers in ascending order, in steps of 1 if there is but one."""
    if len(numbers) == 1:
        return range(numbers[0], numbers[0] + 1)
    return numbers if numbers.step > 0 else numbers[::-1]


def _in_order(b: Builder, x: Value, axis: int, numbers: Progression) -> Value:
    """What lies in ascending order, or is to, in that of the numbers."""
    return b.emit(Reverse((axis,)), x) if len(numbers) > 1 and numbers.step < 0 else x


def _at(axis: int, shape: tuple[int, ...], number: int) -> tuple[int, ...]:
    """A number for the axis, 0 for the others."""
    return tuple(number if k == axis else 0 for k in range(len(shape)))


INDEXING: Laws = {
    Gather: (simplify_gather,),
    ScatterAdd: (simplify_scatter_add,),
    Scatter: (simplify_scatter,),
}
