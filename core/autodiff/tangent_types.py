"""The types of tangents: that of a float tensor is its own, that of an enum carries tangents in the same cases.

That of a pointer is its own, too: it leads to tangents (`core.autodiff.shadows`).  What an enum carries has no shadow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..analysis.pointer_bases import leads_to_memory
from ..ir import Builder, Module, Value
from ..ops.literal import constant
from ..ops.reference import Undefined
from ..types import EnumType, TensorType, Type, parts_of
from .tapes import fresh_enum


@dataclass
class TangentTypes:
    """The types of tangents in `module`; those of enums are remembered."""

    module: Module
    _enums: dict[str, EnumType | None] = field(default_factory=dict[str, "EnumType | None"])

    def of(self, type: Type) -> Type | None:
        """The type of the tangent of a value of `type`; None if it has none."""
        return type if leads_to_memory(type) else self._of_value(type)

    def _of_value(self, type: Type) -> Type | None:
        if isinstance(type, TensorType):
            return type if type.dtype.is_float else None
        if not isinstance(type, EnumType):
            return None
        if type.name not in self._enums:
            self._define(type)
        return self._enums[type.name]

    def of_all(self, types: Sequence[Type]) -> list[Type]:
        """The types of the tangents of parameters or results, without those that have none."""
        return [tangent for type in types if (tangent := self.of(type)) is not None]

    def carried(self, types: Sequence[Type]) -> list[Type]:
        """The types of the tangents of what a case carries, without those that have none."""
        return [tangent for type in types if (tangent := self._of_value(type)) is not None]

    def zero(self, b: Builder, type: Type) -> Value:
        """The tangent of a value of `type` that does not move.

        Of an enum that is any value without numbers: what it does not carry is read as zero.
        """
        tangent = self.of(type)
        assert tangent is not None
        if isinstance(tangent, TensorType):
            return constant(b, tangent, 0)
        return b.emit(Undefined(tangent))

    def _define(self, type: EnumType) -> None:
        """Make the types of the tangents of an enum and of those that it holds known."""
        enums: dict[str, EnumType] = {}
        pending: list[Type] = [type]
        has_float = False
        while pending:
            current = pending.pop()
            if isinstance(current, EnumType) and current.name not in enums:
                enums[current.name] = current
                pending += parts_of(current)
            elif isinstance(current, TensorType):
                has_float = has_float or current.dtype.is_float
        if not has_float:
            self._enums[type.name] = None
            return
        new = [enum for name, enum in enums.items() if name not in self._enums]
        for enum in new:
            self._enums[enum.name] = fresh_enum(self.module, f"{enum.name}_tangent")
        for enum in new:
            tangent = self._enums[enum.name]
            assert tangent is not None
            tangent.define([(case, tuple(self.carried(types))) for case, types in enum.cases])
