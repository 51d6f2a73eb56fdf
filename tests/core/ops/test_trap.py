"""The instruction that stops a program."""

from __future__ import annotations

from nnkit.core.ir import Effect
from nnkit.core.ops import Trap

from .program_samples import Refused, Typed

SAMPLES = [Typed(Trap(), (), ())]
ERRORS: list[Refused] = []


def test_it_is_kept_and_ends_no_block() -> None:
    assert Trap.effect is Effect.TRAP and not Trap.is_terminator
