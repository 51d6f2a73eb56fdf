"""An identity that stops derivatives."""

from __future__ import annotations

from typing import ClassVar

from ..ir.graph import Emitter, Value
from ..types import Array, Kind
from .forms import Elementwise, Partial


class StopGradient(Elementwise):
    """`y = x`, with derivative zero: x counts as a constant.  Gone once the module is differentiated."""

    name: ClassVar[str] = "stopGradient"
    syntax: ClassVar[str] = "stopGradient {x}"
    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer", "boolean")

    def evaluate(self, x: Array) -> Array:
        return x

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (None,)
