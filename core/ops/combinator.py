"""The associative operations that reductions, scans and loop nests combine with."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..types import Array, DType
from .extremes import MAXIMUM, MINIMUM, Extremum


class Combinator(enum.Enum):
    """An associative operation `(T, T) -> T` with an identity.

    min and max of floats are those of `extremes`: NaN if there is one, and −0 < +0.
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
        return np.asarray(function.reduce(x, axis=axes, dtype=None if self.is_logical else x.dtype))

    def accumulate(self, x: Array, axis: int) -> Array:
        """x₀, x₀ ∘ x₁, … along an axis."""
        function = _FUNCTIONS[self]
        if isinstance(function, Extremum):
            return function.accumulate(x, axis)
        return np.asarray(function.accumulate(x, axis, dtype=x.dtype))

    def join(self, x: Array, where: tuple[Array, ...], values: Array) -> None:
        """Combine elements of x, in place, with the values that fall on them, one after the other."""
        _FUNCTIONS[self].at(x, where, values)


_FUNCTIONS: Final[Mapping[Combinator, np.ufunc | Extremum]] = {
    Combinator.ADD: np.add,
    Combinator.MULTIPLY: np.multiply,
    Combinator.MIN: MINIMUM,
    Combinator.MAX: MAXIMUM,
    Combinator.AND: np.logical_and,
    Combinator.OR: np.logical_or,
}
