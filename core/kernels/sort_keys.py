"""The keys that elements are sorted by: integers that are in the order of the elements."""

from __future__ import annotations

from ..ir.instruction import Value
from ..ops.bits import INTEGERS, Reinterpret
from ..ops.bitwise import BitwiseAnd, BitwiseXor, ShiftRight
from ..ops.casting import DataTypeCast
from ..ops.comparison import Equal, GreaterThan, Select
from ..types import BOOL, I8, DType
from .build import KernelBuilder


def key_bits(dtype: DType) -> int:
    """How many bits the keys of elements have."""
    return 1 if dtype is BOOL else dtype.bits


def sort_key(build: KernelBuilder, x: Value, *, descending: bool = False) -> Value:
    """The key of an element, or those of a vector: one for both zeros, and the greatest for all NaNs.

    It is a signed integer of the width of the elements, 0 or 1 in an i8 for truth values.
    """
    dtype = x.tensor.dtype
    if dtype is BOOL:
        key = build.emit(DataTypeCast(I8), x)
    else:
        key = _float_key(build, x) if dtype.is_float else x
    if not descending:
        return key
    flipped = build.constant(key.tensor.dtype, 1 if dtype is BOOL else -1)
    return build.emit(BitwiseXor(), key, flipped)


def unsigned_key(build: KernelBuilder, key: Value, dtype: DType) -> Value:
    """A key of elements of this type whose bits are in order, those of the highest first, as those of words are."""
    if dtype is BOOL:
        return key
    return build.emit(BitwiseXor(), key, build.constant(key.tensor.dtype, -(1 << (dtype.bits - 1))))


def _float_key(build: KernelBuilder, x: Value) -> Value:
    """The bits of a float as an integer; of what is negative, all bits but the sign are turned."""
    dtype = x.tensor.dtype
    integer = INTEGERS[dtype.bits]
    most = build.constant(integer, (1 << (dtype.bits - 1)) - 1)
    zero = build.constant(integer, 0)
    bits = build.emit(Reinterpret(integer), x)
    magnitude = build.emit(BitwiseAnd(), bits, most)
    bits = build.emit(Select(), zero, bits, build.emit(Equal(), magnitude, zero))
    sign = build.emit(ShiftRight(), bits, build.constant(integer, dtype.bits - 1))
    key = build.emit(BitwiseXor(), bits, build.emit(BitwiseAnd(), sign, most))
    exponents = (1 << (dtype.bits - dtype.digits)) - 1
    infinity = build.constant(integer, exponents << (dtype.digits - 1))
    is_nan = build.emit(GreaterThan(), magnitude, infinity)
    return build.emit(Select(), most, key, is_nan)
