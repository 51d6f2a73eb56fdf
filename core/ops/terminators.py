"""Instructions that leave a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.graph import Op
from ..types import Type


@dataclass(frozen=True)
class Return(Op):
    """Leaves the function with one value, or with none when the result is void."""

    name: ClassVar[str] = "return"
    syntax: ClassVar[str] = "return {value*}"
    is_terminator: ClassVar[bool] = True

    def infer(self, *value: Type) -> tuple[Type, ...]:
        return ()
