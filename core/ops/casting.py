"""Conversion of elements; nothing else in the language changes an element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..types import Array, DType, IntegerRange, KnownRanges, TensorType
from .forms import ADDITION, Linear, Pointwise


@dataclass(frozen=True)
class DataTypeCast(Pointwise, Linear):
    """The elements of x as `dtype`.

    | from    | to      |                                                                    |
    |---------|---------|--------------------------------------------------------------------|
    | float   | float   | the nearest, ties to even; linear, its transpose casts back        |
    | float   | integer | rounded toward zero; the nearest end when out of range; 0 for NaN  |
    | integer | integer | wraps around                                                       |
    | integer | float   | the nearest, ties to even                                          |
    | any     | bool    | x ≠ 0, true for NaN                                                |
    | bool    | any     | 0 or 1                                                             |

    Every conversion rounds once, whatever the two types are: f64 to bf16 is not f64 to f32 to bf16.  What is
    beyond the largest number by half a unit or more becomes an infinity.
    """

    name: ClassVar[str] = "dataTypeCast"
    syntax: ClassVar[str] = "dataTypeCast {x} to {dtype}"
    is_exact: ClassVar[bool] = True  # its code rounds by itself
    cost: ClassVar[int] = ADDITION
    dtype: DType

    def infer(self, x: TensorType) -> TensorType:
        return x.with_dtype(self.dtype)

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        return None if self.dtype.kind == "boolean" else ranges[0]

    def evaluate(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype.kind == "f" and self.dtype.is_integer:
                return _saturated(x, self.dtype.numpy)
            return x != 0 if self.dtype.kind == "boolean" else self.dtype.round(x)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        source = xs[0].tensor.dtype
        return (
            b.emit(DataTypeCast(source), ct) if source.is_float and self.dtype.is_float else None,
        )


def _saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Float64 holds every f16, f32 and f64, and rounds the ends of i64 to ±2⁶³."""
    info, wide = np.iinfo(dtype), x.astype(np.float64)
    below, above = wide <= float(info.min), wide >= float(info.max)
    truncated = np.where(below | above | np.isnan(wide), 0.0, wide).astype(dtype)
    ends = np.where(below, np.asarray(info.min, dtype), np.asarray(info.max, dtype))
    return np.where(below | above, ends, truncated)
