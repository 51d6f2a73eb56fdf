"""Tapes: what a loop of any number of iterations, or a recursion, saves for the way back.

    enum $tape { ?empty, ?record(f64, <3 x f64>, $tape) }

A tape is a value, an enum that holds itself: a record has the residuals of one iteration, and the tape of those before.
It grows by one record in constant time, is read from its end, and can be read as often as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..ir import Module
from ..lazy_dataclass import dataclass
from ..types import EnumType, Type

EMPTY = "empty"
RECORD = "record"


@dataclass
class Tapes:
    """The types of the tapes of `module`, by the types of what a record has."""

    module: Module
    _known: dict[tuple[Type, ...], EnumType] = field(
        default_factory=dict[tuple[Type, ...], EnumType]
    )

    def of(self, types: Sequence[Type]) -> EnumType:
        """The type of tapes with records of these types."""
        key = tuple(types)
        if key not in self._known:
            tape = self._known[key] = fresh_enum(self.module, "tape")
            tape.define([(EMPTY, ()), (RECORD, (*key, tape))])
        return self._known[key]


def fresh_enum(module: Module, wanted: str) -> EnumType:
    """A new enum of `module`, called `wanted` or so, whose cases are still to be defined."""
    taken = {*module.structs, *module.enums, *module.aliases}
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    enum = module.enums[name] = EnumType(name)
    return enum
