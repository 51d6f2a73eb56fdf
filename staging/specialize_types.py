"""The IR types of staged values at given shapes, with a name for each type of a struct."""

from __future__ import annotations

from dataclasses import field

from ..core.errors import InternalError
from ..core.lazy_dataclass import dataclass
from ..core.types import StructType, TensorType, TupleType, Type
from .names import identifier
from .spec import Spec, StructSpec, TensorSpec, TupleSpec


@dataclass
class TypesOfSpecs:
    """The types in one module: of one class with fields of the same types, one struct type."""

    _structs: dict[tuple[type, tuple[Type, ...]], StructType] = field(
        default_factory=dict[tuple[type, tuple[Type, ...]], StructType]
    )

    def of(self, spec: Spec, shapes: list[tuple[int, ...]]) -> Type:
        """The IR type of a value whose tensors have `shapes` (taken from the front, left to right)."""
        match spec:
            case TensorSpec(dtype=dtype):
                return TensorType(shapes.pop(0), dtype)
            case TupleSpec(elements):
                return TupleType(tuple(self.of(element, shapes) for element in elements))
            case StructSpec(fields=fields):
                return self.aggregate(
                    spec, tuple(self.of(element, shapes) for _, element in fields)
                )
            case _:
                raise InternalError(f"{spec} has no type in the IR")

    def aggregate(
        self, spec: StructSpec | TupleSpec, types: tuple[Type, ...]
    ) -> StructType | TupleType:
        """That of a struct or tuple of parts of these types."""
        if isinstance(spec, TupleSpec):
            return TupleType(types)
        known = self._structs.get((spec.cls, types))
        if known is None:
            named = [(field, type) for (field, _), type in zip(spec.fields, types, strict=True)]
            known = StructType(self._fresh_name(identifier(spec.cls.__name__)), tuple(named))
            self._structs[spec.cls, types] = known
        return known

    def _fresh_name(self, wanted: str) -> str:
        taken = {struct.name for struct in self._structs.values()}
        name, number = wanted, 0
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name
