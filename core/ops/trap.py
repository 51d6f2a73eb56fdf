"""`trap`: aborts the program."""

from __future__ import annotations

from typing import ClassVar

from ..ir.effect import Effect
from ..ir.instruction import Op
from ..types import Type


class Trap(Op):
    """Stops the program with an error.  It is no terminator: what follows it is never reached."""

    name: ClassVar[str] = "trap"
    syntax: ClassVar[str] = "trap"
    effect: ClassVar[Effect] = Effect.TRAP

    def infer(self) -> tuple[Type, ...]:
        return ()
