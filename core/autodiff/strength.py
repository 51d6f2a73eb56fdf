"""Which zeros are strong: nothing flows there, so no factor, not even inf or nan, may wake them.

The transpose of `select(x > 0, √x, 0)` writes zeros where x ≤ 0; the rule of √ then multiplies them by
1/(2√0) = inf.  A cotangent is *strong* when it may hold such zeros:

1. It becomes strong where zeros are filled in: see `fills_zeros`.
2. It stays so through elementwise ops, movements and the transpose of a sum, and when strong ones are
   added.
3. It ceases where elements are mixed, by a contraction or by the sum over an axis along which an operand
   was broadcast, and when one that is not strong is added.  So networks, softmax and cross-entropy pay
   nothing; what is lost is a scalar broadcast to elements of which a condition chooses none.

Only products with a strong factor are guarded; see `core.autodiff.rules`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Op, Value
from ..ops.arithmetic import Maximum, Minimum, Relu
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.forms import Bilinear, Elementwise
from ..ops.indexing import Gather
from ..ops.reduction import Broadcast, Reduce
from ..ops.scan import Scan
from ..ops.slicing import Slice


def fills_zeros(op: Op) -> bool:
    """Whether the transpose of `op` writes zeros where `op` passed nothing on."""
    match op:
        case Select() | Maximum() | Minimum() | Relu() | Slice() | Gather():
            return True
        case Reduce(combinator=combinator) | Scan(combinator=combinator):
            return combinator in (Combinator.MIN, Combinator.MAX)
        case _:
            return False


def is_strong_forward(op: Op, incoming: Sequence[bool], given: Sequence[object | None]) -> bool:
    """The same for tangents: whether the zeros in the result's tangent are strong.

    `incoming` and `given` say of each operand whether its tangent is strong, and whether it has one.
    Choosing between a tangent and nothing fills zeros in; so do an element that is not the greater one.
    """
    moving = [
        strong for strong, tangent in zip(incoming, given, strict=True) if tangent is not None
    ]
    match op:
        case Select():
            return bool(moving) and (len(moving) < 2 or all(moving))
        case Maximum() | Minimum() | Relu():
            return len(moving) == 1
        case Bilinear() | Reduce() | Scan():
            return False
        case _:
            return bool(moving) and all(moving)


def is_strong(op: Op, incoming: bool, operand: Value, result: Value) -> bool:
    """Whether what `op` hands on to `operand` is strong, given whether what it gets for `result` is."""
    if isinstance(op, Bilinear):
        return False
    was_broadcast = isinstance(op, Elementwise | Broadcast) and operand.type != result.type
    return (incoming or fills_zeros(op)) and (
        not was_broadcast or operand.tensor.size == result.tensor.size
    )
