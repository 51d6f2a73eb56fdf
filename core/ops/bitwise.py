"""Operations on the bits of integers in two's complement: and, or, exclusive or, shifts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import InternalError
from ..ir.instruction import Emitter, Value
from ..types import Array, Kind
from .forms import ADDITION, Elementwise, Partial
from .formulas import quietly


class Bitwise(Elementwise):
    """A function of the bits of two integers."""

    accepts: ClassVar[tuple[Kind, ...]] = ("integer",)
    verb: ClassVar[str] = "combine"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION
    not_differentiable: ClassVar[str] = "integers have no derivative"

    def partials(self, b: Emitter, y: Value, *xs: Any, **_: Any) -> tuple[Partial, ...]:
        raise InternalError(f"{self.name} has no derivative: {self.not_differentiable}")


class BitwiseAnd(Bitwise):
    """The bits that both have."""

    name: ClassVar[str] = "bitwiseAnd"
    syntax: ClassVar[str] = "bitwiseAnd {u}, {v}"
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.bitwise_and, u, v)


class BitwiseOr(Bitwise):
    """The bits that either has."""

    name: ClassVar[str] = "bitwiseOr"
    syntax: ClassVar[str] = "bitwiseOr {u}, {v}"
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.bitwise_or, u, v)


class BitwiseXor(Bitwise):
    """The bits that one has and the other has not."""

    name: ClassVar[str] = "bitwiseXor"
    syntax: ClassVar[str] = "bitwiseXor {u}, {v}"
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.bitwise_xor, u, v)


class ShiftLeft(Bitwise):
    """u · 2ᵛ, wrapped around; 0 for a v that is negative or at least the number of bits."""

    name: ClassVar[str] = "shiftLeft"
    verb: ClassVar[str] = "shift"
    syntax: ClassVar[str] = "shiftLeft {u}, {v}"

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.left_shift, u, v)


class ShiftRight(Bitwise):
    """⌊u / 2ᵛ⌋; 0, or −1 of a negative u, for a v that is negative or at least the number of bits."""

    name: ClassVar[str] = "shiftRight"
    verb: ClassVar[str] = "shift"
    syntax: ClassVar[str] = "shiftRight {u}, {v}"

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.right_shift, u, v)
