"""The batched form of one instruction, from what its op says: `batch`, or that it is computed point by point."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Builder, Op, Value
from ..ops.forms import Pointwise
from ..ops.movement import reshaped
from ..ops.reduction import Broadcast


def batch_of(b: Builder, op: Op, xs: Sequence[Value], batched: Sequence[bool]) -> Value | None:
    """The op for all elements of a batch; None if it has to run for one after the other.

    Those of `xs` that are `batched` have a leading axis.
    """
    extent = next(x for x, is_batched in zip(xs, batched, strict=True) if is_batched).tensor.shape[
        0
    ]
    wanted = op.repeated(batched)
    given = [
        repeated(b, x, extent) if want and not is_batched else x
        for x, want, is_batched in zip(xs, wanted, batched, strict=True)
    ]
    if isinstance(op, Pointwise):
        return b.emit(op, *_aligned(b, given, wanted))
    return op.batch(b, given, tuple(wanted))


def repeated(b: Builder, x: Value, extent: int) -> Value:
    """A value that is the same for all elements, once for each."""
    return b.emit(Broadcast((extent, *x.tensor.shape)), x)


def beside(b: Builder, x: Value, rank: int) -> Value:
    """A batched value with axes of 1 behind the leading one, as it broadcasts with batches of tensors of `rank`."""
    extent, *shape = x.tensor.shape
    return reshaped(b, x, (extent, *[1] * (rank - len(shape)), *shape))


def _aligned(b: Builder, xs: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
    rank = max(x.tensor.rank - is_batched for x, is_batched in zip(xs, batched, strict=True))
    return [
        beside(b, x, rank) if is_batched else x for x, is_batched in zip(xs, batched, strict=True)
    ]
