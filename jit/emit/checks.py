"""Bounds checks of a program: where they are, and how a failed one is reported.

A program returns 0, or the number of the check that failed; the index and the extent it exceeds are then the
first two words of the arena.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .steps import CheckSite
from .writer import I64, FunctionWriter, Register, constant


@dataclass(frozen=True, slots=True)
class Failure:
    """A block still to be written: where control goes when check `site` finds some lanes `outside`."""

    label: str
    site: int
    index: Register
    outside: Register
    extent: int


@dataclass
class Checks:
    """The check sites of a program, site n at place n - 1, and the blocks that report them."""

    sites: list[CheckSite] = field(default_factory=list[CheckSite])
    failures: list[Failure] = field(default_factory=list[Failure])

    def write_check(
        self, w: FunctionWriter, index: Register, extent: int, site: int, mask: Register | None
    ) -> None:
        """Go on only if every index (of the lanes in the mask) is in 0 … extent - 1."""
        outside = w.icmp("uge", index, constant(index.type, extent))
        if mask is not None and outside.type.lanes > 1:
            outside = w.and_(outside, mask)
        failed, passed = w.new_label("outside"), w.new_label("inside")
        w.branch_if(w.reduce("or", outside), failed, passed)
        w.begin(passed)
        self.failures.append(Failure(failed, site, index, outside, extent))

    def write_failures(self, w: FunctionWriter, arena: Register) -> None:
        """Write the blocks where failed checks end; after the last block of the program."""
        for failure in self.failures:
            w.begin(failure.label)
            w.store(_first_outside(w, failure), arena)
            w.store(constant(I64, failure.extent), w.offset(arena, 8))
            w.ret(constant(I64, failure.site))


def _first_outside(w: FunctionWriter, failure: Failure) -> Register:
    """The index in the first lane that is outside."""
    lanes = failure.index.type.lanes
    if lanes == 1:
        return failure.index
    numbers = w.lane_numbers("i32", lanes)
    last = constant(numbers.type, lanes - 1)
    lane = w.reduce("smin", w.select(failure.outside, numbers, last))
    return w.extract(failure.index, lane)
