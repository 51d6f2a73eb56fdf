"""Random bits of keys, and numbers between 0 and 1 made of them: what samples are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core import ops
from .core.types import DType
from .elementwise import floor_divide
from .functions import iota
from .staging import primitive
from .staging.extents import Size, product
from .staging.primitive import dtype_error
from .staging.rep import Rep
from .staging.static import core_dtype
from .tensors import DTYPES, AnyTensor, i64


def checked_key(key: object) -> None:
    """Raises: DTypeError for what is no tensor, as the shape given first."""
    if not isinstance(key, Rep | AnyTensor | np.ndarray | np.generic):
        raise dtype_error(
            f"random numbers are made from a key, and {key!r} is none",
            "make one, `key = nk.random.key(0)`, and give it: `nk.random.normal(key, (3,))`",
        )


def counters(shape: Sequence[Size]) -> Rep:
    """0, 1, 2, … in row-major order."""
    return iota((product(shape),), i64).reshape(*shape)


def bits_of(key: Rep, counters: Rep) -> Rep:
    """64 random bits for every counter."""
    return Rep(primitive.elementwise(ops.Threefry(), key.expression, counters.expression))


def unit_of(bits: Rep, dtype: DType) -> Rep:
    """The leading bits as a number in [0, 1), every value of which is exact."""
    number = floor_divide(bits, 1 << (64 - dtype.digits)) + (1 << (dtype.digits - 1))
    return number.cast(DTYPES[dtype]) * 2.0**-dtype.digits


def float_type(dtype: Any) -> DType:
    """The element type of numbers that are floats.  Raises: DTypeError for another one."""
    core = core_dtype(dtype)
    if not core.is_float:
        raise dtype_error(f"random numbers are floats, not {core}")
    return core
