"""Run-time checks: emits the tests, and the blocks that report which check failed.

A program returns 0, or the number of the check that failed; two numbers that tell more, as the index and the
extent it exceeds, are then the first two words of the arena that the entry gave.  A function returns what a function
that it calls has returned, unless that is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ...core.errors import (
    CheckError,
    IndexOutOfRangeError,
    InternalError,
    NNKitError,
    OutOfMemoryError,
    RecursionDepthError,
    ShapeError,
    TrapError,
)
from ...core.host_calls import failed_with
from ...core.lazy_dataclass import dataclass
from ...core.ops.byte_memory import stop_message
from ...core.types import written
from .sites import CheckSite, Problem
from .writer import I64, FunctionWriter, Register, constant


def error_of(site: CheckSite, first: int, second: int) -> NNKitError:
    """The exception for a failed check; `first` and `second` are the two words in the arena's header."""
    match site.problem:
        case Problem.INDEX:
            return IndexOutOfRangeError(
                f"index {first} is out of range for an axis of extent {second}"
            )
        case Problem.TRIPS:
            return ShapeError(
                f"for stacks one element per iteration: {first} iterations cannot fill an axis of {second}"
            )
        case Problem.DEPTH:
            return RecursionDepthError(
                f"{written('@', site.callee)} is called too deeply: its calls would take more than "
                f"{second} bytes of stack"
            )
        case Problem.MEMORY:
            return RecursionDepthError(
                f"{written('@', site.callee)} is called too deeply: there are no {second} bytes of "
                "memory for one more call"
            )
        case Problem.KEPT:
            return OutOfMemoryError(
                f"out of memory: {second:,} bytes are kept, and there are no {first:,} bytes more"
            )
        case Problem.ADDRESS:
            return TrapError(stop_message(site.text, first))
        case Problem.STOP:
            return TrapError(site.text)
        case Problem.CHECK:
            return CheckError(site.text)
        case Problem.RAISED:
            return InternalError("an exception of Python's was not raised again")
        case Problem.EXTERN:
            return TrapError(failed_with(site.callee, first))


@dataclass(frozen=True, slots=True)
class Failure:
    """A block still to be written, which returns the error `code`.

    `first` and `second` tell more; the first one may be a number per lane, of which that counts whose lane is set in
    `failed`.
    """

    label: str
    code: Register
    first: Register
    second: Register
    failed: Register


@dataclass
class Checks:
    """The check sites of a program, site n at place n - 1, and the blocks of a function that report them."""

    sites: list[CheckSite] = field(default_factory=list[CheckSite])
    failures: list[Failure] = field(default_factory=list[Failure])
    passed: Register | None = None
    """The variable that holds the code of the function called last; None without calls."""
    _passing: str = ""

    def add(self, site: CheckSite) -> int:
        """The number of a new site."""
        self.sites.append(site)
        return len(self.sites)

    def write_check(
        self, w: FunctionWriter, index: Register, extent: int, site: int, mask: Register | None
    ) -> None:
        """Branch to a failure unless every index (of the lanes in the mask) is in 0 … extent - 1."""
        outside = w.icmp("uge", index, constant(index.type, extent))
        if mask is not None and outside.type.lanes > 1:
            outside = w.and_(outside, mask)
        self.stop_if(w, outside, site, index, constant(I64, extent))

    def stop_if(
        self, w: FunctionWriter, failed: Register, site: int, first: Register, second: Register
    ) -> None:
        """Branch to a failure if the condition holds (in any lane)."""
        label = self._branch(w, w.reduce("or", failed))
        self.failures.append(Failure(label, constant(I64, site), first, second, failed))

    def pass_on(self, w: FunctionWriter, code: Register) -> None:
        """Return `code` to the caller if it is the error code of a callee.

        It goes by way of a variable: a phi of thousands of codes would be alive on as many edges, which takes LLVM's
        register allocation quadratic time.
        """
        if self.passed is None:
            self._passing = w.new_label("failed")
            self.passed = w.allocate(I64, align=8)
        goes_on = w.new_label("done")
        w.store(code, self.passed)
        w.branch_if(w.icmp("ne", code, constant(I64, 0)), self._passing, goes_on)
        w.begin(goes_on)

    def write_failures(
        self, w: FunctionWriter, report: Register, leave: Callable[[Register], None]
    ) -> None:
        """Emit the blocks of failed checks, after the last block of the function.

        `report` is where the two words go; `leave` returns from the function.
        """
        for failure in self.failures:
            w.begin(failure.label)
            w.store(_first_failed(w, failure.first, failure.failed), report)
            w.store(failure.second, w.offset(report, 8))
            leave(failure.code)
        if self.passed is not None:
            w.begin(self._passing)
            leave(w.load(self.passed, I64))

    def _branch(self, w: FunctionWriter, failed: Register) -> str:
        stops, goes_on = w.new_label("outside"), w.new_label("inside")
        w.branch_if(failed, stops, goes_on)
        w.begin(goes_on)
        return stops


def _first_failed(w: FunctionWriter, numbers: Register, failed: Register) -> Register:
    """The number in the first lane that failed."""
    lanes = numbers.type.lanes
    if lanes == 1:
        return numbers
    order = w.lane_numbers("i32", lanes)
    last = constant(order.type, lanes - 1)
    lane = w.reduce("smin", w.select(failed, order, last))
    return w.extract(numbers, lane)
