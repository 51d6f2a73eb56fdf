"""Register tiles: the rewrites that make a product fast."""

from __future__ import annotations

from ..ir import Instruction


def schedule_product(kernel: Instruction, target: object) -> None:
    """Nothing yet."""
