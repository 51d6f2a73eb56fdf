"""Structured statements over variables, the form between control-flow graph and structured SSA.

A variable is a `Value`: every value that crosses blocks, and those made up for the shape of the program (which
way a choice went, whether a loop goes on).  Assigning again is allowed; `emit` makes SSA of it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from ...ir import Instruction, Value
from ...lazy_dataclass import dataclass
from ...location import HasLocation


@dataclass(frozen=True)
class Immediate:
    """A truth value, or the number of an alternative."""

    number: bool | int


@dataclass(frozen=True)
class Carried:
    """What an enum of a known case carries at a position."""

    value: Value
    case: str
    index: int


Source: TypeAlias = Value | Immediate | Carried


@dataclass(eq=False)
class Execute:
    """Executes instructions.  Those of a copy, which repeats others, are left out where nobody needs them."""

    instructions: list[Instruction]
    is_copy: bool = False


@dataclass(eq=False)
class Assign:
    """Sets all targets at once; the sources are read before."""

    targets: list[Value]
    sources: list[Source]


@dataclass(eq=False)
class Forget:
    """From here on nobody looks at what the variables are, unless they are set again."""

    variables: list[Value]


@dataclass(frozen=True)
class Test:
    """A variable that is true; an enum that is of `case`; a number that is less than `below`.

    Without a variable it holds always.
    """

    value: Value | None
    case: str | None = None
    below: int | None = None
    negated: bool = False


@dataclass(eq=False)
class Choice:
    """One of two lists of statements.  `results` are the variables it sets that are needed after it."""

    test: Test
    then: list[Statement] = field(default_factory=list["Statement"])
    otherwise: list[Statement] = field(default_factory=list["Statement"])
    location: HasLocation | None = None
    results: list[Value] = field(default_factory=list[Value])


@dataclass(eq=False)
class Repeat:
    """Executes `head`, then, if the test holds, `body`, and so on.

    What `head` sets is forgotten at its end.  `carried` are the variables that the body sets and that are
    needed by the next iteration or after the loop.
    """

    head: list[Statement]
    test: Test
    body: list[Statement]
    location: HasLocation | None = None
    carried: list[Value] = field(default_factory=list[Value])


Statement: TypeAlias = Execute | Assign | Forget | Choice | Repeat


def lists_in(statement: Statement) -> tuple[list[Statement], ...]:
    """The statements inside a statement, in the order of execution."""
    match statement:
        case Choice():
            return statement.then, statement.otherwise
        case Repeat():
            return statement.head, statement.body
        case _:
            return ()
