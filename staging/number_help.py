"""Help texts for a Python number where a typed value is needed: what to write instead."""

from __future__ import annotations

from ..core.errors import DTypeError
from ..core.ops.literal import check_range
from ..core.types import BOOL, F32, F64, I32, I64, DType
from .extents import SymbolicNumber
from .spec import Spec, TensorSpec, dtype_words


def typed_number(number: float | SymbolicNumber, like: Spec | None, *, staged: bool = True) -> str:
    """What to write instead: of the type of `like`, what stands beside it or is wanted, where that is known.

    A staged constant, or a concrete value.
    """
    if isinstance(number, SymbolicNumber):
        if not isinstance(like, TensorSpec):
            return f"`nk.full((), {number}, f32)` has one, or i64"
        return f"`nk.full((), {number}, {dtype_words(like.dtype)})` has one"
    if not isinstance(like, TensorSpec):
        choices = (BOOL,) if isinstance(number, bool) else _CHOICES[isinstance(number, float)]
        return (
            f"say which, {' or '.join(f'`{_value(number, dtype, staged)}`' for dtype in choices)}"
        )
    if not _holds(like.dtype, number):
        return f"a {like.words} is wanted, and no {dtype_words(like.dtype)} is {number!r}"
    if like.rank:
        name, shown = dtype_words(like.dtype), _shown(number, like.dtype)
        made = (
            f"nk.full((...), {shown}, {name})" if staged else f"Tensor{like.rank}D(value, {name})"
        )
        return f"a {like.words} is wanted: `{made}`"
    return f"a {like.words} is wanted: `{_value(number, like.dtype, staged)}`"


_CHOICES = ((I64, I32), (F32, F64))
"""What a number may be meant as, of ints and of floats."""


def _value(number: float, dtype: DType, staged: bool) -> str:
    scalar = f"{dtype_words(dtype)}({_shown(number, dtype)})"
    return f"nk.const({scalar})" if staged else scalar


def _shown(number: float, dtype: DType) -> str:
    if dtype.is_float:
        return repr(float(number))
    return repr(int(number) if dtype.is_numeric else bool(number))


def _holds(dtype: DType, number: float) -> bool:
    if isinstance(number, bool) is dtype.is_numeric:
        return False
    try:
        check_range(dtype, number)
    except DTypeError:
        return False
    return True
