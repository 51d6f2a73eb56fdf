"""Products of updates that fall on one place: for each update, that of the others, as its derivative wants them.

What comes before an update is a running product at its place, of the updates from the first on, and what comes behind
it one from the last on.  No division: a factor may be 0, infinite, or so large that the product is.
"""

from __future__ import annotations

import math

from ..ir.builder import Builder
from ..ir.instruction import Block, Emitter, Op, Region, Value
from ..types import I64, TensorType, scalar
from .arithmetic import Multiply, StrongMultiply
from .indexing import Gather
from .literal import constant
from .movement import Reverse, permuted, reshaped
from .nest import Bounds, Yield
from .structured import For


def other_factors(
    b: Emitter, updates: Value, axis: int, places: Value, count: int, set_row: Op
) -> Value:
    """For each update the product of the others whose place is the same: a number (i64) in 0 … count − 1.

    Shapes: updates (p…, i…, q…) with the axes i from `axis` on, places (i…) → the updates'.  `set_row` writes a row of
    a tensor at a number.
    """
    shape, rank = updates.tensor.shape, places.tensor.rank
    moved = range(axis, axis + rank)
    order = (*moved, *(k for k in range(len(shape)) if k not in moved))
    turned = tuple(shape[k] for k in order)
    length = math.prod(turned[:rank])
    rows = reshaped(b, permuted(b, updates, order), (length, *turned[rank:]))
    flat = reshaped(b, places, (length,))
    before = _before(b, rows, flat, count, set_row)
    turned_rows, turned_places = (b.emit(Reverse((0,)), x) for x in (rows, flat))
    behind = _before(b, turned_rows, turned_places, count, set_row)
    others = b.emit(StrongMultiply(), before, b.emit(Reverse((0,)), behind))
    return permuted(
        b, reshaped(b, others, turned), tuple(order.index(k) for k in range(len(shape)))
    )


def _before(b: Emitter, rows: Value, places: Value, count: int, set_row: Op) -> Value:
    """For each row the product of those before it with its place."""
    type = rows.tensor
    table = constant(b, TensorType((count, *type.shape[1:]), type.dtype), 1)
    inner, take = Builder(Block(name="body")), Gather(0, Bounds.INSIDE)
    index = inner.argument(scalar(I64), "i")
    carried = inner.argument(table.type, "products")
    place, factor = (inner.emit(take, x, index) for x in (places, rows))
    found = inner.emit(take, carried, place)
    product = inner.emit(Multiply(), found, factor)
    inner.emit_many(Yield(), [inner.emit(set_row, product, carried, place), found])
    bounds = [constant(b, scalar(I64), n) for n in (0, type.shape[0])]
    return b.emit_many(For((type,)), [*bounds, table], [Region([inner.block])])[1]
