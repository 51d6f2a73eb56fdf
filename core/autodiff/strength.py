"""Which zeros are strong: nothing flows there, so no factor, not even inf or nan, may wake them.

The transpose of `select(x > 0, √x, 0)` writes zeros where x ≤ 0; the rule of √ then multiplies them by
1/(2√0) = inf.  A cotangent is *strong* when it may hold such zeros:

1. It becomes strong where zeros are filled in: see `fills_zeros`.
2. It stays so through elementwise ops, movements and sums, and when strong ones are added.
3. It ceases where a contraction mixes it with other elements, or when one that is not strong is added.

Only products with a strong factor are guarded; see `core.autodiff.rules`.
"""

from __future__ import annotations

from ..ir import Op
from ..ops.arithmetic import Maximum, Minimum
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.forms import Bilinear
from ..ops.indexing import Gather
from ..ops.reduction import Reduce
from ..ops.scan import Scan
from ..ops.slicing import Slice


def fills_zeros(op: Op) -> bool:
    """Whether the transpose of `op` writes zeros where `op` passed nothing on."""
    match op:
        case Select() | Maximum() | Minimum() | Slice() | Gather():
            return True
        case Reduce(combinator=combinator) | Scan(combinator=combinator):
            return combinator in (Combinator.MIN, Combinator.MAX)
        case _:
            return False


def is_strong(op: Op, incoming: bool) -> bool:
    """Whether the cotangents that `op` hands on are strong, given whether those of its results are."""
    return not isinstance(op, Bilinear) and (incoming or fills_zeros(op))
