"""Time several ways to compute the same thing, in turns, so that a noisy machine treats them alike.

1. Calibrate: how many calls take about `BATCH_SECONDS`.
2. In every round each contestant runs one such batch, after one call that is not counted; who begins
   changes from round to round.
3. A pause before each batch lets the threads of the one before stop waiting for work.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Call = Callable[[], object]
BATCH_SECONDS = 0.01
PAUSE_SECONDS = 0.003


@dataclass(frozen=True)
class Spread:
    """The median of many measurements, and between which values the middle 80% lie."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(measured: Sequence[float]) -> Spread:
        ordered = sorted(measured)
        last = len(ordered) - 1
        low, median, high = (ordered[round(share * last)] for share in (0.1, 0.5, 0.9))
        return Spread(median, low, high)


def alternate(calls: Mapping[str, Call], rounds: int) -> dict[str, Spread]:
    """Seconds per call of each contestant."""
    counts = {name: calibrate(call) for name, call in calls.items()}
    measured: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(PAUSE_SECONDS)
            measured[name].append(batch(calls[name], counts[name]))
    return {name: Spread.of(seconds) for name, seconds in measured.items()}


def calibrate(call: Call) -> int:
    """How many calls a batch has, at least one."""
    count = 1
    while (seconds := batch(call, count) * count) < BATCH_SECONDS / 2:
        count *= 2
    return max(1, round(count * BATCH_SECONDS / seconds))


def batch(call: Call, count: int) -> float:
    """Seconds per call, of `count` calls after one that is not counted."""
    call()
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count
    finally:
        gc.enable()
