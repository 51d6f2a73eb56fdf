"""Accumulates cotangents during a reverse sweep; zeros are symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from ..ir import Builder, Value
from .rules import add


@dataclass
class Adjoints:
    """Cotangents of the `active` tensors; those of all others are zero and dropped.

    What flows to a value by several ways is added where `builder` stands.
    """

    builder: Builder
    active: Set[Value]
    _found: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def __getitem__(self, primal: Value) -> Value | None:
        """What has come together for `primal`; None is a zero."""
        return self._found.get(primal)

    def items(self) -> Iterable[tuple[Value, Value]]:
        """Each value that has a cotangent, with it, in the order they first got one."""
        return self._found.items()

    def add(self, primal: Value, cotangent: Value | None) -> None:
        """Accumulate a contribution."""
        if cotangent is None or primal not in self.active:
            return
        total = add(self.builder, self._found.get(primal), cotangent)
        assert total is not None
        self._found[primal] = total
