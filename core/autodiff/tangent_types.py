"""The types of tangents: that of a float tensor is its own, that of an enum carries tangents in the same cases.

That of a pointer is its own, too: it leads to tangents (`core.autodiff.shadows`).  What an enum carries has no shadow.
Cotangents have the types of tangents, and tangents of tangents, too: these types are their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..analysis.pointer_bases import leads_to_memory
from ..ir import Builder, Module, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import constant
from ..ops.reference import Undefined
from ..types import EnumType, TensorType, Type, parts_of
from .activity import has_tangent
from .tapes import fresh_enum


@dataclass
class TangentTypes:
    """The types of tangents in `module`; those of enums are remembered."""

    module: Module
    _enums: dict[str, EnumType] = field(default_factory=dict[str, EnumType])

    def of(self, type: Type) -> Type | None:
        """The type of the tangent of a value of `type`; None if it has none."""
        return type if leads_to_memory(type) else self._of_value(type)

    def _of_value(self, type: Type) -> Type | None:
        if not has_tangent(type):
            return None
        if isinstance(type, EnumType):
            if type.name not in self._enums:
                self._define(type)
            return self._enums[type.name]
        return type

    def known(self, type: Type) -> Type:
        """The same of a type that has tangents."""
        tangent = self.of(type)
        assert tangent is not None
        return tangent

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
        tangent = self.known(type)
        if isinstance(tangent, TensorType):
            return constant(b, tangent, 0)
        return b.emit(Undefined(tangent))

    def _define(self, type: EnumType) -> None:
        """Make the types of the tangents of an enum and of those that it holds known."""
        new: dict[str, EnumType] = {}
        pending: list[Type] = [type]
        while pending:
            current = pending.pop()
            if isinstance(current, EnumType) and current.name not in {*new, *self._enums}:
                new[current.name] = current
                pending += filter(has_tangent, parts_of(current))
        for enum in new.values():
            tangent = fresh_enum(self.module, f"{enum.name}_tangent")
            self._enums[enum.name] = self._enums[tangent.name] = tangent
        for enum in new.values():
            cases = [(case, tuple(self.carried(types))) for case, types in enum.cases]
            self._enums[enum.name].define(cases)
