"""The bits of elements, read as elements of another type.

Memory is little-endian, as on all machines code is generated for: of an element that is taken apart, the
lowest bits come first.

All bits survive, of NaNs too, but one: f16 and bf16 are computed in wider registers, on the way to which a
machine makes a signaling NaN quiet.  So reading bits as f16 or bf16, or an f16 or bf16 as bits, sets the quiet
bit of every NaN: the first of the mantissa.  Which bits a NaN has that was computed is left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import DTypeError, ShapeError
from ..ir.instruction import Emitter, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import BF16, DTYPES, F16, I8, I16, I32, I64, Array, DType, TensorType
from .arithmetic import FloorDivide, Modulo, Multiply
from .casting import DataTypeCast
from .combinator import Combinator
from .forms import ADDITION, Pointwise, check_kind
from .formulas import number
from .literal import dense
from .movement import reshaped
from .reduction import Reduce

_NARROW = (F16, BF16)
"""Whose conversions make NaNs quiet."""

INTEGERS = {dtype.bits: dtype for dtype in (I8, I16, I32, I64)}
"""The integers by their width."""


@dataclass(frozen=True)
class Reinterpret(Pointwise):
    """The bits of each element of x as a `dtype` of the same width; NaNs of f16 and bf16 become quiet."""

    name: ClassVar[str] = "reinterpret"
    syntax: ClassVar[str] = "reinterpret {x} as {dtype}"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION
    not_differentiable: ClassVar[str] = "the bits of a number are a discrete function of it"
    dtype: DType

    def infer(self, x: TensorType) -> TensorType:
        check_kind("reinterpret", x, ("float", "integer"))
        check_kind("reinterpret", x.with_dtype(self.dtype), ("float", "integer"))
        if x.dtype.bits != self.dtype.bits:
            raise DTypeError(
                f"cannot reinterpret {x.words} as {self.dtype}: elements of {x.dtype.bits} and "
                f"{self.dtype.bits} bits"
            )
        return x.with_dtype(self.dtype)

    def evaluate(self, x: Array) -> Array:
        return _viewed(x, _computed_in(x, self.dtype.bits), self.dtype).reshape(x.shape)


@dataclass(frozen=True)
class BitCast(Pure):
    """The bytes of x, in row-major order, as a tensor of another type that has as many.

    Elements may be wider or narrower than those of x: `<2 x f32>` as `<8 x i8>` or `i64`.  NaNs of f16 and bf16
    become quiet.
    """

    name: ClassVar[str] = "bitCast"
    syntax: ClassVar[str] = "bitCast {x} to {type}"
    not_differentiable: ClassVar[str] = Reinterpret.not_differentiable
    type: TensorType

    def infer(self, x: TensorType) -> TensorType:
        check_kind("bitCast", x, ("float", "integer"))
        check_kind("bitCast", self.type, ("float", "integer"))
        if x.bytes != self.type.bytes:
            raise ShapeError(
                f"cannot bitCast {x.words} to {self.type.words}: {x.bytes} bytes are not "
                f"{self.type.bytes}"
            )
        return self.type

    def evaluate(self, x: Array) -> Array:
        if not x.size:
            return np.zeros(self.type.shape, self.type.dtype.numpy)
        source = _computed_in(x, self.type.bytes * 8 // x.size)
        return _viewed(x, source, self.type.dtype).reshape(self.type.shape)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        (x,) = xs
        return b.emit(BitCast(self.type.with_shape((x.tensor.shape[0], *self.type.shape))), x)

    def nest(self, b: Emitter, x: Value) -> Value:
        source, target = x.tensor.dtype, self.type.dtype
        if source.bits > target.bits:
            x = _taken_apart(b, x, INTEGERS[target.bits])
        elif source.bits < target.bits:
            x = _put_together(b, x, INTEGERS[target.bits])
        if x.tensor.dtype != target:
            x = b.emit(Reinterpret(target), x)
        return reshaped(b, x, self.type.shape)


def _taken_apart(b: Emitter, x: Value, narrow: DType) -> Value:
    """Each element as several integers, the lowest bits first: v ↦ ⌊v / 2ʲᵏ⌋ mod 2ᵏ."""
    count = x.tensor.dtype.bits // narrow.bits
    column = b.emit(DataTypeCast(I64), reshaped(b, _as_integers(b, x), (x.tensor.size, 1)))
    parts = b.emit(FloorDivide(), column, _powers(b, count, narrow.bits))
    return b.emit(DataTypeCast(narrow), parts)


def _put_together(b: Emitter, x: Value, wide: DType) -> Value:
    """Integers made of several elements each: Σⱼ (vⱼ mod 2ᵏ) · 2ʲᵏ."""
    bits = x.tensor.dtype.bits
    count = wide.bits // bits
    rows = reshaped(b, _as_integers(b, x), (x.tensor.size // count, count))
    signed = b.emit(DataTypeCast(I64), rows)
    parts = b.emit(Modulo(), signed, number(b, signed, 1 << bits))
    shifted = b.emit(Multiply(), parts, _powers(b, count, bits))
    return b.emit(DataTypeCast(wide), b.emit(Reduce(Combinator.ADD, (1,)), shifted))


def _as_integers(b: Emitter, x: Value) -> Value:
    dtype = x.tensor.dtype
    return x if dtype.is_integer else b.emit(Reinterpret(INTEGERS[dtype.bits]), x)


def _powers(b: Emitter, count: int, bits: int) -> Value:
    """2⁰, 2ᵏ, 2²ᵏ, …"""
    powers = np.array([1 << (bits * j) for j in range(count)], np.int64)
    return b.emit(dense(TensorType((count,), I64), powers))


def _computed_in(x: Array, bits: int) -> DType:
    """The element type of an array of the evaluator whose elements have `bits` bits in memory."""
    if x.dtype == BF16.numpy and bits == BF16.bits:
        return BF16
    return next(dtype for dtype in DTYPES.values() if dtype.storage == x.dtype)


def _viewed(x: Array, source: DType, target: DType) -> Array:
    stored = np.array(source.store(x), order="C").reshape(-1)
    return target.load(_quieted(_quieted(stored, source).view(target.storage), target))


def _quieted(stored: Array, dtype: DType) -> Array:
    """Memory of f16 or bf16 without signaling NaNs; of other types as it is."""
    if dtype not in _NARROW:
        return stored
    bits, quiet = stored.view(np.uint16), np.uint16(dtype.quiet_bit)
    infinity = np.uint16(0x8000 - 2 * dtype.quiet_bit)
    return np.where((bits & np.uint16(0x7FFF)) > infinity, bits | quiet, bits).view(stored.dtype)
