"""What one row of the tables of samples says, and how operands for it are made."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nnkit.core.errors import NNKitError, ShapeError
from nnkit.core.ir import Op
from nnkit.core.ops import Builtin
from nnkit.core.types import BOOL, F32, F64, I8, I32, I64, Array, DType, TensorType

References: TypeAlias = list[tuple[Op, Callable[..., Any]]]
"""Ops and the NumPy functions they must agree with."""

SPECIAL = [0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan]
"""Floats that functions treat in different ways."""


@dataclass(frozen=True)
class Sample:
    """An op on operands of `types`.

    Operands are `values`, or random: floats between `low` and `high`, integers between −5 and 5 or the
    bounds rounded.  `numpy` is what the result must agree with.  `smooth` says that the op has a
    derivative at these operands; `twice`, that it has a second one.
    """

    op: Op
    types: tuple[TensorType, ...]
    values: tuple[Any, ...] | None = None
    low: float = -2.0
    high: float = 2.0
    numpy: Callable[..., Any] | None = None
    smooth: bool = True
    twice: bool = True

    def __str__(self) -> str:
        operands = ",".join(type.words.replace(" ", "") for type in self.types)
        return f"{self.op!r} {operands}" + (f" {self.values}" if self.values else "")

    def operands(self) -> list[Array]:
        """The concrete operands, the same ones every time."""
        if self.values is not None:
            pairs = zip(self.values, self.types, strict=True)
            with np.errstate(over="ignore"):
                return [type.dtype.round(np.asarray(value)) for value, type in pairs]
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        return [self._random(rng, type) for type in self.types]

    def _random(self, rng: np.random.Generator, type: TensorType) -> Array:
        if type.dtype == BOOL:
            return np.asarray(rng.random(type.shape) < 0.5)
        if type.dtype.is_float:
            return type.dtype.round(np.asarray(rng.uniform(self.low, self.high, type.shape)))
        low, high = (self.low, self.high) if (self.low, self.high) != (-2.0, 2.0) else (-5, 5)
        return np.asarray(rng.integers(int(low), int(high) + 1, type.shape), type.dtype.numpy)

    def with_floats(self, dtype: DType) -> Sample:
        """The same with f64 operands of another float type; NumPy references are for f64 alone."""
        types = tuple(t.with_dtype(dtype) if t.dtype == F64 else t for t in self.types)
        op = self.op
        if isinstance(op, Builtin) and op.type.dtype == F64:
            op = replace(op, type=op.type.with_dtype(dtype))
        return replace(self, op=op, types=types, numpy=None)

    @property
    def has_derivative(self) -> bool:
        """Whether the laws of derivatives apply: floats in and out, and no kink here."""
        result = self.op.infer(*self.types)
        return (
            self.smooth
            and not self.op.not_differentiable
            and isinstance(result, TensorType)
            and result.dtype == F64
            and any(type.dtype == F64 for type in self.types)
        )


@dataclass(frozen=True)
class ErrorSample:
    """An op on operands it must refuse, and what its message contains."""

    op: Op
    types: tuple[TensorType, ...]
    message: str
    error: type[NNKitError] = ShapeError

    def __str__(self) -> str:
        return f"{self.op!r} {','.join(type.words.replace(' ', '') for type in self.types)}"


def f64(*shape: int) -> TensorType:
    """A tensor of f64."""
    return TensorType(shape, F64)


def f32(*shape: int) -> TensorType:
    """A tensor of f32."""
    return TensorType(shape, F32)


def i8(*shape: int) -> TensorType:
    """A tensor of i8."""
    return TensorType(shape, I8)


def i32(*shape: int) -> TensorType:
    """A tensor of i32."""
    return TensorType(shape, I32)


def i64(*shape: int) -> TensorType:
    """A tensor of i64."""
    return TensorType(shape, I64)


def boolean(*shape: int) -> TensorType:
    """A tensor of bool."""
    return TensorType(shape, BOOL)


def each(ops: Sequence[Op], *types: TensorType, **options: Any) -> list[Sample]:
    """One sample per op."""
    return [Sample(op, types, **options) for op in ops]
