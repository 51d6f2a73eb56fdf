"""What the formulas of evaluation and differentiation are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.graph import Emitter, Value
from ..types import Array, scalar
from .literal import constant


def number(b: Emitter, like: Value, n: float) -> Value:
    """The scalar `n` in the element type of `like`; elementwise ops broadcast it."""
    return constant(b, scalar(like.tensor.dtype), n)


def quietly(function: Callable[..., Any], *xs: Array) -> Array:
    """`function(*xs)` as an array, without NumPy's warnings about overflow and invalid values."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*xs))
