"""Calls of the user's functions while tracing: bounds their nesting, and provides stack for it.

A function that stages another one runs it, so that the user's own frames lie in each other on Python's stack, and no
list of ours can take their place.  Where they have used up a part of it, the next call goes on in another thread
(`segmented_stack`), with what is in progress on this one.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, TypeAlias, TypeVar

from ..core.errors import NNKitError, StagingError
from ..core.thread_stack import current_stack
from .expression import Trace
from .location import DefinitionLocation, SourceLocation, is_own_file, with_location
from .primitive import staging_error
from .recursion import ENDLESS, CallSite, Running, adopt_thread_state, thread_state
from .segmented_stack import call_in_segment, has_room
from .tracing import active_traces, adopt_traces

MOST_NESTED: Final = 5_000
"""How many calls of the user's functions may be inside each other: a recursion without an end ends here, before
memory does.  As many regions may nest in the text form."""

_MANY: Final = MOST_NESTED // 10
"""A function that is called so often inside itself is a recursion: a chain of different functions has each once, and a
tenth leaves room for recursions of several in turn."""


_T = TypeVar("_T")
_LARGE: Final = 1 << 20
"""Bytes of C stack with room for everything up to machine code. Measured for tracing alone: 64 KiB end at 30 staged
functions inside each other, 96 KiB hold 300 of them."""

_UNASKED: Final = 1
"""So many calls inside each other are made without asking for room, which takes 0.7 µs: most programs have no more."""

_Call: TypeAlias = tuple[str, Callable[..., Any]]
"""A call in progress: what is called, in words, and its Python function."""


class _Nesting(threading.local):
    """The calls in progress on this thread, or the stack that it continues."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.continues_staging = False
        """Whether the thread whose stack this one continues has the lock, and waits."""
        self.has_large_stack = False
        """Whether its stack was found to be large: Linux reads through all mappings of a process to tell, which takes
        0.7 ms, and more the more code is loaded."""


_progress = _Nesting()

_STAGING: Final[Any] = threading.RLock()
"""Its methods are written in C, so that no exception of a signal's handler comes between taking it and knowing so."""

_NO_LOCK: Final = nullcontext()


def call_user(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` returns; `what` is called, in words.

    Raises: StagingError where too many calls are inside each other.
    """
    calls = _progress.calls
    if len(calls) >= MOST_NESTED:
        raise _too_deep(calls)
    before = len(calls)
    try:
        calls.append((what, function))
        if before < _UNASKED or has_room():
            return function(*arguments)
        return call_in_segment(_continued, _handed(), function, arguments)
    finally:
        del calls[before:]


def call_with_large_stack(function: Callable[..., _T], *arguments: Any) -> _T:
    """What `function` returns: in a thread of its own, where the stack of this one is small.

    Tracing, passes and LLVM recurse a little, through C code that asks nobody whether there is room.
    """
    if not _progress.has_large_stack:
        stack = current_stack()
        _progress.has_large_stack = stack is None or stack.high - stack.low >= _LARGE
    if _progress.has_large_stack:
        return function(*arguments)
    return call_on_new_stack(function, *arguments)


def call_on_new_stack(function: Callable[..., _T], *arguments: Any) -> _T:
    """What `function` returns, in a thread of its own."""
    result: _T = call_in_segment(_continued, _handed(), function, arguments)
    return result


def staging_lock() -> AbstractContextManager[object]:
    """Held while a Python function is run, by a thread and those that continue its stack; it may be taken again.

    One for all: the function may stage others, so that one lock each could deadlock.
    """
    return _NO_LOCK if _progress.continues_staging else _STAGING


_Handed: TypeAlias = "tuple[list[Trace], tuple[list[CallSite], Running], list[_Call], bool]"
"""What is in progress on a thread."""


def _handed() -> _Handed:
    is_staging: bool = _progress.continues_staging or _STAGING._is_owned()
    return active_traces(), thread_state(), _progress.calls, is_staging


def _continued(handed: _Handed, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The call, in a thread that continues the stack of the one that `handed` is of."""
    traces, recursion, _progress.calls, _progress.continues_staging = handed
    adopt_traces(traces)
    adopt_thread_state(*recursion)
    return function(*arguments)


def _too_deep(calls: Sequence[_Call]) -> NNKitError:
    """The error for calls that are nested too deeply: of functions that call themselves, or each other in a chain."""
    innermost, recursing = calls[-1]
    times = Counter(id(function) for _, function in calls)
    if times[id(recursing)] > _MANY:
        return staging_error(
            f"recursion of {innermost} is too deep: {MOST_NESTED:,} calls are inside each other while it "
            "is staged",
            ENDLESS,
        )
    first, last = (" → ".join(what for what, _ in some) for some in (calls[:2], calls[-2:]))
    error = staging_error(
        f"functions are nested more than {MOST_NESTED:,} deep: {first} → … → {last}",
        "pass what the inner ones return as an argument instead of calling them inside each other; what is repeated "
        "can be a loop, `fori` or `while_loop`",
    )
    codes = Counter(_code_of(function) for _, function in calls)
    code, count = codes.most_common(1)[0]
    if code is not None and count > _MANY:
        _note(
            error,
            f"{count:,} of them are made here; if each makes the next one, they have no end",
            code,
        )
    return error


def python_recursion_error(name: str, error: RecursionError) -> NNKitError:
    """The error for Python code that recurses, without or between calls of staged functions, while `name` is staged."""
    frames = [
        (frame.f_code, position)
        for frame, position in _frames(error.__traceback__)
        if not is_own_file(frame.f_code.co_filename)
    ]
    limit = f"Python's limit is {sys.getrecursionlimit():,} calls inside each other"
    codes = Counter(code for code, _ in frames)
    code, count = codes.most_common(1)[0] if codes else (None, 0)
    if code is None or count < _REPEATED:
        return staging_error(
            f"staging {name} takes too many calls inside each other: {limit}", ENDLESS
        )
    last = next(position for other, position in reversed(frames) if other is code)
    found: NNKitError = with_location(
        StagingError(f"recursion of {code.co_name} is too deep while {name} is staged: {limit}"),
        SourceLocation(code, last),
        ENDLESS,
    )
    return found


_REPEATED: Final = 10
"""Frames of one function that make a recursion of it: nested calls of helpers have a few, endless ones hundreds."""


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def _code_of(function: object) -> CodeType | None:
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _note(error: NNKitError, words: str, code: CodeType) -> None:
    place = DefinitionLocation(code).resolve()
    if place is not None:
        error.add_note(f"  note: {words}  {place.excerpt().splitlines()[0]}")
