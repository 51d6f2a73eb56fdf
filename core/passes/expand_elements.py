"""Expands `extract` and `insert` on tensors to slices and concatenations, which have derivatives and loop nests.

extract 1, #w, 2 from %x     an extract up to the tensor, then a slice without its axis
insert %e to %x at 2         the rows before, the new one, and those after it, joined
insert %e to %p at #w        a struct of the other fields and the new one
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Builder, Value
from ..ops import Concatenate, Extract, Insert, ShapeCast, Slice
from ..ops.leaves import with_parts
from ..types import TensorType

Keys = Sequence["int | str"]


def expand_extract(b: Builder, op: Extract, x: Value) -> Value | None:
    """`extract` whose keys lead into a tensor; None when they do not."""
    type = x.type
    for depth, key in enumerate(op.keys):
        if isinstance(type, TensorType):
            tensor = b.emit(Extract(op.keys[:depth]), x) if depth else x
            return _element(b, tensor, op.keys[depth:])
        type = Extract((key,)).infer(type)
    return None


def expand_insert(b: Builder, op: Insert, element: Value, x: Value) -> Value:
    """`insert` from the inside outwards: each aggregate on the way is made anew."""
    around: list[Value] = [x]
    for key in op.keys:
        if isinstance(around[-1].type, TensorType):
            break
        around.append(b.emit(Extract((key,)), around[-1]))
    inwards = len(around) - 1
    rest = op.keys[inwards:]
    made = _with_row(b, around[-1], rest, element) if rest else element
    for depth in reversed(range(inwards)):
        made = with_parts(b, around[depth], {op.keys[depth]: made})
    return made


def _element(b: Builder, x: Value, keys: Keys) -> Value:
    """The part of a tensor that numbers along its leading axes lead to."""
    start = tuple(int(key) for key in keys)
    row = b.emit(Slice(start, tuple(k + 1 for k in start)), x)
    return b.emit(ShapeCast(x.tensor.shape[len(start) :]), row)


def _with_row(b: Builder, x: Value, keys: Keys, element: Value) -> Value:
    """The tensor `x` with another element where the numbers lead to; only what holds it is taken apart."""
    first, *rest = (int(key) for key in keys)
    pieces: list[list[Value]] = []
    current = x
    for axis, key in enumerate((first, *rest)):
        extent = current.tensor.shape[axis]
        parts = [(0, key), (key, key + 1), (key + 1, extent)]
        pieces.append([_part(b, current, axis, *part) for part in parts])
        current = pieces[-1][1]
    made = b.emit(ShapeCast(current.tensor.shape), element)
    for axis in reversed(range(len(pieces))):
        before, _, after = pieces[axis]
        made = b.emit(
            Concatenate(axis), *(p for p in (before, made, after) if p.tensor.shape[axis])
        )
    return made


def _part(b: Builder, x: Value, axis: int, start: int, stop: int) -> Value:
    low = (0,) * axis
    return b.emit(Slice((*low, start), (*x.tensor.shape[:axis], stop)), x)
