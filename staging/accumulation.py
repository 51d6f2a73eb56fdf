"""The type that sums are accumulated in: operands are cast to it, and what comes of them is cast back, rounded once.

As casts, not as attributes of ops: derivatives then pass through them, and are accumulated in the same type, forward
and backward; so are batches.  Casts of operands are fused into the loops of a sum (docs/decisions/0046).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.types import DType
from .expression import Expression
from .primitive import cast, dtype_error, tensor_of
from .spec import dtype_words
from .static import core_dtype


def accumulated(
    what: str, accumulate: Any, compute: Callable[..., Expression], *operands: Expression
) -> Expression:
    """`compute(*operands)`, whose sums are accumulated in the type `accumulate`, None for the usual one.

    Raises: DTypeError unless it is a wider float type than that of the operands, or the same.
    """
    if accumulate is None:
        return compute(*operands)
    wide = core_dtype(accumulate)
    dtypes = [tensor_of(operand, what).dtype for operand in operands]
    if len(set(dtypes)) > 1:
        return compute(*operands)  # which refuses operands of two types, and says so
    _check(what, dtypes[0], wide)
    if dtypes[0] is wide:
        return compute(*operands)
    return cast(compute(*(cast(operand, wide) for operand in operands)), dtypes[0])


def _check(what: str, dtype: DType, wide: DType) -> None:
    if not dtype.is_float:
        raise dtype_error(
            f"{what} of {dtype_words(dtype)} takes no accumulate=: sums of integers are exact or wrap around",
            "cast the tensor, `x.cast(i64)`",
        )
    if not wide.is_float or (wide is not dtype and wide.bytes <= dtype.bytes):
        raise dtype_error(
            f"{what} of {dtype_words(dtype)} cannot accumulate in {dtype_words(wide)}, which is no wider float type",
            "accumulate in f32 or f64",
        )
