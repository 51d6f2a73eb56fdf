"""Byte memory operations, to which pointers, boxes, stacks and enums are lowered.

An address is an `i64`.  Those below `FIRST_ADDRESS` lead nowhere: 0 is null, `OUTSIDE` what a pointer becomes that
left what it points into.  Tensors lie in memory row by row, aligned to an element.

All of these have effects and keep their order (`core.compute.lower_memory` writes them, from the ops in `memory`,
`stack` and `enums`).
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

from ..errors import DTypeError
from ..ir.effect import Effect
from ..ir.instruction import Instruction, Op, Pure
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import BOOL, I64, FunctionType, TensorType, Type, scalar

Symbol: TypeAlias = str
"""The name of a function or variable, printed `@name`."""

ADDRESS: Final = scalar(I64)
"""The type of an address."""

FIRST_ADDRESS: Final = 4096
"""Systems map nothing into the first page of memory, so that smaller numbers are free for what is no address."""

OUTSIDE: Final = 1
"""Any number from 1 to `FIRST_ADDRESS` that is not null would do."""

OWNERS: Final = ("heap", "call", "frame", "run", "program")
"""Until when memory that is allocated lasts.

heap      until `freeBytes`
call      until the function returns
frame     the same, for what a function allocates at most once at each place, and in small pieces
run       until the function returns that was called from outside; such memory is not zero at first
program   for ever
"""


CALL_NANOSECONDS: Final = 10.0
"""A call of the library, besides what it fills or moves: `malloc` with `free` takes 7 ns up to 1 KiB, and 16 beyond
(glibc)."""


@dataclass(frozen=True)
class ReadBytes(Op):
    """The tensor that lies `offset` bytes after an address."""

    name: ClassVar[str] = "readBytes"
    syntax: ClassVar[str] = "readBytes {address} plus {offset} as {type}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.READ
    offset: int
    type: TensorType

    def infer(self, address: Type) -> TensorType:
        _check(self.name, address)
        return self.type


@dataclass(frozen=True)
class WriteBytes(Op):
    """Puts a tensor `offset` bytes after an address."""

    name: ClassVar[str] = "writeBytes"
    syntax: ClassVar[str] = "writeBytes {value} to {address} plus {offset}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.WRITE
    offset: int

    def infer(self, value: TensorType, address: Type) -> tuple[Type, ...]:
        _check(self.name, address)
        return ()


class MoveBytes(Op):
    """Copies so many bytes from one address to another; the two ranges may overlap."""

    name: ClassVar[str] = "moveBytes"
    syntax: ClassVar[str] = "moveBytes from {source} to {target} count {count}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.READ | Effect.WRITE

    def infer(self, source: Type, target: Type, count: Type) -> tuple[Type, ...]:
        _check(self.name, source, target, count)
        return ()

    def nanoseconds(self, instruction: Instruction) -> float:
        return CALL_NANOSECONDS


@dataclass(frozen=True)
class AllocateBytes(Op):
    """The address of so many bytes, all zero, aligned to 16; `owner` says how long they last (see `OWNERS`)."""

    name: ClassVar[str] = "allocateBytes"
    syntax: ClassVar[str] = "allocateBytes {count} until {owner}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.ALLOCATE
    owner: str

    def infer(self, count: Type) -> TensorType:
        _check(self.name, count)
        if self.owner not in OWNERS:
            raise DTypeError(f"memory lasts as one of {', '.join(OWNERS)}, not as {self.owner}")
        return ADDRESS

    def nanoseconds(self, instruction: Instruction) -> float:
        return CALL_NANOSECONDS


class FreeBytes(Op):
    """Gives back what was allocated until "heap"; nothing for address 0."""

    name: ClassVar[str] = "freeBytes"
    syntax: ClassVar[str] = "freeBytes {address}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, address: Type) -> tuple[Type, ...]:
        _check(self.name, address)
        return ()


@dataclass(frozen=True)
class AddressOf(Pure):
    """The address of a global variable, which takes `bytes` bytes."""

    name: ClassVar[str] = "addressOf"
    syntax: ClassVar[str] = "addressOf {symbol} of {bytes}"
    stages: ClassVar[Stages] = frozenset(Stage)
    symbol: Symbol
    bytes: int

    def infer(self) -> TensorType:
        return ADDRESS


@dataclass(frozen=True)
class FunctionAddress(Pure):
    """The address of a function, to be called by `callAddress`."""

    name: ClassVar[str] = "functionAddress"
    syntax: ClassVar[str] = "functionAddress {symbol} as {type}"
    stages: ClassVar[Stages] = frozenset(Stage)
    symbol: Symbol
    type: FunctionType

    def infer(self) -> TensorType:
        return ADDRESS

    @property
    def referred(self) -> str:
        return self.symbol


@dataclass(frozen=True)
class CheckAddress(Op):
    """Stops the program, saying what it wanted to do, if an address leads nowhere."""

    name: ClassVar[str] = "checkAddress"
    syntax: ClassVar[str] = "checkAddress {address} before {action}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.TRAP
    action: str

    def infer(self, address: Type) -> tuple[Type, ...]:
        _check(self.name, address)
        return ()


@dataclass(frozen=True)
class StopIf(Op):
    """Stops the program with a message if the condition is true."""

    name: ClassVar[str] = "stopIf"
    syntax: ClassVar[str] = "stopIf {condition} because {message}"
    stages: ClassVar[Stages] = frozenset(Stage)
    effect: ClassVar[Effect] = Effect.TRAP
    message: str

    def infer(self, condition: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"{self.name} decides by a bool, not by a {condition}")
        return ()


BYTE_MEMORY: tuple[type[Op], ...] = (
    *(ReadBytes, WriteBytes, MoveBytes, AllocateBytes, FreeBytes),
    *(AddressOf, FunctionAddress, CheckAddress, StopIf),
)
"""The ops of this file."""


def stop_message(action: str, address: int) -> str:
    """What `checkAddress` says of an address that leads nowhere."""
    return f"{action} null" if address == 0 else f"{action} memory out of bounds"


def _check(name: str, *numbers: Type) -> None:
    for number in numbers:
        if number != ADDRESS:
            raise DTypeError(f"{name} takes addresses and counts of i64, not a {number}")
