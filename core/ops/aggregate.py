"""Tuples, structs and arrays, and calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import DTypeError, ShapeError
from ..ir.builder import Builder
from ..ir.effect import Effect
from ..ir.instruction import Emitter, Instruction, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import (
    ArrayType,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    results_of,
    tensor_bytes,
    written,
)


@dataclass(frozen=True)
class Aggregate(Pure):
    """A tuple, struct or array made of its elements; printed as a literal, `(%a: T, %b: U): (T, U)`."""

    name: ClassVar[str] = "aggregate"
    syntax: ClassVar[str] = "literal {elements*}: {type}"
    takes_any: ClassVar[bool] = True
    type: TupleType | StructType | ArrayType

    def infer(self, *elements: Type) -> Type:
        if isinstance(self.type, ArrayType):
            self._check_array(self.type, elements)
            return self.type
        expected = elements_of(self.type)
        if elements != expected:
            raise DTypeError(
                f"{self.type} is made of ({listed(expected or ())}), not ({listed(elements)})"
            )
        return self.type

    def _check_array(self, type: ArrayType, elements: tuple[Type, ...]) -> None:
        if len(elements) != type.count:
            raise ShapeError(f"{type} is made of {type.count} elements, not {len(elements)}")
        for element in elements:
            if element != type.element:
                raise DTypeError(f"{type} is made of {type.element}, not {element}")


@dataclass(frozen=True)
class ElementAccess(Pure):
    """An op on an element of an aggregate, its last operand."""

    takes_any: ClassVar[bool] = True
    keys: tuple[int | str, ...]

    def positions(self, x: Type) -> tuple[int, ...]:
        """The keys as positions, for an aggregate of type `x`.  Raises: ShapeError for a wrong key."""
        return positions_of(x, self.keys)

    def stages_of(self, instruction: Instruction) -> Stages:
        return _written_out(self.keys, instruction.operands[-1].type) or self.stages

    def bytes_moved(self, instruction: Instruction) -> int:
        """Of an element of an aggregate nothing is; of a tensor, rows are."""
        is_tensor = isinstance(instruction.operands[-1].type, TensorType)
        return 2 * tensor_bytes(instruction.result.type) if is_tensor else 0


@dataclass(frozen=True)
class Extract(ElementAccess):
    """An element: `extract 0, #w from %p: …` follows the keys inwards.

    Keys are fields of structs, and numbers of elements of tuples and arrays and of rows of tensors.
    """

    name: ClassVar[str] = "extract"
    syntax: ClassVar[str] = "extract {keys} from {x}"

    def infer(self, x: Type) -> Type:
        return type_at(x, self.keys)


@dataclass(frozen=True)
class Insert(ElementAccess):
    """The same aggregate with another element: `insert %e: T to %p: U at 0, #w`.  Keys as of `extract`."""

    name: ClassVar[str] = "insert"
    syntax: ClassVar[str] = "insert {element} to {x} at {keys}"

    def infer(self, element: Type, x: Type) -> Type:
        place = type_at(x, self.keys)
        if element != place:
            raise DTypeError(
                f"{', '.join(map(_shown, self.keys))} of {x} is a {place}, not a {element}"
            )
        return x


@dataclass(frozen=True)
class Apply(Op):
    """A call of a function of the module, with a result for each of the function's."""

    name: ClassVar[str] = "apply"
    syntax: ClassVar[str] = "apply {callee}({arguments*}): {type}"
    stages: ClassVar[Stages] = frozenset(Stage)
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.CALL
    callee: str
    type: FunctionType

    def infer(self, *arguments: Type) -> tuple[Type, ...]:
        if arguments != self.type.parameters:
            raise ShapeError(
                f"{written('@', self.callee)} takes ({listed(self.type.parameters)}), not ({listed(arguments)})"
            )
        return self.type.results

    @property
    def called(self) -> str:
        return self.callee


@dataclass(frozen=True)
class ApplyValue(Op):
    """A call of a function that is a value: `apply %f(%x, %y): (T, U) -> R`.

    The first operand is the function, the others are its arguments.
    """

    name: ClassVar[str] = "applyValue"
    syntax: ClassVar[str] = "apply {function}({arguments*}): {type}"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.CALL
    type: FunctionType

    def infer(self, function: Type, *arguments: Type) -> tuple[Type, ...]:
        if not isinstance(function, FunctionType):
            raise DTypeError(f"apply calls a function, not a {function}")
        if function != self.type:
            raise DTypeError(f"a {function} is called as {self.type}")
        if arguments != self.type.parameters:
            raise ShapeError(
                f"a {self.type} takes ({listed(self.type.parameters)}), not ({listed(arguments)})"
            )
        return self.type.results


def packed(b: Emitter, type: Type, results: Sequence[Value]) -> Value:
    """What a function that returns `type` has given, as one value."""
    if results_of(type) == (type,):
        return results[0]
    assert isinstance(type, TupleType)
    return b.emit(Aggregate(type), *results)


def unpacked(b: Builder, value: Value) -> Sequence[Value]:
    """What the `return` that comes next has for one value.

    What was put together last, for the return alone, need not be.
    """
    results = results_of(value.type)
    if results == (value.type,):
        return (value,)
    last = b.block.instructions[-1] if b.block.instructions else None
    if last is not None and last is value.producer and isinstance(last.op, Aggregate):
        operands = last.operands
        b.block.instructions.pop().erase()
        return operands
    return [b.emit(Extract((position,)), value) for position in range(len(results))]


def _written_out(keys: Sequence[int | str], x: Type) -> Stages:
    """The stages before `expand`, if keys lead into a tensor, for which it makes loops; else none."""
    return frozenset({Stage.RAW} if isinstance(type_at(x, keys[:-1]), TensorType) else ())


def element_type(x: Type, key: int | str) -> Type:
    """The type of one element of `x`.  Raises: ShapeError when there is none at `key`."""
    return _element(x, key)[1]


def type_at(x: Type, keys: Sequence[int | str]) -> Type:
    """The type of what lies in `x` where the keys lead.  Raises: ShapeError for a wrong key."""
    for key in keys:
        x = element_type(x, key)
    return x


def positions_of(x: Type, keys: Sequence[int | str]) -> tuple[int, ...]:
    """Keys into `x` as positions.  Raises: ShapeError for a wrong key."""
    found: list[int] = []
    for key in keys:
        position, x = _element(x, key)
        found.append(position)
    return tuple(found)


def _shown(key: int | str) -> str:
    """A key as it stands in the text."""
    return written("#", key) if isinstance(key, str) else str(key)


def listed(types: Sequence[Type]) -> str:
    """Types between commas."""
    return ", ".join(map(str, types))


def _element(x: Type, key: int | str) -> tuple[int, Type]:
    match x:
        case StructType(fields=fields):
            if isinstance(key, str) and key in x.positions:
                position = x.positions[key]
                return position, fields[position][1]
            kind = "field" if isinstance(key, str) else "element"
            raise ShapeError(f"{x} has no {kind} {_shown(key)}{_fields_of(x)}")
        case TupleType() | ArrayType() | TensorType() if isinstance(key, str):
            raise ShapeError(f"{x} has no field {_shown(key)}")
        case TupleType(elements) if isinstance(key, int) and 0 <= key < len(elements):
            return key, elements[key]
        case ArrayType(count, element) if isinstance(key, int) and 0 <= key < count:
            return key, element
        case TensorType(shape=(extent, *row)) if isinstance(key, int) and 0 <= key < extent:
            return key, x.with_shape(row)
        case TupleType() | ArrayType() | TensorType(shape=(_, *_)):
            raise ShapeError(f"{x} has no element {key}: {_counted(x)}")
        case _:
            raise ShapeError(f"{x} has no element {_shown(key)}: it is not an aggregate")


def _fields_of(x: StructType) -> str:
    return f": it has {', '.join(written('#', name) for name, _ in x.fields) or 'no fields'}"


def _counted(x: TupleType | ArrayType | TensorType) -> str:
    if isinstance(x, TensorType):
        count = x.shape[0]
    else:
        count = x.count if isinstance(x, ArrayType) else len(x.elements)
    return f"it has {count}" if count else "it is empty"
