"""The thread pool of this process: threads of the C library that run the parallel loops of compiled programs.

1. `this_pool` compiles the code of the pool (`pool_code`), once in a process, for the first program with a parallel
   loop.
2. The threads are started by the first loop that runs, and again by the first one in a forked child, which has no
   threads.  There are as many as CPUs that the process may use, or as `NNKIT_NUM_THREADS` says, the one that calls
   included; with 1 there are none but that.
3. They are no threads of Python: they run compiled code only, take no signals, and never hold the GIL.  They end with
   the process.

Nothing of it is ever given back: a thread may be in its code until the process has ended.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from ...core.errors import UnsupportedError
from ...core.lazy_dataclass import dataclass
from ...core.types import Array
from ..emit.alignment import allocate_aligned
from ..llvm import compile_module, host_machine
from .pool_code import (
    BUSY,
    CLOCK,
    ENDED,
    MOST_THREADS,
    MUTEX,
    OWN_WAKE,
    PLACE_BYTES,
    PLACES,
    RUN,
    SLEEPING,
    SPIN,
    START,
    STATE,
    STATE_BYTES,
    THREADS,
    TICKET,
    WAITING,
    WORKER,
    pool_text,
)
from .process import CLOCK as PROCESS_CLOCK
from .process import this_process

VARIABLE: Final = "NNKIT_NUM_THREADS"

_SPIN: Final = 100_000
"""Nanoseconds that a thread looks for work before it sleeps: waking it takes 12 µs, and more than a millisecond where
the scheduler puts it on a CPU that is busy.  0 where there are more threads than CPUs: then others need this one."""

_STACK: Final = 1 << 20
"""Bytes of a worker's stack, for the local buffers of loops; pages that are not touched take no memory."""

_ATTRIBUTES: Final = 256
"""Bytes for a `pthread_attr_t`, more than any system needs."""

_FUNCTIONS: Final = (
    "pthread_create",
    "pthread_attr_init",
    "pthread_attr_setstacksize",
    "pthread_attr_destroy",
    "pthread_detach",
    "pthread_mutex_init",
    "pthread_cond_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_signal",
)

_AFFINITY: Final = ("gettid", "sched_getcpu", "sched_getaffinity", "sched_setaffinity")
"""On Linux."""

_PAUSES: Final = MappingProxyType(
    {
        "x86_64": "call void @llvm.x86.sse2.pause()",
        "aarch64": "call void @llvm.aarch64.hint(i32 1)",
        "arm64": "call void @llvm.aarch64.hint(i32 1)",
    }
)
"""By the first word of a triple, what tells a core that it waits."""


def thread_count() -> int:
    """How many threads parallel loops run on: `NNKIT_NUM_THREADS`, else the CPUs that the process may use.

    Raises: UnsupportedError when the variable is no number from 1 to 256.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(available_cpus(), MOST_THREADS)
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= MOST_THREADS:
        raise UnsupportedError(f"{VARIABLE} is a number from 1 to {MOST_THREADS}, not {text!r}")
    return int(text)


def available_cpus() -> int:
    """The CPUs that the process may use, at least one."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@dataclass(eq=False)
class Pool:
    """The state of the pool and its code; `symbols` are the addresses that programs call."""

    state: Array
    library: ctypes.CDLL
    lock: threading.Lock
    symbols: Mapping[str, int] = field(default_factory=dict[str, int])
    worker: int = 0
    kept: tuple[object, ...] = ()

    @property
    def threads(self) -> int:
        """How many there are, with the one that calls; 0 before the first loop has run."""
        return int(self._word(THREADS).value)

    def start(self) -> int:
        """Start the threads, unless that has been done; how many there are, with the one that calls."""
        with self.lock:
            if not self.threads:
                self._initialize()
                try:
                    wanted = thread_count()
                except UnsupportedError:  # the variable was changed since a program was compiled
                    wanted = 1
                self._word(SPIN).value = _SPIN if wanted <= available_cpus() else 0
                self._word(THREADS).value = 1 + self._create(wanted - 1)
            return self.threads

    def forget(self) -> None:
        """In a forked child: there are no threads, and whatever job there was is not this process's.

        Nor are its blocks: a new thread would take some, and count them as those of the next job.
        """
        self.lock = threading.Lock()
        for offset in (THREADS, BUSY, TICKET, SLEEPING, WAITING):
            self._word(offset).value = 0

    def _word(self, offset: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.state.ctypes.data + offset)

    def _initialize(self) -> None:
        at = self.state.ctypes.data
        self.library.pthread_mutex_init(ctypes.c_void_p(at + MUTEX), None)
        self.library.pthread_cond_init(ctypes.c_void_p(at + ENDED), None)

    def _create(self, count: int) -> int:
        """Start so many workers, which take no signals; how many the system allowed."""
        attributes = ctypes.create_string_buffer(_ATTRIBUTES)
        if not count or self.library.pthread_attr_init(attributes):
            return 0
        self.library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            started = 0
            while started < count and self._create_worker(started, attributes):
                started += 1
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self.library.pthread_attr_destroy(attributes)
        return started

    def _create_worker(self, number: int, attributes: Any) -> bool:
        thread, place = ctypes.c_void_p(), self.state.ctypes.data + PLACES + number * PLACE_BYTES
        self.library.pthread_cond_init(ctypes.c_void_p(place + OWN_WAKE), None)
        if self.library.pthread_create(
            ctypes.byref(thread), attributes, ctypes.c_void_p(self.worker), ctypes.c_void_p(place)
        ):
            return False
        self.library.pthread_detach(thread)
        return True


def this_pool() -> Pool | None:
    """The pool of this process, its code compiled; None where the C library has no such threads.

    Raises: UnsupportedError when `NNKIT_NUM_THREADS` is no number of threads.
    """
    thread_count()
    with _ONE_AT_A_TIME:
        return _compile_pool()


_ONE_AT_A_TIME: Final = threading.Lock()
"""Who compiles the pool: `cache` alone lets threads that come at once compile one each."""


@cache
def _compile_pool() -> Pool | None:
    process, library = this_process(), ctypes.CDLL(None)
    if process is None or not all(hasattr(library, name) for name in _FUNCTIONS):
        return None
    state = allocate_aligned(STATE_BYTES)
    state[:] = 0
    pool = Pool(state, library, threading.Lock())
    start = ctypes.CFUNCTYPE(ctypes.c_int64)(pool.start)
    pause = _PAUSES.get(host_machine().triple.partition("-")[0], "")
    has_affinity = all(hasattr(library, name) for name in _AFFINITY)
    module = compile_module(
        pool_text(process.clock, pause, has_affinity=has_affinity),
        {
            STATE: state.ctypes.data,
            START: ctypes.cast(start, ctypes.c_void_p).value or 0,
            CLOCK: process.symbols[PROCESS_CLOCK],
        },
    )
    pool.symbols = MappingProxyType({RUN: module.address(RUN)})
    pool.worker = module.address(WORKER)
    pool.kept = (start, module)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    os.register_at_fork(after_in_child=pool.forget)
    return pool
