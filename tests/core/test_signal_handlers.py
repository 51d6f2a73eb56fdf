"""Exceptions of handlers of signals are told from others."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from typing import Any

import pytest

from nnkit.core.signal_handlers import pass_on


class Stopped(Exception):
    """Raised by a handler."""


def stop(*_: object) -> None:
    raise Stopped


class Stopper:
    """Handlers that are no functions."""

    def method(self, *_: object) -> None:
        raise Stopped

    def __call__(self, *_: object) -> None:
        stop()


def swallowing(work: Callable[[], None]) -> Exception | None:
    """What remains of an error in the hands of code that takes all errors for its own."""
    try:
        work()
    except Exception as error:
        pass_on(error)
        return error
    return None


@pytest.mark.parametrize(
    "handler",
    [stop, Stopper().method, Stopper(), functools.partial(stop, 1), lambda *_: stop()],
    ids=["function", "method", "object", "partial", "lambda"],
)
def test_what_a_handler_raises_is_passed_on(handler: Any) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Stopped):
            swallowing(lambda: signal.raise_signal(signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_anybody_else_raises_is_not() -> None:
    assert isinstance(swallowing(stop), Stopped)
    assert isinstance(swallowing(lambda: print(1 / 0)), ZeroDivisionError)
