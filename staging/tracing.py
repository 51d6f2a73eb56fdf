"""The traces in progress on this thread, and new expressions, which belong to the innermost one."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from ..core.errors import StagingError
from ..core.location import HasLocation
from .expression import Expression, Operation, Trace
from .location import current_location, with_location
from .spec import Spec
from .tracing_clock import TRACING


class _Active(threading.local):
    """The traces in progress on this thread, the innermost last."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


_active = _Active()


@contextmanager
def tracing(trace: Trace) -> Generator[None]:
    """While this lasts, new expressions belong to `trace`."""
    _active.traces.append(trace)
    try:
        yield
    finally:
        _active.traces.pop()


def current_trace() -> Trace | None:
    """The function being staged on this thread, the innermost one."""
    return _active.traces[-1] if _active.traces else None


def active_traces() -> list[Trace]:
    """All functions being staged on this thread, the outermost first."""
    return _active.traces


def adopt_traces(traces: list[Trace]) -> None:
    """Continue on this thread what is staged on another one, which waits."""
    _active.traces = traces


def make(operation: Operation, operands: Sequence[Expression], type: Spec) -> Expression:
    """A new node at the user's present line.

    Raises: StagingError when an operand belongs to a trace that is over.
    """
    TRACING.count()
    location = current_location()
    check_alive(operands, location)
    trace = current_trace()
    return Expression(operation, tuple(operands), type, location, trace)


def keep(node: Expression) -> None:
    """Have the trace in progress do what `node` does, whether its value is used or not."""
    trace = current_trace()
    if trace is not None:
        trace.effects.append(node)


def check_alive(expressions: Sequence[Expression], location: HasLocation | None) -> None:
    """Raises: StagingError when one belongs to a trace that is over, or goes on in another thread."""
    traces = _active.traces
    for expression in expressions:
        owner = expression.trace
        if owner is None or (traces and owner is traces[-1]):
            continue
        if owner not in traces:
            raise with_location(
                StagingError(
                    f"a Rep of {owner.name} is used outside of it: it was made while {owner.name} was "
                    "staged, and means nothing after that"
                ),
                location,
                "return the value from the staged function, or pass it as an argument",
            )
