"""Says on stderr that a compile takes long, and what it is busy with.

The clock is looked at while a function is traced, before each pass and before LLVM, which nothing interrupts: without a
thread, what takes long is told when it is over, or when the next step begins.  NNKIT_QUIET=1 keeps it silent.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from .staging.tracing_clock import TRACING

PATIENCE: Final = 2.0
"""Seconds until a user wonders whether it hangs."""


class Progress:
    """Of the compile of one function."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._start = self._step_start = clock()
        self._step = ""
        self._longest, self._longest_seconds = "", 0.0
        self._has_told = False

    @contextmanager
    def tracing(self) -> Generator[None]:
        """Look at the clock while a Python function is traced."""
        self.begin("tracing")
        with TRACING.reporting(self._trace_goes_on):
            yield
        self.begin("in loading the compiler")

    def _trace_goes_on(self, operations: int) -> None:
        if self._clock() - self._start > PATIENCE:
            self._tell(
                f"compiling {self.name} takes more than {PATIENCE:.0f} s, now tracing, {operations:,} "
                "operations so far (a loop of Python is unrolled, `nk.fori` is not)"
            )

    def begin(self, step: str) -> None:
        """Note that `step` begins, and the one before is over."""
        now = self._end_step()
        self._step, self._step_start = step, now
        if now - self._start > PATIENCE:
            self._tell(f"compiling {self.name} takes more than {PATIENCE:.0f} s, now {step}")

    def end(self) -> None:
        """Note that the compile is over."""
        seconds = self._end_step() - self._start
        if seconds > PATIENCE:
            self._tell(f"compiling {self.name} took {seconds:.1f} s")

    def _end_step(self) -> float:
        now = self._clock()
        if now - self._step_start > self._longest_seconds:
            self._longest, self._longest_seconds = self._step, now - self._step_start
        return now

    def _tell(self, message: str) -> None:
        if self._has_told or os.environ.get("NNKIT_QUIET") == "1":
            return
        self._has_told = True
        most = f" (most of it {self._longest}, {self._longest_seconds:.1f} s)" * bool(self._longest)
        sys.stderr.write(f"nnkit: {message}{most}\n")
        sys.stderr.flush()
