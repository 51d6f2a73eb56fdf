"""Has threads share loops, however short they are, or none of them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nnkit.core.schedule import shared_loops, shared_totals
from nnkit.jit.runtime.pool import this_pool
from nnkit.jit.runtime.pool_code import THREADS


@contextmanager
def sharing_everything() -> Iterator[None]:
    """Loops that are compiled meanwhile are shared, in blocks as short as they can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_loops, "LEAST_JOB", 0.0)
        patch.setattr(shared_loops, "BLOCK", 0.01)
        patch.setattr(shared_totals, "LEAST_ROWS", 2)
        yield


@contextmanager
def alone() -> Iterator[None]:
    """Loops that run meanwhile do so on the thread that calls."""
    pool = this_pool()
    assert pool is not None
    pool.start()
    word = ctypes.c_int64.from_address(pool.state.ctypes.data + THREADS)
    threads = word.value
    word.value = 1
    try:
        yield
    finally:
        word.value = threads
