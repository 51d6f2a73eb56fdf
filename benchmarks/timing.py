"""Time several ways to compute the same thing, in turns, so that a noisy machine treats them alike.

1. Calibrate: how many calls take about `BATCH_SECONDS`.
2. In every round each contestant runs one such batch, after one call that is not counted; who begins
   changes from round to round.
3. A pause before each batch lets the threads of the one before stop waiting for work.
4. A round begins when other programs leave the machine alone, if they do so soon.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

Batch = Callable[[int], float]
"""Does something so many times, and gives the seconds each time took."""
BATCH_SECONDS = 0.01
PAUSE_SECONDS = 0.003
QUIET = 0.1
"""The share of the cores that other programs may use in the meantime."""


@dataclass(frozen=True)
class Spread:
    """The median of many measurements, and between which values the middle 80% lie."""

    median: float
    low: float
    high: float
    measured: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """In the order of the rounds."""

    @staticmethod
    def of(measured: Sequence[float]) -> Spread:
        ordered = sorted(measured)
        last = len(ordered) - 1
        low, median, high = (ordered[round(share * last)] for share in (0.1, 0.5, 0.9))
        return Spread(median, low, high, tuple(measured))

    def over(self, other: Spread) -> Spread:
        """The ratios to another one of the same rounds; the median is that of the medians."""
        median = self.median / other.median
        if not self.measured or len(self.measured) != len(other.measured):
            return Spread(median, math.nan, math.nan)
        pairs = zip(self.measured, other.measured, strict=True)
        return replace(Spread.of([mine / theirs for mine, theirs in pairs]), median=median)


def alternate(batches: Mapping[str, Batch], rounds: int, patience: float) -> dict[str, Spread]:
    """Seconds per call of each contestant.

    Units: `patience` is the seconds to wait for other programs, in all rounds together.
    """
    counts = {name: calibrate(batch) for name, batch in batches.items()}
    measured: dict[str, list[float]] = {name: [] for name in batches}
    names = list(batches)
    for turn in range(rounds):
        patience -= settle(patience)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(PAUSE_SECONDS)
            measured[name].append(batches[name](counts[name]))
    return {name: Spread.of(seconds) for name, seconds in measured.items()}


def calibrate(batch: Batch) -> int:
    """How many calls a batch has, at least one."""
    count = 1
    while (seconds := batch(count) * count) < BATCH_SECONDS / 2:
        count *= 2
    return max(1, round(count * BATCH_SECONDS / seconds))


def batch(
    call: Callable[[], object], count: int, *, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds per call, of `count` calls after one that is not counted.

    By `time.process_time` they are those of the process alone: where others use the machine, what is left of their
    influence is that on caches.
    """
    call()
    gc.collect()
    gc.disable()
    try:
        begin = clock()
        for _ in range(count):
            call()
        return (clock() - begin) / count
    finally:
        gc.enable()


def settle(patience: float) -> float:
    """Wait until other programs are quiet, but no longer than `patience`; the seconds it took."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < patience and other_load(0.2) > QUIET:
        pass
    return time.perf_counter() - begin


def other_load(seconds: float = 1.0) -> float:
    """The share of the cores that other programs use now; 0 where it is not known.

    Threads that wait for each other by spinning suffer most from it, by factors of a hundred.
    """
    before = _busy()
    if before is None:
        return 0.0
    time.sleep(seconds)
    after = _busy() or before
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def _busy() -> tuple[int, int] | None:
    """Ticks that all cores were busy, and all ticks, since the start of the machine."""
    if not _TICKS.exists():
        return None
    ticks = [int(count) for count in _TICKS.read_text().split("\n", 1)[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


_TICKS = Path("/proc/stat")
