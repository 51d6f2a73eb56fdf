"""Stacks in segments: what goes on in another thread is as if it went on in the same one."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import pytest

from nnkit.staging import segmented_stack
from nnkit.staging.segmented_stack import call_in_segment, has_room
from tests.patience import PATIENCE


def within(depth: int, function: Callable[[], Any]) -> Any:
    """What it returns, in a segment inside a segment, `depth` times."""
    return call_in_segment(within, depth - 1, function) if depth else function()


def frames(count: int, function: Callable[[], Any]) -> Any:
    """What it returns, with so many frames around it."""
    return frames(count - 1, function) if count else function()


def test_room_ends_before_the_limit_and_begins_again_in_a_segment() -> None:
    limit = sys.getrecursionlimit()
    assert within(1, has_room)
    assert not within(1, lambda: frames(limit // 2, has_room))
    assert within(1, lambda: frames(limit // 2, lambda: call_in_segment(has_room)))
    assert sys.getrecursionlimit() == limit


def test_calls_go_far_beyond_the_limit() -> None:
    def down(left: int) -> int:
        if not left:
            return 0
        return 1 + (down(left - 1) if has_room() else call_in_segment(down, left - 1))

    assert down(20 * sys.getrecursionlimit()) == 20 * sys.getrecursionlimit()


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_what_it_returns_and_raises_comes_back(depth: int) -> None:
    assert within(depth, lambda: 7) == 7

    def fails() -> NoReturn:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        within(depth, fails)
    names = [entry.name for entry in caught.traceback]
    assert names.count("within") == depth + 1 and names[-1] == "fails"


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_context_variables_go_in_and_out(depth: int) -> None:
    variable = contextvars.ContextVar("variable", default=0)
    untouched = contextvars.ContextVar("untouched", default=1)
    seen: list[int] = []

    def change() -> None:
        seen.append(variable.get())
        variable.set(2)

    variable.set(1)
    within(depth, change)
    assert (seen, variable.get(), untouched.get()) == ([1], 2, 1)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_debuggers_and_profilers_see_what_happens(depth: int) -> None:
    seen: set[str] = set()

    def traced() -> None:
        """Is seen."""

    def profiled() -> None:
        """Is seen, too."""

    def event(frame: FrameType, kind: str, argument: object) -> None:
        seen.add(frame.f_code.co_name)

    before = sys.gettrace(), sys.getprofile()
    try:
        sys.settrace(event)
        within(depth, traced)
        sys.settrace(before[0])
        sys.setprofile(event)
        within(depth, profiled)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert {"traced", "profiled"} <= seen


def busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


class Alarm(Exception):
    """What a handler raises; it cannot be made without arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), Alarm(1, 2)], ids=["Ctrl-C", "alarm"])
def test_what_signals_raise_ends_the_innermost_call(error: BaseException, depth: int) -> None:
    cleaned: list[bool] = []

    def handler(number: int, frame: object) -> NoReturn:
        raise error

    def work() -> None:
        try:
            busy(30)
        finally:
            cleaned.append(True)

    before = signal.signal(signal.SIGALRM, handler)
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(type(error)) as caught:
            within(depth, work)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < 10 * PATIENCE
    assert (cleaned == [True] and caught.value is error) or isinstance(error, KeyboardInterrupt)
    assert within(depth, lambda: 7) == 7


def test_no_thread_stays() -> None:
    before = threading.active_count()
    within(20, lambda: None)
    assert threading.active_count() == before
    assert segmented_stack.waiting_frame() is None


def test_without_threads_the_call_goes_on_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert within(3, threading.get_ident) == threading.get_ident()


def test_stacks_set_too_small_are_larger_for_segments() -> None:
    before = threading.stack_size(256 << 10)
    try:
        size = within(1, lambda: frames(100, lambda: 7))
        assert size == 7 and threading.stack_size() == 256 << 10
    finally:
        threading.stack_size(before)
