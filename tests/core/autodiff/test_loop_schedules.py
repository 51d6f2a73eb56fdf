"""Schedules of checkpoints in the IR: the bits of the plain gradient, and no more iterations again than need be."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from nnkit.core.autodiff.emit_structured import COUNTER
from nnkit.core.autodiff.loop_schedules import _split
from nnkit.core.driver.stages import advance
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, finish_function, start_function
from nnkit.core.ir.loop_schedules import LoopSchedule, schedule_of
from nnkit.core.ops import Return
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

PROGRAM = """module "loops"
stage raw

!SCHEDULE
func @f: (<3 x f64>, <3 x f64>, i64) -> <3 x f64> {
'entry(%x: <3 x f64>, %w: <3 x f64>, %n: i64):
    %v = cos %w: <3 x f64>
    %y, %ys = for -1: i64 upto BOUND carrying %x: <3 x f64> stacking STACK {
    'body(%i: i64, %c: <3 x f64>):
        %0 = sin %c: <3 x f64>
        %1 = multiply %0: <3 x f64>, %v: <3 x f64>
        %j = dataTypeCast %i: i64 to f64
        %2 = multiply %1: <3 x f64>, %j: f64
        %3 = multiply %2: <3 x f64>, %w: <3 x f64>
        %4 = add %3: <3 x f64>, %c: <3 x f64>
        yield %4: <3 x f64>, %1: <3 x f64>
    }
    %s = reduce %ys: STACK by add along 0
    %r = add %y: <3 x f64>, %s: <3 x f64>
    return %r: <3 x f64>
}

[gradient @f wrt 0, 1 seedable]
func @df: (<3 x f64>, <3 x f64>, i64, <3 x f64>) -> (<3 x f64>, <3 x f64>)
"""

PLAIN = PROGRAM.replace("%y, %ys = for", "%y = for").replace(" stacking STACK", "")
PLAIN = PLAIN.replace("yield %4: <3 x f64>, %1: <3 x f64>", "yield %4: <3 x f64>")
PLAIN = PLAIN.replace("    %s = reduce %ys: STACK by add along 0\n", "")
PLAIN = PLAIN.replace("%r = add %y: <3 x f64>, %s: <3 x f64>", "%r = negate %y: <3 x f64>")

SCHEDULES = ["everySqrt", "binomial_1", "binomial_2", "binomial_3", "binomial_9"]
POINT = np.array([0.3, 0.5, 0.7]), np.array([1.1, 0.9, 0.7])
SEED = np.array([1.0, 2.0, 3.0])


def module_of(text: str, schedule: str, n: int, bound: str) -> Module:
    text = text.replace("SCHEDULE", schedule).replace("STACK", f"<{n + 1} x 3 x f64>")
    module = parse_module(text.replace("BOUND", bound))
    verify(module)
    advance(module, Stage.OPTIMIZABLE, "df")
    verify(module)
    return module


def gradient(text: str, schedule: str, n: int, bound: str) -> list[bytes]:
    found = evaluate(module_of(text, schedule, n, bound), "df", *POINT, n, SEED)
    return [x.tobytes() for x in found]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 20, 40])
def test_a_schedule_changes_no_bit(n: int, schedule: str) -> None:
    for bound in ("%n: i64", f"{n}: i64"):
        assert gradient(PLAIN, schedule, n, bound) == gradient(PLAIN, "checkpoint", n, bound)


@pytest.mark.parametrize("schedule", ["everySqrt", "binomial_2"])
def test_what_is_stacked_has_its_cotangents(schedule: str) -> None:
    for n in (1, 6):
        found = gradient(PROGRAM, schedule, n, f"{n}: i64")
        assert found == gradient(PROGRAM, "checkpoint", n, f"{n}: i64")


def test_states_are_kept_and_all_iterations_are_not() -> None:
    """One function is the step; the loop forward is as it was."""
    text = print_module(module_of(PLAIN, "binomial_3", 99, "99: i64"))
    assert "100 x 3" not in text and "enum" not in text
    assert text.count("func @f_step:") == 1
    text = print_module(module_of(PLAIN, "everySqrt", 99, "99: i64"))
    assert "stacking <10 x 3 x f64>" in text and "100 x 3" not in text


@cache
def least_again(n: int, slots: int) -> int:
    """The fewest iterations computed again of any schedule, by trying all."""
    if n <= 1:
        return 0
    if slots == 0:
        return 1 << 40
    return min(m + least_again(n - m, slots - 1) + least_again(m, slots) for m in range(1, n))


def splitter(slots: int) -> Callable[[int], int]:
    """After how many of n iterations the next state is saved, as the IR computes it."""
    b = start_function([COUNTER], ["count"])
    b.emit_many(Return(), [_split(b, slots, b.block.arguments[0])])
    module = Module()
    module.add(finish_function("split", b, COUNTER))
    return cache(lambda n: int(evaluate(module, "split", n)))


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_no_schedule_computes_fewer_iterations_again(slots: int) -> None:
    splits = {s: splitter(s) for s in range(1, slots + 1)}

    def again(n: int, s: int) -> int:
        total = 0
        while n > 1:
            m = splits[s](n)
            assert 1 <= m < n
            total += m + (again(n - m, s - 1) if s > 1 else 0)
            assert s > 1 or n - m == 1
            n = m
        return total

    for n in range(1, 36):
        assert again(n, slots) == least_again(n, slots)
        times = next(r for r in range(n + 1) if math.comb(slots + r, slots) >= n)
        assert again(n, slots) == times * n - math.comb(slots + times, slots + 1)


def test_names() -> None:
    for schedule in (LoopSchedule(), LoopSchedule(1), LoopSchedule(64)):
        assert schedule_of(["inline", schedule.attribute]) == schedule
    for wrong in ("binomial", "binomial_0", "binomial_65", "binomial_x", "everysqrt"):
        assert schedule_of([wrong]) is None
