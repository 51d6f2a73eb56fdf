"""The associative operations that reductions, scans and loop nests combine with."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from ..types import DType


class Combinator(enum.Enum):
    """An associative operation `(T, T) -> T` with an identity.

    min and max propagate NaN, as NumPy's do.
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
    def ufunc(self) -> np.ufunc:
        """The NumPy function of two arrays."""
        return _UFUNCS[self]

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


_UFUNCS: dict[Combinator, np.ufunc] = {
    Combinator.ADD: np.add,
    Combinator.MULTIPLY: np.multiply,
    Combinator.MIN: np.minimum,
    Combinator.MAX: np.maximum,
    Combinator.AND: np.logical_and,
    Combinator.OR: np.logical_or,
}
