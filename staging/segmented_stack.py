"""A segmented stack: where Python's stack is nearly exhausted, a call continues on the stack of a new thread.

Python counts the frames of each thread for itself, so that a new thread has the whole of
`sys.getrecursionlimit()` again, and a C stack of its own that is large enough for it.  Nothing of the process is
changed: neither the limit, nor the stacks of others.

1. `has_room` asks for the depth of the present thread; that is all that a call of shallow code costs.
2. `call_in_segment` runs a function in a new thread, in a copy of the context variables, with the tracing function
   of the caller (debuggers, coverage).  What it returns or raises, and the context variables it sets, are the
   caller's.
3. An exception that a signal raises in the waiting thread, as Ctrl-C does, is raised in the thread that runs.

Source: the segmented stacks of GCC (-fsplit-stack), and of rustc (the crate `stacker`).
"""

from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

_FRAMES: Final = 400
"""More frames than these lie in no segment before it ends, however large the limit is that is set: they fit into its 8
MiB of C stack, with 20 KiB each."""

_LEAST_STACK: Final = 8 << 20
"""Bytes of C stack for the frames of a segment and what the user's function adds, where less is set: what threads have
on Linux."""

_SECONDS: Final = 0.5
"""Between two looks at whether the thread that is waited for still lives: it always says when it ends, but
for an exception from outside that arrives just then."""


class _Thread(threading.local):
    """What a thread knows of the stack that it continues."""

    def __init__(self) -> None:
        self.segment: _Segment | None = None


_thread = _Thread()


def has_room() -> bool:
    """Whether two thirds of Python's stack are left on this thread: for the user's function, and for us."""
    try:
        sys._getframe(min(sys.getrecursionlimit() // 3, _FRAMES))
    except ValueError:
        return True
    return False


def waiting_frame() -> FrameType | None:
    """The frame that called the function of this thread's segment, and waits for it."""
    return None if _thread.segment is None else _thread.segment.waiting


def call_in_segment(function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` returns, or raises, in a thread of its own, which is waited for."""
    segment = _Segment(function, arguments, sys._getframe())
    if not segment.begin():
        return function(*arguments)
    try:
        segment.wait()
        return segment.result()
    finally:
        del segment  # an exception holds this frame, and must not be held by it


class _Interrupted(BaseException):
    """Ends a segment for an exception that a signal raised in the thread that waits for it."""


class _Segment(threading.Thread):
    """One call in a thread, and the frame that waits for it."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], waiting: FrameType
    ) -> None:
        super().__init__(name="nnkit-staging")
        outer = _thread.segment
        self.waiting: FrameType | None = waiting
        self._call: tuple[Callable[..., Any], tuple[Any, ...]] | None = (function, arguments)
        self._chain: list[_Segment] = [] if outer is None else outer._chain
        """All segments of this stack, the innermost last: only that one runs."""
        self._tracing = sys.gettrace(), sys.getprofile()
        self._context = contextvars.copy_context()
        self._ended = threading.Lock()
        self._interrupt: BaseException | None = None
        self._returned: Any = None
        self._raised: BaseException | None = None

    def begin(self) -> bool:
        """Start the thread; whether there can be one."""
        self._ended.acquire()
        self._chain.append(self)
        size = threading.stack_size()
        try:
            if 0 < size < _LEAST_STACK:
                threading.stack_size(_LEAST_STACK)
            self.start()
        except RuntimeError:  # no more threads, or the interpreter is about to end
            self._chain.remove(self)
            return False
        finally:
            threading.stack_size(size)
        return True

    def run(self) -> None:
        """What the thread does."""
        try:
            _thread.segment = self
            trace, profile = self._tracing
            if callable(trace):
                sys.settrace(trace)
            if callable(profile):  # that of cProfile can only be set by itself
                sys.setprofile(profile)
            assert self._call is not None
            function, arguments = self._call
            self._returned = self._context.run(function, *arguments)
        except BaseException as error:
            self._raised = error
        finally:
            self._ended.release()

    def wait(self) -> None:
        """Until it has ended; what a signal raises meanwhile goes to the segment that runs."""
        while True:
            try:
                while not self._ended.acquire(timeout=_SECONDS):
                    if not self.is_alive():
                        break
                break
            except BaseException as interrupt:
                self._interrupt = interrupt
                self._chain[-1].interrupt(type(interrupt))
        if self in self._chain:
            self._chain.remove(self)

    def interrupt(self, kind: type[BaseException]) -> None:
        """Have the thread raise this, or what stands for it where it cannot be made without arguments."""
        raised = kind if kind in (KeyboardInterrupt, SystemExit) else _Interrupted
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self.ident or 0), ctypes.py_object(raised)
        )

    def result(self) -> Any:
        """What the call returned.  Raises: what it raised, or what a signal did."""
        raised, interrupt = self._raised, self._interrupt
        self._call = self._raised = self._interrupt = self.waiting = None
        try:
            if interrupt is not None and not isinstance(raised, type(interrupt)):
                raise interrupt from raised
            for variable, value in self._context.items():
                if variable.get(_UNSET) is not value:
                    variable.set(value)
            if raised is not None:
                raise raised
            return self._returned
        finally:
            del raised, interrupt


FIRST: Final[CodeType] = _Segment.run.__code__
"""The code of the first frame of a segment: what called it is `waiting_frame`."""

_UNSET: Final = object()
