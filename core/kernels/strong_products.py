"""Which comparisons with zero the products of derivatives need.

u ⊗ v is 0 where a factor is, also if the other one is infinite or NaN.  It is plain u · v + 0 unless u is zero where v
is not finite, or the other way round.  Often that cannot be: x is no factor of ∞ where x is zero if the other is a
polynomial of x, and 1 − tanh²(x) is no more than 1.

A chain g₁ = g₀ ⊗ f₁, g₂ = g₁ ⊗ f₂ can do with one comparison, of g₀: where that is not zero but g₁ is, f₁ is finite;
if f₂ is finite whenever f₁ is, no comparison of g₁ is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ir import Instruction, Value
from ..ops.arithmetic import Multiply, Negate, StrongMultiply
from ..ops.literal import number_of
from .float_ranges import FloatRanges


@dataclass(frozen=True)
class StrongProduct:
    """u ⊗ v as u · v + 0, where `guard` is not zero, or everywhere; as 0 elsewhere."""

    guard: Value | None


@dataclass(frozen=True)
class _Link:
    """A product g ⊗ f of which g alone is compared with zero, or a value that stands for it."""

    g: Value
    f: Value


@dataclass
class StrongProducts:
    """The products of a body; asked in the order of its instructions."""

    _links: dict[Value, _Link] = field(default_factory=dict[Value, _Link])

    def examine(self, instruction: Instruction) -> StrongProduct | None:
        """How a product can be computed; None where both factors have to be compared."""
        u, v = instruction.operands
        compares_u = not number_of(u) and not _is_finite(v, {u: 0.0})
        compares_v = not number_of(v) and not _is_finite(u, {v: 0.0})
        if compares_u and compares_v:
            return None
        if not compares_u and not compares_v:
            return StrongProduct(None)
        link = _Link(u, v) if compares_u else _Link(v, u)
        self._links[instruction.result] = link
        return StrongProduct(self._guard(link))

    def _guard(self, link: _Link) -> Value:
        """The first factor of the chain in front of `link` that does, so that others take it as well."""
        found, cases = link.g, list[Sequence[Value]]()
        for value, finite in self._chain(link.g):
            if finite:
                cases.append(finite)
            if all(_is_finite(link.f, dict.fromkeys(case, _most(link.f))) for case in cases):
                found = value
        return found

    def _chain(self, g: Value) -> Iterator[tuple[Value, Sequence[Value]]]:
        """Values that are zero only where `g` is, too; what is finite where `g` is zero, but they are not."""
        while True:
            finite: Sequence[Value] = ()
            link = self._links.get(g)
            if link is not None:
                g, finite = link.g, (link.g, link.f)
            elif isinstance(g.op, Negate) and g.producer is not None:
                (g,) = g.producer.operands
            elif (scaled := _scaled(g)) is not None:
                g, factor = scaled
                if factor < 1:  # the product may be too small for a number
                    link = self._links.get(g)
                    finite = (g,) if link is None else (link.g, link.f)
            else:
                return
            yield g, finite


def _scaled(value: Value) -> tuple[Value, float] | None:
    """The operand of a product with a number that is neither 0 nor infinite, and its magnitude."""
    if isinstance(value.op, Multiply) and value.producer is not None:
        u, v = value.producer.operands
        for x, other in ((u, v), (v, u)):
            number = number_of(other)
            if number and math.isfinite(number):
                return x, abs(number)
    return None


def _most(value: Value) -> float:
    """The largest number of an element type."""
    return value.tensor.dtype.normal_range[1]


def _is_finite(value: Value, bounds: dict[Value, float]) -> bool:
    """Whether a value is, if others are as small as that."""
    return FloatRanges(bounds).of(value).is_finite


def is_strong_product(instruction: Instruction) -> bool:
    """Whether an instruction is a product of derivatives, of f32 or f64."""
    return isinstance(instruction.op, StrongMultiply) and instruction.result.tensor.dtype.name in (
        "f32",
        "f64",
    )
