"""The associative operations that reductions, scans and loop nests combine with."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..types import Array, DType
from .extrema import MAXIMUM, MINIMUM, Extremum


class Combinator(enum.Enum):
    """An associative operation `(T, T) -> T` with an identity.

    min and max of floats are those of `extrema`: NaN if there is one, and −0 < +0.
    """

    ADD = "add"
    MULTIPLY = "multiply"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"

    def __str__(self) -> str:
        return self.value

    @property
    def noun(self) -> str:
        """What a reduction by it is called in messages."""
        return _NOUNS[self]

    @property
    def is_logical(self) -> bool:
        return self in (Combinator.AND, Combinator.OR)

    def identity(self, dtype: DType) -> Any:
        """The value that changes nothing: 0, 1, the largest, the smallest, true, false."""
        match self:
            case Combinator.ADD:
                return 0
            case Combinator.MULTIPLY:
                return 1
            case Combinator.MIN:
                return np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).max)
            case Combinator.MAX:
                return -np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)
            case Combinator.AND:
                return True
            case Combinator.OR:
                return False

    def reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        """x₀ ∘ x₁ ∘ … over `axes`, computed in the elements of x; the identity over none of them."""
        function = _FUNCTIONS[self]
        if isinstance(function, Extremum):
            return function.reduce(x, axes)
        if x.dtype.kind == "f" and self is Combinator.ADD:
            return _sum(x, axes)
        if x.dtype == np.float16:
            return self.reduce(x.astype(np.float32), axes).astype(x.dtype)
        return np.asarray(function.reduce(x, axis=axes, dtype=None if self.is_logical else x.dtype))

    def accumulate(self, x: Array, axis: int) -> Array:
        """x₀, x₀ ∘ x₁, … along an axis."""
        function = _FUNCTIONS[self]
        if isinstance(function, Extremum):
            return function.accumulate(x, axis)
        if x.dtype.kind == "f" and self is Combinator.ADD:
            return _running_sum(x, axis)
        if x.dtype == np.float16:
            return self.accumulate(x.astype(np.float32), axis).astype(x.dtype)
        return np.asarray(function.accumulate(x, axis, dtype=x.dtype))

    def join(self, x: Array, where: tuple[Array, ...], values: Array) -> None:
        """Combine elements of x, in place, with the values that fall on them, one after the other."""
        function = _FUNCTIONS[self]
        if x.dtype.kind == "f" and self is Combinator.ADD:
            wide = x.astype(np.float64)
            if x.itemsize == 8:
                where, values = _paired(x.shape, where, values)
            np.add.at(wide, where, values.astype(np.float64))
            x[...] = wide
        else:
            function.at(x, where, values)


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    """Of narrower floats in f64, of f64 in pairs: NumPy adds one by one along any axis but the last."""
    if x.itemsize < 8:
        return np.asarray(np.add.reduce(x, axis=axes, dtype=np.float64)).astype(x.dtype)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    count = math.prod(x.shape[axis] for axis in axes)
    rows = np.transpose(x, (*axes, *kept)).reshape(count, *(x.shape[axis] for axis in kept))
    while len(rows) > 1:
        half = len(rows) // 2
        pairs = rows[:half] + rows[half : 2 * half]
        rows = np.concatenate([pairs, rows[2 * half :]]) if len(rows) % 2 else pairs
    return np.asarray(np.add.reduce(rows, axis=0))


def _paired(
    shape: tuple[int, ...], where: tuple[Array, ...], values: Array
) -> tuple[tuple[Array, ...], Array]:
    """Indices that differ, and the sums of what falls on each: neighbours are added, then neighbours of these."""
    if not where:
        return where, values
    flat = np.ravel_multi_index(where, shape[: len(where)])
    order = np.argsort(flat, kind="stable")
    keys, values = flat[order], values[order]
    while np.any(keys[1:] == keys[:-1]):
        numbers = np.arange(len(keys))
        begins = np.concatenate([[True], keys[1:] != keys[:-1]])
        is_second = (numbers - np.maximum.accumulate(np.where(begins, numbers, 0))) % 2 == 1
        second = np.flatnonzero(is_second)
        values[second - 1] += values[second]
        keys, values = keys[~is_second], values[~is_second]
    return np.unravel_index(keys, shape[: len(where)]), values


def _running_sum(x: Array, axis: int) -> Array:
    """Of narrower floats in f64, of f64 by doubling: after step k, yᵢ is the sum of the last 2ᵏ elements up to i.

    Source: Hillis & Steele 1986, "Data parallel algorithms".
    """
    if x.itemsize < 8:
        return np.asarray(np.add.accumulate(x, axis, dtype=np.float64)).astype(x.dtype)
    y = np.moveaxis(x, axis, 0)
    step = 1
    while step < len(y):
        y = np.concatenate([y[:step], y[:-step] + y[step:]])
        step *= 2
    return np.moveaxis(y, 0, axis)


_FUNCTIONS: Final[Mapping[Combinator, np.ufunc | Extremum]] = {
    Combinator.ADD: np.add,
    Combinator.MULTIPLY: np.multiply,
    Combinator.MIN: MINIMUM,
    Combinator.MAX: MAXIMUM,
    Combinator.AND: np.logical_and,
    Combinator.OR: np.logical_or,
}

_NOUNS: Final[Mapping[Combinator, str]] = {
    Combinator.ADD: "sum",
    Combinator.MULTIPLY: "product",
    Combinator.MIN: "minimum",
    Combinator.MAX: "maximum",
    Combinator.AND: "all",
    Combinator.OR: "any",
}
