"""Instructions that leave a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..errors import DTypeError
from ..ir.graph import Instruction, Pure, Value
from ..stage import Stage, Stages
from ..types import BOOL, EnumType, Type, scalar, written
from .enums import EnumCase
from .literal import number_of


class Return(Pure):
    """Leaves the function with its results."""

    name: ClassVar[str] = "return"
    syntax: ClassVar[str] = "return {value*}"
    stages: ClassVar[Stages] = frozenset(Stage)
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True

    def infer(self, *value: Type) -> tuple[Type, ...]:
        return ()


class Branch(Pure):
    """Goes on to its successor, with the operands as the arguments of that block."""

    name: ClassVar[str] = "branch"
    syntax: ClassVar[str] = "branch {arguments*}"
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True

    def infer(self, *arguments: Type) -> tuple[Type, ...]:
        return ()


@dataclass(frozen=True)
class Conditional(Pure):
    """Goes on to the first successor if the first operand is true, else to the second.

    `conditional %c: bool then 'a(%x: T) else 'b(%y: U)`; the first `taken` operands after the condition are
    the arguments of the first successor, the others those of the second.
    """

    name: ClassVar[str] = "conditional"
    syntax: ClassVar[str] = "conditional {condition} {arguments*} {taken}"
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    taken: int = 0

    def infer(self, condition: Type, *arguments: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"conditional decides by a bool, not by a {condition}")
        return ()


@dataclass(frozen=True)
class BranchEnum(Pure):
    """Goes on to the successor of the case that its operand is; the block takes what the case carries.

    `branchEnum %e: $E case ?a 'bb case ?b 'cc`: every case of the enum once, in any order.
    """

    name: ClassVar[str] = "branchEnum"
    syntax: ClassVar[str] = "branchEnum {value} {cases}"
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    cases: tuple[str, ...] = ()

    def infer(self, value: Type) -> tuple[Type, ...]:
        if not isinstance(value, EnumType):
            raise DTypeError(f"branchEnum decides by an enum, not by a {value}")
        handled: set[str] = set()
        for case in self.cases:
            if case not in value.positions:
                raise DTypeError(f"{value} has no case {written('?', case)}")
            if case in handled:
                raise DTypeError(f"branchEnum handles the case {written('?', case)} twice")
            handled.add(case)
        for name in value.positions:
            if name not in handled:
                raise DTypeError(
                    f"branchEnum does not handle the case {written('?', name)} of {value}"
                )
        return ()


def successor_taken(terminator: Instruction) -> int | None:
    """The number of the successor that is certainly gone to; None where that is not known, or there is no choice."""
    op, decider = terminator.op, terminator.operands[0] if terminator.operands else None
    if isinstance(op, Conditional) and decider is not None:
        truth: bool | None = number_of(decider)
        return None if truth is None else int(not truth)
    if isinstance(op, BranchEnum) and decider is not None and isinstance(decider.op, EnumCase):
        return op.cases.index(decider.op.case)
    return None


def pass_arguments(terminator: Instruction, arguments: Sequence[Sequence[Value]]) -> None:
    """Give each successor other arguments; those of a `branchEnum` take what the value carries."""
    match terminator.op:
        case Branch():
            terminator.operands = tuple(arguments[0])
        case Conditional():
            taken, other = arguments
            terminator.operands = (terminator.operands[0], *taken, *other)
            terminator.op = Conditional(len(taken))
        case _:
            pass


def arguments_of(terminator: Instruction, successor: int) -> Sequence[Value]:
    """The operands that become arguments of successor number `successor`.

    None for `branchEnum`: the block takes what the value carries.
    """
    match terminator.op:
        case Branch():
            return terminator.operands
        case Conditional(taken=taken):
            rest = terminator.operands[1:]
            return rest[:taken] if successor == 0 else rest[taken:]
        case _:
            return ()
