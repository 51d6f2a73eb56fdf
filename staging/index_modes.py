"""What happens to indices outside of an axis, by its name in the language: `mode=` of reads, writes and sums.

error    an IndexOutOfRangeError when it runs; NumPy calls it "raise"
clip     the nearest end of the axis
wrap     the remainder by the extent of the axis
drop     writes and sums leave it out
fill     reads give a value of their own there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..core.ir import Builder, Value
from ..core.ops import And, LessThan, LessThanOrEqual, Modulo
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.types import BOOL, scalar
from . import primitive
from .expression import Expression
from .indexing import wrap_negative
from .primitive import shape_error
from .spec import TensorSpec

_BOUNDS: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        "error": Bounds.CHECK,
        "clip": Bounds.CLIP,
        "wrap": Bounds.CHECK,  # the remainder is inside, unless there is nothing
        "drop": Bounds.ZERO,
        "fill": Bounds.ZERO,
    }
)
READS: Final = ("error", "clip", "wrap", "fill")
WRITES: Final = ("error", "clip", "wrap", "drop")


def bounds_of(mode: Any, modes: Sequence[str] = READS) -> Bounds:
    """What an op does about indices outside.  Raises: ShapeError unless the mode is one of `modes`."""
    if mode == "raise":
        mode = "error"
    if mode not in modes:
        *first, last = map(repr, modes)
        raise shape_error(f"mode is {', '.join(first)} or {last}, not {mode!r}")
    return _BOUNDS[mode]


def inside_by(mode: str, index: Expression, x: Expression, axis: int) -> Expression:
    """Indices along an axis of x as the IR takes them: negative ones count from its end, and `wrap` all of them."""
    if mode != "wrap":
        return wrap_negative(index, x, axis)
    # after the first check of what they are
    index = wrap_negative(index, x, axis)
    spec = primitive.tensor_of(index, "an index")

    def build(b: Builder, i: Value, value: Value) -> Value:
        extent = constant(b, scalar(spec.dtype), value.tensor.shape[axis])
        return b.emit(Modulo(), i, extent)

    return primitive.shape_dependent("index", build, (index, x), spec)


def is_inside(index: Expression, x: Expression, axis: int) -> Expression:
    """Which indices along an axis of x are inside."""
    spec = primitive.tensor_of(index, "an index")

    def build(b: Builder, i: Value, value: Value) -> Value:
        zero, extent = (constant(b, scalar(spec.dtype), n) for n in (0, value.tensor.shape[axis]))
        return b.emit(And(), b.emit(LessThanOrEqual(), zero, i), b.emit(LessThan(), i, extent))

    return primitive.shape_dependent("index", build, (index, x), TensorSpec(spec.rank, BOOL))
