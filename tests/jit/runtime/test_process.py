"""What compiled code finds of the process that runs it."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest

from nnkit.core.thread_stack import current_stack
from nnkit.jit.runtime.process import (
    MAIN_THREAD,
    STACK,
    STACK_KEY,
    WORDS,
    Process,
    find_limit,
    stack_key,
    this_process,
)


def process() -> Process:
    found = this_process()
    assert found is not None
    return found


def word(offset: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(process().symbols[WORDS] + offset)


def test_it_knows_the_thread_that_handles_signals() -> None:
    assert word(MAIN_THREAD).value == threading.main_thread().ident
    assert word(STACK_KEY).value == stack_key()


def test_compiled_code_finds_the_stack_of_a_thread_by_a_function_of_ours() -> None:
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(process().symbols[STACK])() == find_limit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_has_a_main_thread_of_its_own() -> None:
    status: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            right = word(MAIN_THREAD).value == threading.get_ident()
            os._exit(0 if right else 1)
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert status == [0]


def test_the_limit_is_that_of_the_stack() -> None:
    here = current_stack()
    assert here is not None and stack_key() is not None
    assert find_limit() == here.limit
