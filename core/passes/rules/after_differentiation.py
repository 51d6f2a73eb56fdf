"""Laws that hold after differentiation: they preserve values, not derivatives."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops.stop_gradient import IDENTITIES
from ..rewrite import Laws


def drop_stop(b: Builder, instruction: Instruction) -> Value | None:
    # there is nothing left to stop, or to differentiate otherwise
    return instruction.operands[0]


FINAL: Laws = dict.fromkeys(IDENTITIES, (drop_stop,))
