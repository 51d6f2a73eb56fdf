"""Recursion of staged functions: infers result types and captures of call cycles.

A function is run once per types of its arguments, so a call of a function that is still being run is a call
of a trace that is not finished.  Three things about it are not known yet:
1. Whether it ends: it does only if the call stands in a body that may not run, such as a branch of `cond`.
2. What it returns.  An annotation says so.  If there is none, the call raises `UnknownResultError`: `cond` takes
   the type of its other branch, and the function is run again, as one that returns this type.
3. What it captures from the functions around it.  Calls of unfinished functions are remembered as *sites*.
   When the outermost function of a recursion is finished, what the functions capture is passed along their
   calls until nothing is missing anywhere.

What a trace waits for is its `PendingTrace`.  A trace that waits for an enclosing one is kept as a *member* of
that, and becomes valid, or is dropped, together with it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..core.errors import StagingError
from ..core.lazy_dataclass import dataclass
from .expression import Callee, CalleeKey, Expression, PendingTrace, Trace, TracedBody
from .location import current_location, with_location
from .tracing import active_traces


class UnknownResultError(StagingError):
    """A call of `trace`, whose result type is not known yet."""

    def __init__(self, message: str, trace: Trace) -> None:
        super().__init__(message)
        self.trace = trace


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call of an unfinished function, and the traces that it stands in, the outermost first."""

    node: Expression
    arguments: int
    callee: Callee
    inside: tuple[Trace, ...]


Running: TypeAlias = "dict[tuple[object, CalleeKey], Trace]"
"""The functions that are run on a thread, by what they came from and the types of their arguments."""


class _OpenCalls(threading.local):
    """The calls of unfinished functions on this thread, and those functions that are run."""

    def __init__(self) -> None:
        self.sites: list[CallSite] = []
        self.running: Running = {}


_open = _OpenCalls()


def thread_state() -> tuple[list[CallSite], Running]:
    """The recursion state of this thread, for a thread that continues its stack."""
    return _open.sites, _open.running


def adopt_thread_state(sites: list[CallSite], running: Running) -> None:
    """Continue on this thread what is staged on another one, which waits."""
    _open.sites, _open.running = sites, running


@contextmanager
def unfinished(trace: Trace) -> Generator[PendingTrace]:
    """While this lasts, `trace` can be called by what it calls; sites in it are dropped if it fails."""
    trace.progress = PendingTrace()
    key, first = (trace.origin, trace.key), len(_open.sites)
    _open.running[key] = trace
    try:
        yield trace.progress
    except BaseException:
        del _open.sites[first:]
        raise
    finally:
        del _open.running[key]


def in_progress(origin: object, key: CalleeKey) -> Trace | None:
    """The run of `origin` for these types that is not over yet, or is over but for what it waits for."""
    running = _open.running.get((origin, key))
    if running is not None:
        return running
    for trace in reversed(active_traces()):
        if trace.progress is not None and trace.progress.members:
            known = trace.progress.members.get((origin, key))
            if known is not None:
                return known
    return None


def note_recursion(trace: Trace) -> None:
    """Note that `trace`, which is in progress, is called recursively.

    Raises: StagingError when it would never end, Undetermined when it is not known what it returns.
    """
    inside = active_traces()[_position(trace) + 1 :]
    if not any(isinstance(one, TracedBody) and one.may_be_skipped for one in inside):
        raise with_location(
            StagingError(f"{trace.name} calls itself while it is staged, without end"),
            current_location(),
            ENDLESS,
        )
    if not trace.is_determined:
        message = f"{trace.name} calls itself on every path: what it returns is not known"
        raise with_location(UnknownResultError(message, trace), current_location(), _ANNOTATE)
    wait_for(trace)


ENDLESS = (
    "a staged function runs once, at staging: call it again in a branch of `cond`, so that the recursion "
    "ends; use a Python loop for a known number of steps"
)
_ANNOTATE = "one branch of a `cond` must not call it; or say what it returns, for example `-> Rep[Scalar[f32]]`"


def wait_for(trace: Trace, *, assume: bool = False) -> None:
    """All that is in progress inside `trace` is not finished before that is."""
    position = _position(trace)
    assert trace.progress is not None
    trace.progress.guesses |= assume
    for one in active_traces()[position + 1 :]:
        if one.progress is not None:
            one.progress.waits.add(trace)
            if assume:
                one.progress.assumes.add(trace)


def join_member(member: Trace) -> None:
    """A call of `member`, which is complete but for what it waits for."""
    assert member.progress is not None
    for trace in member.progress.waits:
        wait_for(trace, assume=trace in member.progress.assumes)


def note_site(node: Expression, arguments: int, callee: Callee) -> None:
    """`node` is a call of an unfinished function: what this captures will be passed to it later."""
    _open.sites.append(CallSite(node, arguments, callee, tuple(active_traces())))


def is_unfinished(callee: Callee) -> bool:
    """Whether it is not known yet what `callee` captures."""
    return isinstance(callee, Trace) and callee.progress is not None


def finish(trace: Trace) -> list[Trace]:
    """The traces that are valid now: `trace` and its members, or none while it waits for another one."""
    progress = trace.progress
    assert progress is not None
    if progress.waits:
        outer = next(one for one in reversed(active_traces()) if one in progress.waits)
        assert outer.progress is not None
        outer.progress.members[trace.origin, trace.key] = trace
        outer.progress.members |= progress.members
        return []
    valid = [trace, *progress.members.values()]
    _pass_captures([site for site in _open.sites if trace in site.inside])
    _open.sites[:] = [site for site in _open.sites if trace not in site.inside]
    for one in valid:
        one.progress = None
    return valid


def _pass_captures(sites: list[CallSite]) -> None:
    """Give every function what those that it calls capture, and every call what its callee captures."""
    grows = True
    while grows:
        grows = False
        for site in sites:
            for captured in site.callee.captures:
                grows |= _capture(captured, site.inside)
    for site in sites:
        site.node.operands = (*site.node.operands[: site.arguments], *site.callee.captures)


def _capture(captured: Expression, inside: tuple[Trace, ...]) -> bool:
    """Have the traces between `captured` and a use of it capture it; whether one did not before."""
    grows = False
    for trace in reversed(inside):
        if captured.trace is trace:
            break
        if trace.output is None and not isinstance(trace, TracedBody):
            break  # an enclosing function that is still run: it will find it among its operands
        if captured not in trace.captures:
            grows = True
            trace.captures = (*trace.captures, captured)
            if isinstance(trace, TracedBody) and trace.site is not None:
                trace.site.operands = (*trace.site.operands, captured)
    return grows


def _position(trace: Trace) -> int:
    return next(k for k, one in enumerate(active_traces()) if one is trace)


def outermost(errors: list[UnknownResultError]) -> UnknownResultError:
    """The one that may be known first: the function that was begun before the others."""
    return min(errors, key=lambda error: _position(error.trace))


def discard(trace: Trace) -> None:
    """Forget the calls in a run that is over: it will be run again."""
    _open.sites[:] = [site for site in _open.sites if trace not in site.inside]


def plain(error: UnknownResultError) -> Any:
    """The same message as the error that the user sees."""
    told = StagingError(*error.args)
    told.__notes__ = list(getattr(error, "__notes__", []))
    return told
