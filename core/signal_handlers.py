"""Exceptions raised by signal handlers, which may surface in any running code and are passed on."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Iterator
from types import CodeType
from typing import Any


def pass_on(error: BaseException) -> None:
    """Raise the error again if the handler of a signal raised it; to be asked before one takes it for one's own.

    It did if its traceback goes through the code of a handler that is installed.
    """
    codes = set(_codes_of_handlers())
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            raise error
        traceback = traceback.tb_next


def _codes_of_handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while handler is not None:
            for function in (handler, inspect.getattr_static(handler, "__call__", None)):
                code = getattr(function, "__code__", None)
                if isinstance(code, CodeType):
                    yield code
            handler = getattr(handler, "func", None)  # functools.partial
