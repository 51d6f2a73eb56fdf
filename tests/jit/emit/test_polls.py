"""Polls: where they are written, that they change nothing, and that they stop a program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import passes_to
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Stage
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule import safepoints
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.jit.emit import polls
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.runtime.process import this_process
from tests.programs import Program, flat, programs

from .lowering import check, scheduled_module
from .running import run
from .test_calls import ACKERMANN, FACTORIAL
from .test_program import EXACT


@contextmanager
def polling_everywhere() -> Iterator[None]:
    """Every loop is long, every poll is due, gives up the GIL and takes it back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safepoints, "LONG", 0)
        patch.setattr(polls, "LONG", 0)
        patch.setattr(polls, "BLOCK", 3)
        patch.setattr(polls, "MOST", 10**9)
        patch.setattr(polls, "_LATER", 1)
        patch.setattr(polls, "PERIOD", 0)
        yield


def loop(kind: str, more: str = "%c = lessThan %i: i64, %n: i64") -> str:
    """@f(n, x) = x + n, by a loop with a body of one instruction."""
    if kind == "for":
        return """
func @f: (i64, f64) -> f64 {
'entry(%n: i64, %x: f64):
    %r = for 0: i64 upto %n: i64 carrying %x: f64 {
    'body(%i: i64, %a: f64):
        %b = add %a: f64, 1: f64
        yield %b: f64
    }
    return %r: f64
}
"""
    return f"""
func @f: (i64, f64) -> f64 {{
'entry(%n: i64, %x: f64):
    %s, %r = while carrying 0: i64, %x: f64 {{
    'condition(%i: i64, %a: f64):
        {more}
        yield %c: bool
    }} do {{
    'body(%i: i64, %a: f64):
        %j = add %i: i64, 1: i64
        %b = add %a: f64, 1: f64
        yield %j: i64, %b: f64
    }}
    return %r: f64
}}
"""


def polls_in(text: str) -> int:
    """How many polls are written for @f."""
    module = scheduled_module(text)
    writer = ModuleWriter()
    program = emit_program(
        writer, module.functions["f"], "k", functions=module.functions, process=this_process()
    )
    count = writer.text().count(f"@{polls._POLL}(")
    assert program.polls or not count
    return count


def test_short_code_has_none() -> None:
    assert not polls_in(loop("for").replace("upto %n", "upto 100"))


def test_loops_of_unknown_length_and_recursion_have() -> None:
    assert polls_in(loop("for")) == polls_in(loop("while")) == 2  # the function, and its only call
    assert polls_in(FACTORIAL) == 2


@pytest.mark.parametrize("kind", ["for", "while"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_loops_run_as_often_as_they_should(kind: str, everywhere: bool) -> None:
    counts = [-5, 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1000]
    if everywhere:
        with polling_everywhere():
            for n in counts:
                assert check(loop(kind), n, 0.5)[0] == max(n, 0) + 0.5
    else:
        for n in (*counts, 2001):
            assert check(loop(kind), n, 0.5)[0] == max(n, 0) + 0.5


def test_bounds_at_the_ends_of_the_integers() -> None:
    text = loop("for").replace("for 0: i64", "for %n: i64").replace("upto %n", "upto %m")
    text = text.replace("(i64, f64) ->", "(i64, i64, f64) ->").replace(
        "(%n: i64,", "(%n: i64, %m: i64,"
    )
    low, high = -(2**63), 2**63 - 1
    with polling_everywhere():
        for first, last in ((low, low + 10), (high - 10, high), (high, low), (low, low)):
            assert check(text, first, last, 0.0)[0] == max(0, last - first)


def test_recursion_hands_its_fuel_on() -> None:
    with polling_everywhere():
        assert check(FACTORIAL, 20)[0] == 2432902008176640000
        assert check(ACKERMANN, 2, 3)[0] == 9


@given(programs(ops=EXACT, control=True), st.booleans())
def test_polls_change_nothing(program: Program, main: bool) -> None:
    """Of programs with control flow, in the main thread, which looks for signals, and in another one."""
    module, arguments = program.module, program.arguments
    wanted = flat(evaluate(module, program.entry, *arguments))
    module.stage = Stage.OPTIMIZABLE
    run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    generate_compute(module)
    schedule(module, Target(vector_bytes=64))
    found: list[object] = []

    def compute() -> None:
        with polling_everywhere():
            entry = module.functions[program.entry]
            found.extend(run(entry, flat(arguments), module.functions))

    if main:
        compute()
    else:
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)


class Stopped(Exception):
    """Raised by the handler of a signal."""


def test_a_handler_that_raises_stops_the_program() -> None:
    module = scheduled_module(loop("while", "%c = greaterThanOrEqual %a: f64, 0: f64"))

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stopped):
            run(module.functions["f"], [np.asarray(0), np.asarray(0.5)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
