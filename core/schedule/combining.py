"""How results of nests are joined, and the types of what joins them."""

from __future__ import annotations

from functools import cache

from ..ir import Value
from ..kernels.build import KernelBuilder
from ..kernels.vectorise import COMBINING
from ..ops.combinator import Combinator
from ..types import BOOL, F32, DType, TensorType


def joined(build: KernelBuilder, combinator: Combinator, x: Value, y: Value) -> Value:
    """Append that two numbers are joined."""
    return build.emit_typed(COMBINING[logical(combinator, x.tensor.dtype)], x.tensor, x, y)


def logical(combinator: Combinator, dtype: DType) -> Combinator:
    """What joins bools: their sum and maximum are `or`, their product and minimum `and`."""
    if dtype is not BOOL or combinator.is_logical:
        return combinator
    is_any = combinator in (Combinator.ADD, Combinator.MAX)
    return Combinator.OR if is_any else Combinator.AND


def identity_of(combinator: Combinator | None, dtype: DType) -> object:
    """What an element is before any point is joined with it; zero without a combinator."""
    return 0 if combinator is None else logical(combinator, dtype).identity(dtype)


def added_as(dtype: DType) -> DType:
    """The narrow floats are joined in 32 bits."""
    return F32 if dtype.is_float and dtype.bits < F32.bits else dtype


@cache
def type_of(dtype: DType, lanes: int) -> TensorType:
    """A scalar, or a vector of so many lanes."""
    return TensorType((lanes,) if lanes > 1 else (), dtype)
