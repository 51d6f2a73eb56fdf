"""Threads with a stack of a given size."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable


def run_in_thread(stack: int, work: Callable[[], object]) -> None:
    """Run `work` in a new thread that asked for `stack` bytes, and wait for it.

    Meanwhile Python's collector is off: it overflows 64 KiB by itself where others have left deep garbage (3.13).
    """
    before = threading.stack_size(stack)
    gc.disable()
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        gc.enable()
        threading.stack_size(before)
