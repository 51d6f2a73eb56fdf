"""Stacks of values of any types, which a program pushes to and pops from while it runs.

A stack is not a value but a place: whoever has it sees what others push.
"""

from __future__ import annotations

from typing import ClassVar

from ..errors import DTypeError
from ..ir.effect import Effect
from ..ir.instruction import Instruction, Op
from ..lazy_dataclass import dataclass
from ..types import STACK, StackType, Type, tensor_bytes


class CreateStack(Op):
    """An empty stack."""

    name: ClassVar[str] = "createStack"
    syntax: ClassVar[str] = "createStack"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.ALLOCATE

    def infer(self) -> StackType:
        return STACK


class Push(Op):
    """Puts a value on top: `push %x: f32 to %s: stack`."""

    name: ClassVar[str] = "push"
    syntax: ClassVar[str] = "push {value} to {stack}"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, value: Type, stack: Type) -> tuple[Type, ...]:
        _check_stack(self.name, stack)
        return ()

    def bytes_moved(self, instruction: Instruction) -> int:
        return 2 * tensor_bytes(instruction.operands[0].type)


@dataclass(frozen=True)
class Pop(Op):
    """Takes the top value, which must have been pushed as a `type`: `pop f32 from %s: stack`."""

    name: ClassVar[str] = "pop"
    syntax: ClassVar[str] = "pop {type} from {stack}"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.READ | Effect.WRITE
    type: Type

    def infer(self, stack: Type) -> Type:
        _check_stack(self.name, stack)
        return self.type

    def bytes_moved(self, instruction: Instruction) -> int:
        return 2 * tensor_bytes(instruction.result.type)


class DestroyStack(Op):
    """Gives a stack back, with what is still on it."""

    name: ClassVar[str] = "destroyStack"
    syntax: ClassVar[str] = "destroyStack {stack}"
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, stack: Type) -> tuple[Type, ...]:
        _check_stack(self.name, stack)
        return ()


def _check_stack(name: str, stack: Type) -> None:
    if stack != STACK:
        raise DTypeError(f"{name} takes a stack, not a {stack}")
