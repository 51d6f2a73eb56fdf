"""Expands ordered reductions, scans and window reductions to `for` loops.

1. What is combined becomes the leading axis; an iteration takes one row of it and works on all results.
2. An operation, and a function made of elementwise ops, works on rows instead of scalars; any other is called for
   one element after the other, in a loop inside.
3. What a window covers outside of the tensor leaves the result as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..ir import Block, Builder, Function, Instruction, Module, Region, Value
from ..lazy_dataclass import dataclass
from ..ops import (
    Apply,
    ApplyValue,
    Concatenate,
    For,
    Gather,
    If,
    InOrder,
    Literal,
    OrderedReduction,
    Pointwise,
    ReduceBy,
    ReduceWindowBy,
    Reverse,
    ScanBy,
    Select,
    Slice,
    Yield,
    constant,
)
from ..ops.movement import permuted, reshaped
from ..ops.nest import Bounds
from ..ops.reduction import broadcast_to
from ..ops.window import Views
from ..types import BOOL, I64, FunctionType, TensorType, scalar


def expand_reduction(module: Module, b: Builder, instruction: Instruction) -> Value | None:
    """The value of a fold by a function, by a loop; None for any other instruction."""
    if not isinstance(instruction.op, OrderedReduction):
        return None
    x, init, function = instruction.op.parts(instruction.operands)
    step = _step_of(module, instruction.op, function)
    match instruction.op:
        case ReduceBy() as op:
            return _reduce(b, op, step, x, init)
        case ScanBy() as op:
            return _scan(b, op, step, x, init)
        case ReduceWindowBy() as op:
            return _reduce_window(b, op, step, x, *init)
        case _:
            return None


def _reduce(b: Builder, op: ReduceBy, step: _Combine, x: Value, init: Sequence[Value]) -> Value:
    count = op.count(x.tensor)
    moved = permuted(b, x, op.order(x.tensor.rank))
    rest = moved.tensor.shape[len(op.axes) :]
    rows = reshaped(b, moved, (count, *rest))
    start, first = _start(b, rows, init)
    if first == count:
        return start

    def body(inner: Builder, index: Value, total: Value) -> tuple[Value, ...]:
        return (step.combine(inner, total, _row(inner, rows, index)),)

    return _loop(b, first, count, start, body)[0]


def _scan(b: Builder, op: ScanBy, step: _Combine, x: Value, init: Sequence[Value]) -> Value:
    count = x.tensor.shape[op.axis]
    if not x.tensor.size or (count == 1 and not init):
        return x
    others = [axis for axis in range(x.tensor.rank) if axis != op.axis]
    order = (op.axis, *others)
    rows = permuted(b, x, order)
    rows = b.emit(Reverse((0,)), rows) if op.reverse else rows
    start, first = _start(b, rows, init)
    stacked = rows.tensor.with_shape((count - first, *rows.tensor.shape[1:]))

    def body(inner: Builder, index: Value, total: Value) -> tuple[Value, ...]:
        following = step.combine(inner, total, _row(inner, rows, index))
        return following, total if op.exclusive else following

    scanned = _loop(b, first, count, start, body, stacked)[1]
    if first:
        head = reshaped(b, start, (1, *start.tensor.shape))
        scanned = b.emit(Concatenate(0), head, scanned)
    scanned = b.emit(Reverse((0,)), scanned) if op.reverse else scanned
    return permuted(b, scanned, tuple(order.index(axis) for axis in range(len(order))))


def _reduce_window(b: Builder, op: ReduceWindowBy, step: _Combine, x: Value, init: Value) -> Value:
    """One iteration for each element of a window, at all places of the window at once."""
    panes, rank = op.panes(x.tensor), x.tensor.rank
    places = tuple(pane.places for pane in panes)
    start = broadcast_to(b, init, places)
    if 0 in places:
        return start
    views = Views(tuple(panes))
    order = (*range(1, 2 * rank, 2), *range(0, 2 * rank, 2))
    count = math.prod(op.window)

    def arranged(windows: Value) -> Value:
        return reshaped(b, permuted(b, windows, order), (count, *places))

    rows = arranged(views.apply(b, x, 0))
    mask: Value | None = None
    if any(pane.is_padded for pane in panes):
        present = constant(b, x.tensor.with_dtype(BOOL), True)
        mask = arranged(views.apply(b, present, False))

    def body(inner: Builder, index: Value, total: Value) -> tuple[Value, ...]:
        covered = None if mask is None else _row(inner, mask, index)
        return (step.combine(inner, total, _row(inner, rows, index), covered),)

    return _loop(b, 0, count, start, body)[0]


ElementwiseRule: TypeAlias = Callable[[Builder, Value, Value], Value]
"""(builder, accumulated, element) to what follows."""


@dataclass(frozen=True)
class _Combine:
    """How one more element is combined with what there is so far; `takes_rows`: on many places at once."""

    meaning: ElementwiseRule
    takes_rows: bool

    def combine(self, b: Builder, total: Value, row: Value, mask: Value | None = None) -> Value:
        """f(total, row) element by element; `total` where the mask is false."""
        if not row.tensor.size:
            return total
        if not self.takes_rows:
            return self._one_by_one(b, total, row, mask)
        result = broadcast_to(b, self.meaning(b, total, row), row.tensor.shape)
        return result if mask is None else b.emit(Select(), result, total, mask)

    def _one_by_one(self, b: Builder, total: Value, row: Value, mask: Value | None) -> Value:
        shape, size = row.tensor.shape, row.tensor.size
        if not shape:
            return self._guarded(b, total, row, mask)
        flat_total, flat_row = (reshaped(b, x, (size,)) for x in (total, row))
        flat_mask = None if mask is None else reshaped(b, mask, (size,))

        def body(inner: Builder, index: Value, *_: Value) -> tuple[Value, ...]:
            covered = None if flat_mask is None else _row(inner, flat_mask, index)
            one, other = (_row(inner, x, index) for x in (flat_total, flat_row))
            return (self._guarded(inner, one, other, covered),)

        (stacked,) = _loop(b, 0, size, None, body, row.tensor.with_shape((size,)))
        return reshaped(b, stacked, shape)

    def _guarded(self, b: Builder, total: Value, element: Value, mask: Value | None) -> Value:
        """The call, unless the mask says that there is no element."""
        if mask is None:
            return self.meaning(b, total, element)
        then, otherwise = (Builder(Block(name=name), b.location) for name in ("then", "else"))
        then.emit_many(Yield(), [self.meaning(then, total, element)])
        otherwise.emit_many(Yield(), [total])
        regions = [Region([branch.block]) for branch in (then, otherwise)]
        return b.emit_many(If((total.type,)), [mask], regions)[0]


def _step_of(module: Module, op: OrderedReduction, function: Value | None) -> _Combine:
    if isinstance(op, InOrder):
        by = op.by
        return _Combine(lambda b, total, element: b.emit(by, total, element), takes_rows=True)
    assert function is not None
    symbol = function.op.referred if function.op is not None else None
    callee = module.functions.get(symbol) if symbol is not None else None
    if callee is not None and _is_elementwise(callee):
        return _Combine(_copy_of(callee), takes_rows=True)
    return _Combine(_call_of(function, symbol), takes_rows=False)


def _copy_of(function: Function) -> ElementwiseRule:
    def copied(b: Builder, total: Value, element: Value) -> Value:
        values = dict(zip(function.parameters, (total, element), strict=True))
        *made_of, last = function.entry.instructions
        for instruction in made_of:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction.result] = b.emit(instruction.op, *operands)
        (result,) = last.operands
        return values[result]

    return copied


def _call_of(function: Value, symbol: str | None) -> ElementwiseRule:
    type = function.type
    assert isinstance(type, FunctionType)

    def called(b: Builder, total: Value, element: Value) -> Value:
        if symbol is not None:
            return b.emit(Apply(symbol, type), total, element)
        return b.emit(ApplyValue(type), function, total, element)

    return called


def _is_elementwise(function: Function) -> bool:
    """Whether its body is scalar ops that mean the same on each element of tensors."""
    if function.body is None or len(function.body.blocks) > 1:
        return False
    *made_of, _ = function.entry.instructions
    return all(isinstance(i.op, Pointwise | Literal) for i in made_of)


LoopBodyRule: TypeAlias = Callable[..., tuple[Value, ...]]
"""(builder, index, carried) to what is yielded."""


def _loop(
    b: Builder,
    first: int,
    count: int,
    start: Value | None,
    body: LoopBodyRule,
    stacked: TensorType | None = None,
) -> tuple[Value, ...]:
    """A `for` that carries `start` and stacks `stacked`, if given; its results."""
    inner = Builder(Block(name="body"), b.location)
    index = inner.argument(scalar(I64), "i")
    carried = [] if start is None else [inner.argument(start.type)]
    inner.emit_many(Yield(), body(inner, index, *carried))
    bounds = [constant(b, scalar(I64), n) for n in (first, count)]
    op = For(() if stacked is None else (stacked,))
    operands = bounds if start is None else [*bounds, start]
    return b.emit_many(op, operands, [Region([inner.block])])


def _start(b: Builder, rows: Value, init: Sequence[Value]) -> tuple[Value, int]:
    """What the first combination starts from, and the row it takes."""
    rest = rows.tensor.shape[1:]
    if init:
        return broadcast_to(b, init[0], rest), 0
    return reshaped(b, b.emit(Slice((0,), (1,)), rows), rest), 1


def _row(b: Builder, rows: Value, index: Value) -> Value:
    return b.emit(Gather(0, Bounds.INSIDE), rows, index)
