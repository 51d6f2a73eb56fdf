"""The cotangents gathered during a reverse sweep; a value that has none costs nothing."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from ..ir import Builder, Value
from .rules import add


@dataclass(frozen=True)
class Cotangent:
    """The derivative of what was asked for by one tensor, and whether its zeros are strong."""

    value: Value
    strong: bool = False


@dataclass
class Adjoints:
    """Cotangents of the `active` tensors; those of all others are zero and dropped.

    What flows to a value by several ways is added where `builder` stands.
    """

    builder: Builder
    active: Set[Value]
    _found: dict[Value, Cotangent] = field(default_factory=dict[Value, Cotangent])

    def __getitem__(self, primal: Value) -> Cotangent | None:
        """What has come together for `primal`; None is a zero."""
        return self._found.get(primal)

    def add(self, primal: Value, cotangent: Value | None, strong: bool) -> None:
        """One more contribution.  The sum is strong only if all of it is."""
        if cotangent is None or primal not in self.active:
            return
        known = self._found.get(primal)
        total = add(self.builder, known.value if known else None, cotangent)
        assert total is not None
        self._found[primal] = Cotangent(total, strong and (known is None or known.strong))
