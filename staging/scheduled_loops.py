"""Loops with a schedule of what reverse mode saves: each is a function of its own, which has it as an attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir.loop_schedules import LoopSchedule
from .aggregates import element_of
from .expression import Expression, MakeAggregate, StagedCall, Trace, free_expressions
from .location import current_location
from .primitive import staging_error
from .rep_base import RepBase, rep_of
from .spec import TupleSpec, is_tuple
from .tracing import current_trace, make, tracing


def scheduled(what: str, schedule: object, loop: Callable[[], Any]) -> Any:
    """What `loop()` gives, a Rep or a tuple, of a loop that is reversed by `schedule`; None saves all that is used.

    Raises: StagingError for what is no schedule.
    """
    if schedule is None:
        return loop()
    if not isinstance(schedule, LoopSchedule):
        raise staging_error(
            f"checkpoint of {what} is a schedule, not {schedule!r}",
            "nk.every_sqrt() or nk.binomial(slots)",
        )
    if current_trace() is None:
        return loop()
    trace = Trace(what, (), location=current_location(), attributes=(schedule.attribute,))
    with tracing(trace):
        found = loop()
        parts = _parts(found)
        trace.result = TupleSpec(tuple(part.type for part in parts))
        trace.output = make(MakeAggregate(trace.result), parts, trace.result)
    trace.captures = free_expressions([trace.output], trace)
    whole = make(StagedCall(trace), trace.captures, trace.result)
    return _like(found, [element_of(whole, k) for k in range(len(parts))])


def _parts(found: Any) -> list[Expression]:
    """The values in nested tuples."""
    if is_tuple(found):
        return [part for one in found for part in _parts(one)]
    assert isinstance(found, RepBase)
    return [found.expression]


def _like(found: Any, parts: Sequence[Expression]) -> Any:
    """The parts in tuples as those of `found`."""
    rest = iter(parts)

    def part(like: Any) -> Any:
        return tuple(map(part, like)) if is_tuple(like) else rep_of(next(rest))

    return part(found)
