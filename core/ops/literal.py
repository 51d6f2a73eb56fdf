"""Constants: one op, whose attribute is the exact bytes of the elements."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, ClassVar, cast

import numpy as np

from ..errors import DTypeError
from ..ir.instruction import Emitter, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import Array, DType, IntegerRange, KnownRanges, TensorType


@dataclass(frozen=True)
class Literal(Pure):
    """A constant tensor: `data` holds one element (a splat) or all of them in row-major order.

    Bytes make equality exact: 0.0 and −0.0 differ, and a NaN equals itself.
    """

    name: ClassVar[str] = "literal"
    syntax: ClassVar[str] = "literal {data}: {type}"
    stages: ClassVar[Stages] = frozenset(Stage)
    is_constant: ClassVar[bool] = True
    type: TensorType
    data: bytes

    def infer(self) -> TensorType:
        return self.type

    def evaluate(self) -> Array:
        return np.broadcast_to(self.elements(), self.type.shape)

    @property
    def is_splat(self) -> bool:
        """Whether every element is the same one (a tensor of one element is)."""
        return len(self.data) == self.type.dtype.bytes

    def elements(self) -> Array:
        """The values to compute with: rank 0 for a splat, else of the literal's shape."""
        dtype = self.type.dtype
        stored = np.frombuffer(self.data, dtype.storage)
        return dtype.load(stored).reshape(() if self.is_splat else self.type.shape)

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        if self.type.dtype.is_float or not self.type.size:
            return None
        elements = self.elements()
        return int(elements.min()), int(elements.max())

    def splat_value(self) -> Any:
        """The Python number every element equals; None when they differ."""
        return self.elements().item() if self.is_splat else None


def literal_of(value: Value) -> Literal | None:
    """The literal that `value` is known to be."""
    op = value.producer.op if value.producer is not None else None
    # every law asks this of most operands, and the first half is quicker
    return op if op.__class__ is Literal and isinstance(op, Literal) else None


def splat_literal(value: Value) -> Literal | None:
    """The literal that `value` is known to be, if all its elements are one."""
    literal = literal_of(value)
    return literal if literal is not None and literal.is_splat else None


def number_of(value: Value) -> Any:
    """The Python number that every element of `value` is known to be; None where that is not known."""
    return number_in(value.producer.op) if value.producer is not None else None


def number_in(op: Op | None) -> Any:
    """The Python number that every element is which `op` computes; None where that is not known."""
    # every law asks this of most operands, and the first half is quicker
    return op.splat_value() if op.__class__ is Literal and isinstance(op, Literal) else None


def splat(type: TensorType, number: Any) -> Literal:
    """Every element `number`, rounded to the element type; zero for no element, as the text has it.

    Raises: DTypeError for an integer out of range.
    """
    check_range(type.dtype, number)
    known = type.dtype.nearest(number if type.size else 0)
    return Literal(type, type.dtype.store(known).tobytes())


def dense(type: TensorType, values: Array) -> Literal:
    """The elements of `values` (which are converted to the element type); a splat if all are equal."""
    if type.size == 0:
        return splat(type, 0)
    return packed(type, np.broadcast_to(type.dtype.store(np.asarray(values)), type.shape))


def packed(type: TensorType, stored: Array) -> Literal:
    """Elements as they lie in memory, in row-major order; a splat if all have the same bits."""
    data = stored.tobytes()
    one = data[: type.dtype.bytes]
    return Literal(type, one if one * type.size == data else data)


def constant(b: Emitter, type: TensorType, number: Any) -> Value:
    """Emit a splat."""
    return b.emit(splat(type, number))


def check_range(dtype: DType, number: Any) -> None:
    """Raises: DTypeError when the Python number has no counterpart in `dtype`."""
    if dtype.kind == "boolean" and not isinstance(number, bool | np.bool_ | int):
        raise DTypeError(f"{number!r} is not a bool")
    if not dtype.is_integer:
        return
    is_whole = isinstance(number, int | np.integer)
    if isinstance(number, float | np.floating | Decimal):
        value = cast("float", number)
        is_whole = math.isfinite(value) and value == int(value)
    if not is_whole:
        raise DTypeError(f"{number!s} is not an integer: cast explicitly to use it as {dtype}")
    info = np.iinfo(dtype.numpy)
    if not info.min <= int(cast("int", number)) <= info.max:
        raise DTypeError(f"{number} is out of range for {dtype}: {info.min} to {info.max}")
