"""Functions of floats that compute f16 and bf16 in f32 and round once, as those of `core.ops.composed` do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from .core.types import F32, DType
from .reps import as_rep
from .staging import primitive
from .staging.primitive import dtype_error
from .staging.rep import Rep


@overload
def in_f32(name: str, compute: Callable[[Rep], Rep], x: Any, /) -> Rep: ...
@overload
def in_f32(name: str, compute: Callable[[Rep, Rep], Rep], x: Any, y: Any, /) -> Rep: ...
@overload
def in_f32(name: str, compute: Callable[[Rep, Rep, Rep], Rep], *operands: Any) -> Rep: ...
def in_f32(name: str, compute: Callable[..., Rep], *operands: Any) -> Rep:
    """`compute` of tensors of one float type, in f32 where that has 16 bits.

    Raises: DTypeError, which names the function, when they are no floats or of several types.
    """
    reps = [as_rep(x) for x in operands]
    dtype = float_of(name, *reps)
    if dtype.bits != 16:
        return compute(*reps)
    return compute(*(rep.cast(F32) for rep in reps)).cast(dtype)


def float_of(name: str, *reps: Rep) -> DType:
    """The float type that all of the tensors have."""
    first, *others = (primitive.tensor_of(rep.expression, name) for rep in reps)
    if not first.dtype.is_float:
        raise dtype_error(
            f"{name} takes float elements, not {first.words}", "cast it, `x.cast(dtype)`"
        )
    for other in others:
        if other.dtype is not first.dtype:
            raise dtype_error(
                f"{name} takes tensors of one element type, not {first.words} and {other.words}",
                "cast one of them, `x.cast(dtype)`",
            )
    return first.dtype
