"""Optimising takes time in proportion to the program: 10,000 instructions in under two seconds."""

from __future__ import annotations

import re
import time

import pytest

from benchmarks.scaling import KINDS, Measured, measure, table
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

SECONDS = 2.0
"""For the passes of -O2 on 10,000 instructions, on the machine whose calibration takes `LOOP`."""
LOOP = 0.025
RATIO = 15.0
"""How much longer ten times as many instructions may take."""
TRIES = 6
"""Other programs make measurements longer, never shorter: the best of several counts."""


def calibration() -> float:
    """CPU seconds of a loop that does what passes do: makes objects, looks them up, and throws them away."""
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        known: dict[tuple[int, str], list[int]] = {}
        for number in range(100_000):
            known.setdefault((number % 1000, "x"), []).append(number)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [10, 100, 1_000])
def test_programs_have_the_size_that_was_asked_for(kind: str, count: int) -> None:
    module = parse_module(KINDS[kind](count))
    verify(module)
    measured = measure(KINDS[kind](count))
    assert count * 0.8 <= measured.instructions <= count * 1.25 + 16
    assert 0 < measured.passes < measured.whole


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_optimising_is_linear_and_quick(kind: str) -> None:
    texts = [KINDS[kind](count) for count in (1_000, 10_000)]
    small, large = (measure(text) for text in texts)
    most = SECONDS * max(1.0, calibration() / LOOP)
    growth = RATIO / 10 * large.instructions / small.instructions
    times = [[small.passes], [large.passes]]
    while len(times[0]) < TRIES and (
        min(times[1]) > most or min(times[1]) > growth * min(times[0])
    ):
        for found, text in zip(times, texts, strict=True):
            found.append(measure(text).passes)
    assert min(times[1]) < most
    assert min(times[1]) < growth * min(times[0])


def test_the_table_has_a_row_for_each_size() -> None:
    rows = {kind: [Measured(10, 0.001, 0.01), Measured(100, 0.01, 0.02)] for kind in KINDS}
    lines = table(rows).splitlines()
    assert len(lines) == 4 and lines[0].startswith("| straight: instructions | straight: passes |")
    assert "| 10 | 0.001 s, 100 µs | 0.01 s, 1000 µs |" in lines[2]
    assert all(len(re.findall(r"\|", line)) == 3 * len(KINDS) + 1 for line in lines)
