"""What has no batched form runs for one element of the batch after the other.

%y = for 0 upto 8 stacking <8 x T> {
'body(%i):
    %one = gather %x at %i along 0
    %z = apply @f(%one, %w)
    yield %z
}
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Block, Builder, Function, Op, Region, Value
from ..ops.aggregate import Apply
from ..ops.indexing import Gather
from ..ops.literal import constant
from ..ops.nest import Bounds, Yield
from ..ops.structured import For
from ..ops.terminators import Return
from ..types import I64, TensorType, scalar


def one_by_one(
    b: Builder, op: Op, xs: Sequence[Value], batched: Sequence[bool], extent: int
) -> Sequence[Value]:
    """The results of `op`, which are tensors, for one element after the other, stacked."""
    inner = Builder(Block(name="body"), b.location)
    index = inner.argument(scalar(I64), "index")
    given = [
        inner.emit(Gather(0, Bounds.INSIDE), x, index) if is_batched else x
        for x, is_batched in zip(xs, batched, strict=True)
    ]
    found = inner.emit_many(op, given)
    inner.emit_many(Yield(), found)
    stacked = tuple(x.tensor.with_shape((extent, *x.tensor.shape)) for x in found)
    bounds = [constant(b, scalar(I64), bound) for bound in (0, extent)]
    return b.emit_many(For(stacked), bounds, [Region([inner.block])])


def looped_body(primal: Function, batched: Sequence[bool], extent: int) -> Region:
    """The body of a batched function that calls `primal` once for each element."""
    b = Builder(Block(name="entry"), primal.location)
    arguments: list[Value] = []
    names = [x.name for x in primal.parameters] if primal.body else []
    for k, (type, is_batched) in enumerate(zip(primal.type.parameters, batched, strict=True)):
        if is_batched:
            assert isinstance(type, TensorType)
            type = type.with_shape((extent, *type.shape))
        arguments.append(b.argument(type, names[k] if names else None))
    results = one_by_one(b, Apply(primal.name, primal.type), arguments, batched, extent)
    b.emit_many(Return(), results)
    return Region([b.block])
