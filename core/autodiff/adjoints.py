"""Accumulates cotangents during a reverse sweep; zeros are symbolic."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from ..ir import Builder, Value
from ..ops.indexing import ScatterAdd
from .rules import add


@dataclass
class Adjoints:
    """Cotangents of the `active` tensors; those of all others are zero and dropped.

    What flows to a value by several ways is added where `builder` stands.  With `keeps_rows`, what is scattered to a
    part of a value is kept apart, until somebody asks for the sum.
    """

    builder: Builder
    active: Set[Value]
    keeps_rows: bool = False
    _found: dict[Value, Value] = field(default_factory=dict[Value, Value])
    _rows: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])

    def __getitem__(self, primal: Value) -> Value | None:
        """What has come together for `primal`; None is a zero."""
        for rows in self.take_rows(primal):
            self._accumulate(primal, rows)
        return self._found.get(primal)

    def take_rows(self, primal: Value) -> list[Value]:
        """What was scattered to parts of `primal` and has been kept apart, from now on by the caller."""
        return self._rows.pop(primal, [])

    def values(self) -> list[Value]:
        """Each value that has a cotangent."""
        return list(dict.fromkeys((*self._found, *self._rows)))

    def add(self, primal: Value, cotangent: Value | None) -> None:
        """Accumulate a contribution."""
        if cotangent is None or primal not in self.active:
            return
        if self.keeps_rows and _is_sparse(cotangent):
            self._rows.setdefault(primal, []).append(cotangent)
        else:
            self._accumulate(primal, cotangent)

    def _accumulate(self, primal: Value, cotangent: Value) -> None:
        total = add(self.builder, self._found.get(primal), cotangent)
        assert total is not None
        self._found[primal] = total


def _is_sparse(cotangent: Value) -> bool:
    """Whether it is zeros to which less is scattered than there is of them."""
    producer = cotangent.producer
    if producer is None or not isinstance(producer.op, ScatterAdd):
        return False
    return producer.operands[0].tensor.size < cotangent.tensor.size
