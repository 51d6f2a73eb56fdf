"""Long-running code lets other threads run, and signals stop it: whatever it is doing, and it can be called again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i64
from tests.patience import PATIENCE

SOON = 1.0
"""Seconds within which a signal is handled."""


class Stopped(Exception):
    """Raised by the handler of a signal."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


@contextmanager
def alarm(
    handler: Callable[[int, FrameType | None], Any], after: float, every: float = 0
) -> Iterator[None]:
    """SIGALRM, handled by `handler`."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stops(run: Callable[[], object], after: float = 0.3) -> None:
    """Assert that a signal ends `run`, which would take for ever, soon after it comes."""
    start = time.monotonic()
    with alarm(stop, after), pytest.raises(Stopped):
        run()
    assert time.monotonic() - start < after + SOON * PATIENCE


@nk.staged
def climb(x: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
    return nk.while_loop(lambda x: x >= 0.0, lambda x: x + 1.0, x)


@nk.staged
def turn(n: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    return nk.fori(0, n, lambda _, x: nk.sin(x) + x, x)


@nk.staged
def turn_inside(n: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    return nk.fori(0, n, lambda _, x: nk.fori(0, 3, lambda _, x: nk.sin(x) + x, x), x)


@nk.staged
def fibonacci(n: Rep[Scalar[i64]]) -> Rep[Scalar[i64]]:
    return nk.cond(n < 2, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2))


X = Tensor1D(np.arange(5.0))
FOREVER = {
    "while": (lambda: climb(f64(0.0)), lambda: float(climb(f64(-2.0))) == -2),
    "for": (
        lambda: turn(i64(1 << 60), X),
        lambda: np.allclose(turn(i64(1), X), np.sin(np.arange(5)) + np.arange(5)),
    ),
    "nested": (
        lambda: turn_inside(i64(1 << 60), X),
        lambda: np.array_equal(turn_inside(i64(4), X), turn(i64(12), X)),
    ),
    "recursion": (lambda: fibonacci(i64(90)), lambda: int(fibonacci(i64(20))) == 6765),
}


@pytest.mark.parametrize("kind", FOREVER)
def test_a_signal_stops_it_and_it_can_be_called_again(kind: str) -> None:
    run, is_right = FOREVER[kind]
    assert is_right()
    for _ in range(2):
        stops(run)
        assert is_right()


def test_a_large_loop_nest_stops() -> None:
    """Without a loop of the program's: ten billion points, which take minutes."""
    n = 100_000

    @nk.staged
    def table(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return nk.sin(x.reshape(n, 1) * x.reshape(1, n)).sum(1)

    x = Tensor1D(np.linspace(0.0, 1.0, n))
    table.compile(x)
    stops(lambda: table(x))


def test_products_of_large_matrices_stop() -> None:
    """Four products, a second or so each."""

    @nk.staged
    def fourth(x: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
        return nk.tanh(nk.tanh(nk.tanh(nk.tanh(x @ x) @ x) @ x) @ x)

    x = Tensor2D(np.random.default_rng(0).normal(size=(3500, 3500)))
    fourth.compile(x)
    stops(lambda: fourth(x))


def test_a_long_running_sum_stops() -> None:
    @nk.staged
    def sums(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        for _ in range(60):
            x = nk.cumsum(x, 0) * 1e-8
        return x

    x = Tensor1D(np.ones(20_000_000))
    sums.compile(x)
    stops(lambda: sums(x))


def test_other_threads_run_meanwhile() -> None:
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    stops(lambda: climb(f64(0.0)), after=0.6)
    done.set()
    thread.join()
    assert ticks[0] > 20


def test_a_handler_that_returns_changes_nothing_and_may_call_the_same_function() -> None:
    n, few = i64(6_000_000), i64(1000)
    wanted, inside = turn(n, X).numpy().copy(), turn(few, X).numpy().copy()
    found: list[bool] = []

    def call(_number: int, _frame: FrameType | None) -> None:
        found.append(np.array_equal(turn(few, X), inside))

    with alarm(call, 0.02, 0.02):
        assert np.array_equal(turn(n, X), wanted)
    assert found and all(found)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # in a __del__ of llvmlite
def test_what_a_handler_raises_during_compilation_is_raised_as_it_is() -> None:
    """At moments all over tracing, passes and LLVM; the function can be compiled afterwards."""
    x = Tensor2D(np.ones((3, 4)))
    stopped = 0
    for moment in np.linspace(0.001, 0.12, 25):

        @nk.staged
        def model(x: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
            return nk.softmax(nk.tanh(x) @ x.T, axis=1)

        slope = nk.gradient(of=model, wrt=0)
        try:
            with alarm(stop, float(moment)):
                slope(x)
        except Stopped:
            stopped += 1
        assert slope(x).numpy().shape == (3, 4)
    assert stopped


def test_a_stopped_program_gives_its_memory_back() -> None:
    """Recursion with an arena on the heap in each call, stopped in the middle."""

    @nk.staged
    def deep(n: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return nk.cond(n == 0, lambda: turn(i64(1 << 60), x), lambda: deep(n - 1, x * 0.5) + x)

    x = Tensor1D(np.ones(1000))
    deep.compile(i64(0), x)
    with open("/proc/self/statm") as file:
        pages = [int(file.read().split()[1])]
    for _ in range(3):
        stops(lambda: deep(i64(1000), x), after=0.05)
        with open("/proc/self/statm") as file:
            pages.append(int(file.read().split()[1]))
    assert (pages[-1] - pages[1]) * os.sysconf("SC_PAGESIZE") < 8e6  # one run needs 16 MB


CTRL_C = """
import signal
import numpy as np, nnkit as nk
from nnkit import Rep, Scalar, f64

# a shell lets the jobs that it runs in the background ignore Ctrl-C
signal.signal(signal.SIGINT, signal.default_int_handler)

@nk.staged
def climb(x: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
    return nk.while_loop(lambda x: x >= 0.0, lambda x: x + 1.0, x)

climb.compile(f64(0.0))
print("ready", flush=True)
try:
    climb(f64(0.0))
except KeyboardInterrupt:
    print("interrupted", float(climb(f64(-2.0))), flush=True)
"""


def test_ctrl_c_is_a_keyboard_interrupt() -> None:
    command = [sys.executable, "-c", CTRL_C]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted -2.0\n"
        assert time.monotonic() - start < SOON * PATIENCE


CTRL_C_IN_PRODUCTS = """
import signal
import numpy as np, nnkit as nk
from nnkit import Rep, Scalar, Tensor2D, f32, i64

signal.signal(signal.SIGINT, signal.default_int_handler)

@nk.staged
def power(n: Rep[Scalar[i64]], x: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.fori(0, n, lambda _, y: (y @ x) @ x.T, x)

x = Tensor2D(np.linalg.qr(np.random.default_rng(0).normal(size=(700, 700)))[0].astype(np.float32))
power.compile(i64(1), x)
assert "kernel of" in power.ir(i64(1), x, stage="schedule")
print("ready", flush=True)
try:
    power(i64(1 << 60), x)
except KeyboardInterrupt:
    print("interrupted", np.abs(power(i64(2), x).numpy() - x.numpy()).max() < 1e-4, flush=True)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_kernels_of_products(threads: str) -> None:
    """Of 0.7 G operations each, in the main thread, which shares them with those of the pool."""
    command = [sys.executable, "-c", CTRL_C_IN_PRODUCTS]
    environment = {**os.environ, "NNKIT_NUM_THREADS": threads}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted True\n"
        assert time.monotonic() - start < SOON * PATIENCE


def test_short_calls_do_not_wait_for_threads_that_compute_in_python() -> None:
    """They keep the GIL: giving it up would cost each of them 5 ms here."""

    @nk.staged
    def root(a: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
        return nk.while_loop(lambda x: abs(x * x - a) > 1e-9 * a, lambda x: (x + a / x) / 2, a)

    two, done = f64(2.0), threading.Event()

    def spin() -> None:
        while not done.is_set():
            pass

    root(two)
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        times: list[float] = []
        for _ in range(200):
            start = time.perf_counter()
            root(two)
            times.append(time.perf_counter() - start)
    finally:
        done.set()
        thread.join()
    assert sorted(times)[len(times) // 2] < 1e-3 * PATIENCE
