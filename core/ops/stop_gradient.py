"""`stopGradient` and `straightThrough`: values whose derivative differs from that of their formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ShapeError
from ..ir.instruction import Emitter, Value
from ..stage import Stage, Stages
from ..types import Array, Kind, TensorType
from .forms import Elementwise, Partial


class StopGradient(Elementwise):
    """`y = x`, with derivative zero: x counts as a constant.  Gone once the module is differentiated."""

    name: ClassVar[str] = "stopGradient"
    syntax: ClassVar[str] = "stopGradient {x}"
    stages: ClassVar[Stages] = frozenset({Stage.RAW})
    is_view: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = 0
    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer", "boolean")

    def evaluate(self, x: Array) -> Array:
        return x

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (None,)

    def moving(self, operands: Sequence[Value]) -> Sequence[Value]:
        return ()


class StraightThrough(Elementwise):
    """`y = value`, with the derivatives of x, which is the same function by another formula.

    For what has one formula whose values are accurate and another whose derivatives are: 1 − x² is
    (1 − x)(1 + x), but has the derivative −2x, and not −(1 + x) + (1 − x).  Gone once the module is
    differentiated, and then x is not even computed.
    Source: Bengio, Léonard & Courville 2013, "Estimating or propagating gradients" (the name).
    """

    name: ClassVar[str] = "straightThrough"
    syntax: ClassVar[str] = "straightThrough {value} as {x}"
    stages: ClassVar[Stages] = frozenset({Stage.RAW})
    is_view: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = 0
    accepts: ClassVar[tuple[Kind, ...]] = ("float",)
    broadcasts: ClassVar[bool] = False

    def infer(self, *xs: TensorType) -> TensorType:
        result = super().infer(*xs)
        if any(x.shape != result.shape for x in xs):
            value, x = xs
            raise ShapeError(f"cannot differentiate {value.words} as {x.words}: the shapes differ")
        return result

    def evaluate(self, value: Array, x: Array) -> Array:
        return value

    def partials(self, b: Emitter, y: Value, value: Value, x: Value) -> tuple[Partial, ...]:
        return None, 1.0

    def moving(self, operands: Sequence[Value]) -> Sequence[Value]:
        return operands[1:]


IDENTITIES = StopGradient, StraightThrough
"""What is its first operand as soon as nothing is left to differentiate."""
