"""Emits BLAS calls that run on one thread: a counted lock around the process-wide number of threads.

Programs that gave up the GIL run at the same time as others. So the process counts who wants one thread (`process`):
the first to come keeps the number and sets it to 1, the last to go sets it back.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..runtime.process import BLAS_LOCK, BLAS_THREADS, BLAS_USERS, WORDS
from .writer import I32, I64, FunctionWriter, ModuleWriter, Register, constant

SYMBOL: Final = "nnkit.blas."
"""Before the name of a function of the BLAS, its name in our modules."""

_ENTER: Final = SYMBOL + "enter"
_LEAVE: Final = SYMBOL + "leave"


@contextmanager
def single_threaded(module: ModuleWriter, w: FunctionWriter) -> Generator[None]:
    """Code emitted inside runs with one BLAS thread, by `get_num_threads` and `set_num_threads`."""
    if not module.has(_ENTER):
        _write_enter(module)
        _write_leave(module)
    w.call_void(_ENTER, [])
    yield
    w.call_void(_LEAVE, [])


def _write_enter(module: ModuleWriter) -> None:
    w = module.function(_ENTER, [], None, linkage="internal")
    words = module.external(WORDS)
    with _locked(w, words):
        users = w.load(w.offset(words, BLAS_USERS), I64)
        with w.when(w.icmp("eq", users, constant(I64, 0)), hint="first"):
            threads = w.call(f"{SYMBOL}get_num_threads", I32, [])
            w.store(threads, w.offset(words, BLAS_THREADS))
            w.call_void(f"{SYMBOL}set_num_threads", [constant(I32, 1)])
        w.store(w.add(users, constant(I64, 1)), w.offset(words, BLAS_USERS))
    w.ret()


def _write_leave(module: ModuleWriter) -> None:
    w = module.function(_LEAVE, [], None, linkage="internal")
    words = module.external(WORDS)
    with _locked(w, words):
        users = w.sub(w.load(w.offset(words, BLAS_USERS), I64), constant(I64, 1))
        w.store(users, w.offset(words, BLAS_USERS))
        with w.when(w.icmp("eq", users, constant(I64, 0)), hint="last"):
            threads = w.load(w.offset(words, BLAS_THREADS), I32)
            w.call_void(f"{SYMBOL}set_num_threads", [threads])
    w.ret()


@contextmanager
def _locked(w: FunctionWriter, words: Register) -> Generator[None]:
    """Hold the lock, for some nanoseconds; whoever waits lets other threads run."""
    lock = w.offset(words, BLAS_LOCK)
    ask, wait, inside = (w.new_label(hint) for hint in ("ask", "wait", "locked"))
    w.branch(ask)
    w.begin(ask)
    before = w.value(I64, f"atomicrmw xchg {lock.typed}, i64 1 acquire")
    w.branch_if(w.icmp("eq", before, constant(I64, 0)), inside, wait)
    w.begin(wait)
    w.call("sched_yield", I32, [])
    w.branch(ask)
    w.begin(inside)
    yield
    w.line(f"store atomic i64 0, {lock.typed} release, align 8")
