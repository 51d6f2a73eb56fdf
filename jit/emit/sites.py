"""What a program reports of itself: the places of its run-time checks, and of what it prints."""

from __future__ import annotations

import enum

from ...core.lazy_dataclass import dataclass
from ...core.location import HasLocation
from ...core.ops.effects import Print
from ...core.types import TensorType


class Problem(enum.Enum):
    """What a check found."""

    INDEX = "index"
    """An index outside its axis: the index and the extent."""
    TRIPS = "trips"
    """A `for` that does not run once per element of what it stacks: the iterations and the extent."""
    DEPTH = "depth"
    """A recursion that would leave the stack: the bytes it may have."""
    MEMORY = "memory"
    """No memory for a call: the bytes it wanted."""
    ADDRESS = "address"
    """Use of an address that leads nowhere: the address."""
    KEPT = "kept"
    """No memory for a value that lasts until the kernel returns: the bytes it wanted, and those of all before it."""
    STOP = "stop"
    """The program stopped itself, for the reason that the site has."""
    EXTERN = "extern"
    """A function that is defined elsewhere has failed: the code it returned."""
    CHECK = "check"
    """A condition of the user's is false; the site has the message."""
    RAISED = "raised"
    """A function of Python has raised an exception, which is kept for the caller."""


@dataclass(frozen=True, slots=True)
class CheckSite:
    """A run-time check; `location` is the user's line.

    `callee` is the function that could not be called; `text` is what the program wanted to do, or why it stopped.
    """

    location: HasLocation | None
    problem: Problem = Problem.INDEX
    callee: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PrintSite:
    """A `print`, and the types of what it shows."""

    op: Print
    types: tuple[TensorType, ...]
