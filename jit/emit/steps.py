"""The plan of a nest as data: the steps of each loop level, and how results are stored.

A *slot* is a number that stands for a register while planning: an address, or an `i64` index.  A step
belongs to the level (number of loops around it) where everything it needs is known, so that nothing is
computed in a deeper loop than it has to be.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from ...core.ir.instruction import Instruction, Value
from ...core.lazy_dataclass import dataclass
from ...core.location import HasLocation
from ...core.ops.combinator import Combinator
from ...core.ops.effects import Print
from ...core.types import DType, TensorType
from .writer import LLVMType

Slot: TypeAlias = int


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


@dataclass(frozen=True, slots=True)
class Advance:
    """target = source + coefficient · coordinate of `axis`.

    In elements when the source is an address (`element` is their type), else of an index.
    """

    target: Slot
    source: Slot
    axis: int
    coefficient: int
    element: LLVMType | None


@dataclass(frozen=True, slots=True)
class AdvanceBy:
    """target = source + coefficient · index, for an index that is the same in all lanes."""

    target: Slot
    source: Slot
    index: Slot
    coefficient: int
    element: LLVMType


@dataclass(frozen=True, slots=True)
class MakeIndex:
    """target = source + constant, one per lane with a difference of `stride` if that is not 0."""

    target: Slot
    source: Slot
    constant: int
    stride: int


@dataclass(frozen=True, slots=True)
class TakeIndex:
    """target = a loaded value as an index."""

    target: Slot
    value: Value


@dataclass(frozen=True, slots=True)
class BoundIndex:
    """target = the nearest number to index in 0 … extent - 1 if it `clips`, else whether index is one of these."""

    target: Slot
    index: Slot
    extent: int
    clips: bool


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """Leaves the program, naming check number `site`, unless index is in 0 … extent - 1."""

    index: Slot
    extent: int
    site: int


@dataclass(frozen=True, slots=True)
class MakeCoordinate:
    """The coordinate of an axis becomes a value of the body."""

    value: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Address:
    """Where a point reads or writes: `pointer + constant + Σ offset · its stride`, in elements.

    `stride` is the distance from lane to lane; `offsets` are indices that differ in every lane.  Only
    where all `conditions` hold is there an element at all; `is_empty` when there never is.  The tensor `is_short` if a
    vector holds it, and all points are one.
    """

    dtype: DType
    pointer: Slot
    constant: int
    stride: int
    offsets: tuple[tuple[Slot, int], ...]
    conditions: tuple[Slot, ...]
    varies: bool
    is_empty: bool
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class ReadElement:
    """Reads a value of the body."""

    value: Value
    address: Address


@dataclass(frozen=True, slots=True)
class FetchElement:
    """Has a vector that lies so many bytes behind an address brought to the nearest cache."""

    address: Address
    bytes: int


@dataclass(frozen=True, slots=True)
class Compute:
    """Runs an instruction of the body."""

    instruction: Instruction


@dataclass(frozen=True, slots=True)
class SplatLanes:
    """Broadcasts a scalar to all lanes, at `level`."""

    value: Value
    level: int


@dataclass(frozen=True, slots=True)
class WriteElement:
    """Stores result number `number` at once."""

    number: int


Step: TypeAlias = (
    Advance
    | AdvanceBy
    | MakeIndex
    | TakeIndex
    | BoundIndex
    | IndexCheck
    | MakeCoordinate
    | ReadElement
    | FetchElement
    | Compute
    | SplatLanes
    | WriteElement
)


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How one result is stored or reduced; its value `varies` if every lane contributes one.

    `joins` says that elements may be visited again, so that what is stored is joined with what is there.
    A reduction in registers starts and ends at level `begins`, has all lanes of the vector loop when
    that loop is `inside` it, and joins `factors` by a `multiply_add` if they are given.  The total of a compensated
    sum in registers `is_pair`: what was summed and what rounding cut off; one in memory has the latter at
    `correction`.
    """

    value: Value
    varies: bool
    address: Address
    combinator: Combinator | None
    joins: bool
    begins: int | None = None
    inside: bool = False
    factors: tuple[Value, Value] | None = None
    is_pair: bool = False
    correction: Address | None = None


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A loop of `extent` points in steps of `lanes`, `copies` independent steps per round.

    The points that are left at the end are one step of `tail_lanes` lanes, not all of them active.  With a `block`,
    the loop is over blocks of so many points, which another loop over the same axis goes through.
    """

    extent: int
    lanes: int = 1
    tail_lanes: int = 1
    copies: int = 1
    is_vector: bool = False
    block: int = 0

    @property
    def steps(self) -> int:
        """How many steps use all lanes."""
        return self.extent // self.lanes

    @property
    def tail(self) -> int:
        """How many points are left."""
        return self.extent % self.lanes

    @property
    def in_rounds(self) -> int:
        """How many points whole rounds cover."""
        return self.extent - self.extent % (self.lanes * self.copies)

    @property
    def lane_counts(self) -> tuple[int, ...]:
        """The numbers of lanes that the steps have."""
        found = dict.fromkeys((self.lanes,) if self.steps else ())
        found |= dict.fromkeys((self.tail_lanes,) if self.tail else ())
        return tuple(found)
