"""References to functions and global variables, null pointers, and undefined values."""

from __future__ import annotations

from typing import ClassVar, cast

from ..errors import DTypeError
from ..ir.instruction import Pure, Value
from ..lazy_dataclass import dataclass
from ..types import BoxType, FunctionType, PointerType, StackType, Type, written


@dataclass(frozen=True)
class Reference(Pure):
    """A function as a value, or the pointer to a global variable: `literal @f: (f32) -> f32`."""

    name: ClassVar[str] = "reference"
    syntax: ClassVar[str] = "literal {symbol}: {type}"
    is_constant: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    symbol: str
    type: FunctionType | PointerType

    def infer(self) -> Type:
        type = cast(Type, self.type)  # whatever whoever built the op gave it
        if not isinstance(type, FunctionType | PointerType):
            raise DTypeError(
                f"{written('@', self.symbol)} is a function or the pointer to a variable, not a {self.type}"
            )
        return self.type

    @property
    def referred(self) -> str:
        return self.symbol


@dataclass(frozen=True)
class Null(Pure):
    """The pointer, box, stack or function that is none: `literal null: *f32`.  Using it stops the program."""

    name: ClassVar[str] = "null"
    syntax: ClassVar[str] = "literal null: {type}"
    is_constant: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    type: Type

    def infer(self) -> Type:
        if not isinstance(self.type, PointerType | BoxType | StackType | FunctionType):
            raise DTypeError(f"null is a pointer, a box, a stack or a function, not a {self.type}")
        return self.type


@dataclass(frozen=True)
class Undefined(Pure):
    """Some value of any type, which is the same every time: `literal undefined: T`.

    Zeros and false; null; of an enum, the first case that does not need another value of the enum.
    """

    name: ClassVar[str] = "undefined"
    syntax: ClassVar[str] = "literal undefined: {type}"
    is_constant: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    type: Type

    def infer(self) -> Type:
        return self.type


def is_undefined(value: Value) -> bool:
    """Whether `value` is known to be what `undefined` means."""
    return isinstance(value.op, Undefined)
