"""Running reductions along an axis, and their derivatives without quadratic work.

Both derivatives of a running product or maximum are a linear recurrence hᵢ = aᵢ · hᵢ₋₁ + gᵢ:
- product yᵢ = yᵢ₋₁ · xᵢ: the tangent has a = x and g = yᵢ₋₁ · ẋᵢ, so a zero among the x does no harm;
- maximum: a = 1 while the maximum stays, else 0, and g = ẋᵢ where xᵢ attains it, over the number of ties;
  a maximum that is NaN has the derivative NaN by all elements so far, which is a running sum.
The recurrence is solved by doubling (⌈log₂ n⌉ steps over whole tensors), from ops that are
differentiable themselves.  Source: Blelloch 1990, "Prefix sums and their applications", §1.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InternalError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import EARLY, Stage, Stages
from ..types import DTYPES, Array, Kind, TensorType
from .arithmetic import Add, Divide, Maximum, StrongMultiply
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, Select
from .forms import check_axis, check_kind
from .formulas import number
from .slicing import Pad, Slice

_STEP_NANOSECONDS = 0.6
"""Of an element, which waits for the one before it: cumsum of 10⁶ f32 takes 590 µs (docs/decisions/0019)."""


@dataclass(frozen=True)
class Scan(Pure):
    """yᵢ = x₀ ∘ x₁ ∘ … ∘ xᵢ along an axis, of the shape of x.

    `exclusive` leaves xᵢ out, so that y₀ is the identity; `reverse` runs from the end.
    A minimum or maximum splits its derivative evenly among the elements that attain it; it is NaN where that is.
    """

    name: ClassVar[str] = "scan"
    syntax: ClassVar[str] = (
        "scan {x} by {combinator} along {axis} [reverse {reverse}] [exclusive {exclusive}]"
    )
    stages: ClassVar[Stages] = EARLY | {Stage.COMPUTE}
    combinator: Combinator
    axis: int
    reverse: bool = False
    exclusive: bool = False

    def infer(self, x: TensorType) -> TensorType:
        check_axis("scan", self.axis, x)
        check_combinator(self.combinator, x, "running ")
        return x

    def flops(self, instruction: Instruction) -> int:
        return instruction.result.tensor.size

    def nanoseconds(self, instruction: Instruction) -> float:
        return _STEP_NANOSECONDS * instruction.result.tensor.size

    def evaluate(self, x: Array) -> Array:
        ordered = np.flip(x, self.axis) if self.reverse else x
        with np.errstate(all="ignore"):
            scanned = self._accumulated(ordered)
        return np.flip(scanned, self.axis) if self.reverse else scanned

    def _accumulated(self, x: Array) -> Array:
        if x.size == 0:
            return x
        inclusive = self.combinator.accumulate(x, self.axis)
        if not self.exclusive:
            return inclusive
        shifted = np.roll(inclusive, 1, self.axis)
        np.moveaxis(shifted, self.axis, 0)[0] = identity_of(self.combinator, x.dtype)
        return shifted

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (dx,) = ys, xs, dxs
        if dx is None:
            return (None,)
        if self.combinator is Combinator.ADD:
            return (b.emit(self, dx),)
        line = _Line(b, self.axis, self.reverse)
        if self.combinator is Combinator.MULTIPLY:
            dy = line.recurrence(x, b.emit(StrongMultiply(), self._before(b, y, x), dx))
        else:
            share = self._shares(b, y, x, line)
            dy = line.recurrence(share.stays, b.emit(StrongMultiply(), share.attains, dx))
            missing = b.emit(StrongMultiply(), b.emit(self._sum(), dx), share.missing)
            dy = b.emit(Add(), b.emit(StrongMultiply(), dy, share.part), missing)
        return (line.delayed(dy, 1) if self.exclusive else dy,)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (ct,) = ys, xs, cts
        if ct is None:
            return (None,)
        if self.combinator is Combinator.ADD:
            return (b.emit(replace(self, reverse=not self.reverse), ct),)
        line, back = _Line(b, self.axis, self.reverse), _Line(b, self.axis, not self.reverse)
        if self.exclusive:
            ct = back.delayed(ct, 1)
        if self.combinator is Combinator.MULTIPLY:
            found = back.recurrence(back.delayed(x, 1), ct)
            return (b.emit(StrongMultiply(), self._before(b, y, x), found),)
        share = self._shares(b, y, x, line)
        parts = b.emit(StrongMultiply(), ct, share.part)
        found = back.recurrence(back.delayed(share.stays, 1), parts)
        missing = b.emit(
            replace(self._sum(), reverse=not self.reverse),
            b.emit(StrongMultiply(), ct, share.missing),
        )
        return (b.emit(Add(), b.emit(StrongMultiply(), found, share.attains), missing),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(replace(self, axis=self.axis + 1), *xs)

    def _sum(self) -> Scan:
        return Scan(Combinator.ADD, self.axis, self.reverse)

    def _before(self, b: Emitter, y: Value, x: Value) -> Value:
        """The product of all elements before each."""
        return y if self.exclusive else b.emit(replace(self, exclusive=True), x)

    def _shares(self, b: Emitter, y: Value, x: Value, line: _Line) -> _Shares:
        if self.combinator not in (Combinator.MIN, Combinator.MAX):
            raise InternalError(f"a scan by {self.combinator} has no derivative")
        inclusive = b.emit(replace(self, exclusive=False), x) if self.exclusive else y
        to_number = DataTypeCast(x.tensor.dtype)
        stays = b.emit(to_number, b.emit(Equal(), inclusive, line.delayed(inclusive, 1)))
        attains = b.emit(to_number, b.emit(Equal(), inclusive, x))
        ties = b.emit(Maximum(), line.recurrence(stays, attains), number(b, x, 1))
        part = b.emit(Divide(), number(b, x, 1), ties)
        return _Shares(stays, attains, part, nan_where_nan(b, inclusive, 0))


class _Shares(NamedTuple):
    """∂yᵢ/∂xⱼ of a running extremum, not exclusive, is `part`ᵢ if xⱼ attains yᵢ, plus `missing`ᵢ: NaN if yᵢ is.

    `stays` is 1 where yᵢ is yᵢ₋₁, `attains` where it is xᵢ, both else 0.
    """

    stays: Value
    attains: Value
    part: Value
    missing: Value


@dataclass(frozen=True)
class _Line:
    """Emits what runs along one axis, from the start or in reverse."""

    b: Emitter
    axis: int
    reverse: bool

    def delayed(self, x: Value, by: int) -> Value:
        """x moved `by` places downstream, zeros coming in."""
        type = x.tensor
        none, extent = (0,) * type.rank, type.shape[self.axis]
        by = min(by, extent)
        moved = tuple(by if axis == self.axis else 0 for axis in range(type.rank))
        rest = tuple(extent - by if axis == self.axis else n for axis, n in enumerate(type.shape))
        zero = number(self.b, x, 0)
        if self.reverse:
            return self.b.emit(Pad(none, moved), self.b.emit(Slice(moved, type.shape), x), zero)
        return self.b.emit(Pad(moved, none), self.b.emit(Slice(none, rest), x), zero)

    def recurrence(self, a: Value, g: Value) -> Value:
        """hᵢ = aᵢ · hᵢ₋₁ + gᵢ, by doubling: after step k, hᵢ holds the terms from i − 2ᵏ + 1 on."""
        step, extent = 1, g.tensor.shape[self.axis]
        while step < extent:
            g = self.b.emit(Add(), g, self.b.emit(StrongMultiply(), a, self.delayed(g, step)))
            if 2 * step < extent:
                a = self.b.emit(StrongMultiply(), a, self.delayed(a, step))
            step *= 2
        return g


def identity_of(combinator: Combinator, dtype: np.dtype[Any]) -> Array:
    """The identity among the values that NumPy computes in `dtype`."""
    known = next(known for known in DTYPES.values() if known.numpy == dtype)
    return np.asarray(combinator.identity(known), dtype)


def nan_where_nan(b: Emitter, y: Value, n: float) -> Value:
    """The number `n`, and NaN where y is: a constant to derivatives, for what depends on y being a number."""
    return b.emit(Select(), number(b, y, n), number(b, y, math.nan), b.emit(Equal(), y, y))


def check_combinator(combinator: Combinator, x: TensorType, adjective: str = "") -> None:
    """Raises: DTypeError when the elements of `x` cannot be combined so."""
    accepts: tuple[Kind, ...] = ("boolean",) if combinator.is_logical else ("float", "integer")
    check_kind(adjective + combinator.noun, x, accepts)
