"""Helpers for the formulas of evaluation and differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.instruction import Emitter, Value
from ..types import Array, scalar
from .literal import constant


def number(b: Emitter, like: Value, n: float) -> Value:
    """The scalar `n` in the element type of `like`; elementwise ops broadcast it."""
    return constant(b, scalar(like.tensor.dtype), n)


def quietly(function: Callable[..., Any], *xs: Array) -> Array:
    """`function(*xs)` as an array, without NumPy's warnings about overflow and invalid values."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*xs))


def in_double(function: Callable[..., Any], *xs: Array) -> Array:
    """`function(*xs)` computed in f64 and rounded to the element type of `xs`.

    NumPy's functions of f32 and f16 are off by up to three units in the last place where they are vectorised, and
    differ between machines.
    """
    with np.errstate(all="ignore"):
        wide = np.asarray(function(*(x.astype(np.float64) for x in xs)))
        return wide.astype(xs[0].dtype)
