"""Symbolic counts, polynomials in unknown trip counts, and costs made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest

from ..lazy_dataclass import dataclass


@dataclass(frozen=True)
class SymbolicCount:
    """A polynomial in the unknown trip count `n`: the sum of terms[k] · nᵏ, as `12 + 8n + 3n²`."""

    terms: tuple[int, ...] = ()

    def __add__(self, other: SymbolicCount) -> SymbolicCount:
        return SymbolicCount(tuple(a + b for a, b in self._beside(other)))

    def or_more(self, other: SymbolicCount) -> SymbolicCount:
        """The termwise maximum."""
        return SymbolicCount(tuple(max(pair) for pair in self._beside(other)))

    def times(self, factor: int) -> SymbolicCount:
        return SymbolicCount(tuple(term * factor for term in self.terms))

    def repeated(self, depth: int = 1) -> SymbolicCount:
        """So much in each of `n` rounds, nested `depth` times."""
        return SymbolicCount((*(0,) * depth, *self.terms)) if any(self.terms) else SymbolicCount()

    def _beside(self, other: SymbolicCount) -> Iterator[tuple[int, int]]:
        return zip_longest(self.terms, other.terms, fillvalue=0)

    def __str__(self) -> str:
        terms = [_written(term, k) for k, term in enumerate(self.terms) if term]
        return " + ".join(terms) or "0"


@dataclass(frozen=True)
class Cost:
    """What running something once costs; `unknown` are calls whose cost is not in it."""

    flops: SymbolicCount = SymbolicCount()
    bytes: SymbolicCount = SymbolicCount()
    unknown: frozenset[str] = frozenset()

    def __add__(self, other: Cost) -> Cost:
        unknown = self.unknown | other.unknown
        return Cost(self.flops + other.flops, self.bytes + other.bytes, unknown)

    def or_more(self, other: Cost) -> Cost:
        flops, moved = self.flops.or_more(other.flops), self.bytes.or_more(other.bytes)
        return Cost(flops, moved, self.unknown | other.unknown)

    def times(self, factor: int) -> Cost:
        return Cost(self.flops.times(factor), self.bytes.times(factor), self.unknown)

    def repeated(self, depth: int = 1) -> Cost:
        return Cost(self.flops.repeated(depth), self.bytes.repeated(depth), self.unknown)


def _written(term: int, k: int) -> str:
    """`term · nᵏ`; of what has very many digits, the order of magnitude."""
    number = (
        f"{term:,}" if term < _LONGEST else f"10{_raised(round(term.bit_length() * math.log10(2)))}"
    )
    if k == 0:
        return number
    return f"{'' if term == 1 else number}n{'' if k == 1 else _raised(k)}"


def _raised(number: int) -> str:
    return str(number).translate(_RAISED)


_LONGEST = 10**24
"""What does not fit a column of the table is shown as a power: any other length would do."""

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
