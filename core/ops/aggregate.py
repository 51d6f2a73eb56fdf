"""Tuples and structs, and calls, whose several results are a tuple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import DTypeError, ShapeError
from ..ir.graph import Effect, Op
from ..types import FunctionType, StructType, TupleType, Type, elements_of


@dataclass(frozen=True)
class Aggregate(Op):
    """A tuple or struct made of its elements; printed as a literal, `(%a: T, %b: U): (T, U)`."""

    name: ClassVar[str] = "aggregate"
    syntax: ClassVar[str] = "literal {elements*}: {type}"
    takes_any: ClassVar[bool] = True
    type: TupleType | StructType

    def infer(self, *elements: Type) -> Type:
        expected = elements_of(self.type)
        if elements != expected:
            raise DTypeError(
                f"{self.type} is made of ({', '.join(map(str, expected or ()))}), "
                f"not ({', '.join(map(str, elements))})"
            )
        return self.type


@dataclass(frozen=True)
class Extract(Op):
    """An element of an aggregate: `extract 0, #w from %p: …` follows the keys inwards."""

    name: ClassVar[str] = "extract"
    syntax: ClassVar[str] = "extract {keys} from {x}"
    takes_any: ClassVar[bool] = True
    keys: tuple[int | str, ...]

    def infer(self, x: Type) -> Type:
        for position in self.positions(x):
            x = (elements_of(x) or ())[position]
        return x

    def positions(self, x: Type) -> tuple[int, ...]:
        """The keys as positions, for an aggregate of type `x`.  Raises: ShapeError for a wrong key."""
        found: list[int] = []
        for key in self.keys:
            elements = elements_of(x)
            if elements is None:
                raise ShapeError(f"cannot extract {_written(key)} from {x}: it is not an aggregate")
            if isinstance(key, str):
                if not isinstance(x, StructType) or key not in dict(x.fields):
                    raise ShapeError(f"{x} has no field {_written(key)}")
                found.append(x.index(key))
            elif isinstance(x, StructType) or not 0 <= key < len(elements):
                raise ShapeError(f"{x} has no element {key}")
            else:
                found.append(key)
            x = elements[found[-1]]
        return tuple(found)


@dataclass(frozen=True)
class Apply(Op):
    """A call of another function of the module; several results come back as one tuple."""

    name: ClassVar[str] = "apply"
    syntax: ClassVar[str] = "apply {callee}({arguments*}): {type}"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.CALL
    callee: str
    type: FunctionType

    def infer(self, *arguments: Type) -> Type:
        if arguments != self.type.parameters:
            raise ShapeError(
                f"@{self.callee} takes ({', '.join(map(str, self.type.parameters))}), "
                f"not ({', '.join(map(str, arguments))})"
            )
        return self.type.result


def _written(key: int | str) -> str:
    return f"#{key}" if isinstance(key, str) else str(key)
