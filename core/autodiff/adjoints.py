"""Accumulates cotangents during a reverse sweep; zeros are symbolic.

What is scattered to a part of a value, the adjoint of reading that part, is added to the part of a total that is there
already, where there is one: the total is dead afterwards, so compiled code does that in place, and a row costs a row.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import field

from ..ir import Builder, Value
from ..lazy_dataclass import dataclass
from ..ops.scatter import added_part
from ..ops.slicing import PaddedPart, padded_part
from .cotangent_arithmetic import CotangentArithmetic
from .slice_adjoints import add_slices


@dataclass
class Adjoints:
    """Cotangents of the `active` values; those of all others are zero and dropped.

    What flows to a value by several ways is added, by `arithmetic`, where `builder` stands; what flows to that which an
    enum carries makes one enum.  With `keeps_rows`, what is scattered to a part of a value is kept apart, until
    somebody asks for the sum.  `start` gives the total of a value from around a body that its parts are added to, if
    there is one.
    """

    builder: Builder
    active: Set[Value]
    arithmetic: CotangentArithmetic
    keeps_rows: bool = False
    start: Callable[[Value], Value | None] | None = None
    _found: dict[Value, Value] = field(default_factory=dict[Value, Value])
    _rows: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])
    _slices: dict[Value, list[PaddedPart]] = field(default_factory=dict[Value, list[PaddedPart]])
    """What has come from slices of a value, to be put together once it is all there."""
    _carried: dict[Value, dict[tuple[str, int], Value]] = field(
        default_factory=dict[Value, "dict[tuple[str, int], Value]"]
    )
    running: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Totals from around the body, with the parts that have been added to them."""

    def __getitem__(self, primal: Value) -> Value | None:
        """What has come together for `primal`, running totals aside; None is a zero."""
        for rows in self.take_rows(primal):
            self._accumulate(primal, rows)
        slices = self._slices.pop(primal, None)
        if slices:
            self._accumulate(primal, add_slices(self.builder, slices, primal.tensor.shape))
        if primal in self._carried:
            parts = self._carried.pop(primal)
            for ct in self.arithmetic.of_enum(self.builder, primal, parts):
                self._accumulate(primal, ct)
        return self._found.get(primal)

    def take_rows(self, primal: Value) -> list[Value]:
        """What was scattered to parts of `primal` and has been kept apart, from now on by the caller."""
        return self._rows.pop(primal, [])

    def values(self) -> list[Value]:
        """Each value that has a cotangent of its own, running totals aside."""
        return list(dict.fromkeys((*self._found, *self._rows, *self._slices, *self._carried)))

    def add(self, primal: Value, cotangent: Value | None) -> None:
        """Accumulate a contribution."""
        if cotangent is None or primal not in self.active:
            return
        part = added_part(cotangent)
        if self.keeps_rows and part is not None and part.indices:
            self._rows.setdefault(primal, []).append(cotangent)
            return
        piece = padded_part(cotangent) if part is None or self.start is None else None
        if piece is not None:
            self._slices.setdefault(primal, []).append(piece)
            return
        total = self.total(primal) if self.start is not None and part is not None else None
        if part is None or total is None:
            self._accumulate(primal, cotangent)
        else:
            self.set_total(primal, part.add_to(self.builder, total))

    def add_carried(self, enum: Value, case: str, index: int, cotangent: Value | None) -> None:
        """Accumulate a contribution to what `enum` carries at `index` if it is of `case`."""
        if cotangent is None or enum not in self.active:
            return
        parts = self._carried.setdefault(enum, {})
        before = parts.get((case, index))
        parts[case, index] = cotangent if before is None else self._sum(before, cotangent)

    def total(self, primal: Value) -> Value | None:
        """What parts of the cotangent of `primal` are added to: a total from around, or what has come together."""
        if primal not in self.running:
            given = self.start(primal) if self.start is not None else None
            if given is None:
                return self._found.get(primal)
            self.running[primal] = given
        return self.running[primal]

    def set_total(self, primal: Value, total: Value) -> None:
        """Go on with `total`, which has what was there."""
        where = self.running if primal in self.running else self._found
        where[primal] = total

    def _accumulate(self, primal: Value, cotangent: Value) -> None:
        before = self._found.get(primal)
        part = added_part(before) if before is not None and self.start is not None else None
        if part is not None:
            self._found[primal] = part.add_to(self.builder, cotangent)
            return
        self._found[primal] = cotangent if before is None else self._sum(before, cotangent)

    def _sum(self, one: Value, other: Value) -> Value:
        return self.arithmetic.add(self.builder, one, other)
