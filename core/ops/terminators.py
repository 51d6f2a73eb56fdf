"""Instructions that leave a block.

What goes on to other blocks (`Branching`) has as operands the value that decides, if there is a choice, and then the
arguments of each successor in turn.  Those of a `branchEnum` take what the value carries instead.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

from ..errors import DTypeError
from ..ir.instruction import Instruction, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import BOOL, EnumType, Type, scalar, written
from .enums import EnumCase
from .literal import number_in


class Return(Pure):
    """Leaves the function with its results."""

    name: ClassVar[str] = "return"
    syntax: ClassVar[str] = "return {value*}"
    stages: ClassVar[Stages] = frozenset(Stage)
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True

    def infer(self, *value: Type) -> tuple[Type, ...]:
        return ()


class Branching(Pure):
    """The form of what goes on to other blocks of its region."""

    required: ClassVar[tuple[str, ...]] = (*Pure.required, "is_choice")
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True
    is_choice: ClassVar[bool]
    """Whether the first operand decides where to."""

    @abc.abstractmethod
    def counts(self, operands: int) -> tuple[int, ...]:
        """How many of its `operands` each successor is given; one number for each."""

    def with_counts(self, counts: Sequence[int]) -> Self:
        """The same op, giving each successor so many operands."""
        return self

    def chosen(self, decider: Op | None) -> int | None:
        """The number of the successor if `decider` computes what decides; None if that does not tell."""
        return None

    def case_of(self, successor: int) -> str | None:
        """The case of an enum for which it goes there, if it decides by one: the block takes what that carries."""
        return None


class Branch(Branching):
    """Goes on to its successor, with the operands as the arguments of that block."""

    name: ClassVar[str] = "branch"
    syntax: ClassVar[str] = "branch {arguments*}"
    is_choice: ClassVar[bool] = False

    def infer(self, *arguments: Type) -> tuple[Type, ...]:
        return ()

    def counts(self, operands: int) -> tuple[int, ...]:
        return (operands,)


@dataclass(frozen=True)
class Conditional(Branching):
    """Goes on to the first successor if the first operand is true, else to the second.

    `conditional %c: bool then 'a(%x: T) else 'b(%y: U)`; the first `taken` operands after the condition are
    the arguments of the first successor, the others those of the second.
    """

    name: ClassVar[str] = "conditional"
    syntax: ClassVar[str] = "conditional {condition} {arguments*} {taken}"
    is_choice: ClassVar[bool] = True
    taken: int = 0

    def infer(self, condition: Type, *arguments: Type) -> tuple[Type, ...]:
        if condition != scalar(BOOL):
            raise DTypeError(f"conditional decides by a bool, not by a {condition}")
        return ()

    def counts(self, operands: int) -> tuple[int, ...]:
        return self.taken, operands - 1 - self.taken

    def with_counts(self, counts: Sequence[int]) -> Self:
        return replace(self, taken=counts[0])

    def chosen(self, decider: Op | None) -> int | None:
        truth: bool | None = number_in(decider)
        return None if truth is None else int(not truth)


@dataclass(frozen=True)
class BranchEnum(Branching):
    """Goes on to the successor of the case that its operand is; the block takes what the case carries.

    `branchEnum %e: $E case ?a 'bb case ?b 'cc`: every case of the enum once, in any order.
    """

    name: ClassVar[str] = "branchEnum"
    syntax: ClassVar[str] = "branchEnum {value} {cases}"
    is_choice: ClassVar[bool] = True
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

    def counts(self, operands: int) -> tuple[int, ...]:
        return (0,) * len(self.cases)

    def chosen(self, decider: Op | None) -> int | None:
        return self.cases.index(decider.case) if isinstance(decider, EnumCase) else None

    def case_of(self, successor: int) -> str:
        return self.cases[successor]


def argument_counts(instruction: Instruction) -> tuple[int, ...]:
    """How many operands each block is given that an instruction goes on to."""
    op = instruction.op
    return op.counts(len(instruction.operands)) if isinstance(op, Branching) else ()


def decider_of(terminator: Instruction) -> Value | None:
    """The value that decides between successors, if there is a choice."""
    op = terminator.op
    return terminator.operands[0] if isinstance(op, Branching) and op.is_choice else None


def is_unconditional(terminator: Instruction) -> bool:
    """Whether it goes on to one successor without a choice."""
    return bool(terminator.successors) and decider_of(terminator) is None


def case_of(terminator: Instruction, successor: int) -> str | None:
    """The case of an enum for which it goes there, if it decides by one: the block takes what that carries."""
    op = terminator.op
    return op.case_of(successor) if isinstance(op, Branching) else None


def successor_taken(terminator: Instruction, decider: Op | None = None) -> int | None:
    """The number of the successor that is certainly gone to, if `decider` or the program says what decides.

    None where that is not known, or there is no choice.
    """
    op, value = terminator.op, decider_of(terminator)
    if value is None or not isinstance(op, Branching):
        return None
    return op.chosen(decider or value.op)


def arguments_of(terminator: Instruction, successor: int) -> Sequence[Value]:
    """The operands that become arguments of successor number `successor`.

    None for `branchEnum`: the block takes what the value carries.
    """
    counts = argument_counts(terminator)
    first = (decider_of(terminator) is not None) + sum(counts[:successor])
    return terminator.operands[first : first + sum(counts[successor : successor + 1])]


def values_passed(terminator: Instruction, successor: int) -> Sequence[Value] | None:
    """The values that become arguments of a successor if it is gone to; None where nothing is known of them."""
    if case_of(terminator, successor) is None:
        return arguments_of(terminator, successor)
    made = terminator.operands[0].producer
    return made.operands if made is not None and isinstance(made.op, EnumCase) else None


def types_passed(terminator: Instruction, successor: int) -> tuple[Type, ...] | None:
    """The types of what a successor is given; None where what decides is not of that enum."""
    case = case_of(terminator, successor)
    if case is None:
        return tuple(value.type for value in arguments_of(terminator, successor))
    type = terminator.operands[0].type if terminator.operands else None
    return type.carried(case) if isinstance(type, EnumType) and case in type.positions else None


def pass_arguments(terminator: Instruction, arguments: Sequence[Sequence[Value]]) -> None:
    """Give each successor other arguments; those of a `branchEnum` take what the value carries."""
    op = terminator.op
    assert isinstance(op, Branching)
    deciders = terminator.operands[: op.is_choice]
    terminator.op = op.with_counts([len(given) for given in arguments])
    terminator.set_operands([*deciders, *(x for given in arguments for x in given)])
