"""What gradients of loops and recursion take: time and memory that grow with the iterations and are given back, and
stacks that end; signals stop them, and threads may call one at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f64, i64
from nnkit.core.ir.surgery import walk
from nnkit.jit.runtime.process import MOST_KEPT, this_process

from .test_interrupts import stops

Number = Scalar[f64]
Count = Scalar[i64]
Row = Tensor1D[f64]


def step(x: Rep[Number], r: Rep[Number]) -> Rep[Number]:
    return nk.sin(r) * x + r * 0.5


@nk.staged
def counted(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, r: step(x, r), x)


@nk.staged
def known(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    """The same 1,000 times, in a loop of n iterations."""

    def thousand(_: Any, r: Rep[Number]) -> Rep[Number]:
        return nk.fori(0, 1000, lambda i, r: step(x, r), r)

    return nk.fori(0, n // 1000, thousand, x)


@nk.staged
def repeated(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    start = (nk.const(i64(0)), x)
    return nk.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(x, c[1])), start)[1]


@nk.staged
def recursive(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.cond(n == 0, lambda: x, lambda: step(x, recursive(x, n - 1)))


FORMS: dict[str, Any] = {
    "counted": nk.gradient(of=counted, wrt=0),
    "known": nk.gradient(of=known, wrt=0),
    "repeated": nk.gradient(of=repeated, wrt=0),
    "recursive": nk.gradient(of=recursive, wrt=0),
}


def slope(x: float, n: int) -> float:
    """The derivative of all of them."""
    r, dr = x, 1.0
    for _ in range(n):
        r, dr = np.sin(r) * x + r * 0.5, np.cos(r) * dr * x + np.sin(r) + dr * 0.5
    return dr


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def shortest(run: Callable[[], object], times: int = 7) -> float:
    """Seconds that `run` takes at best."""
    found: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


@pytest.mark.parametrize("form", FORMS)
def test_ten_thousand_iterations_or_calls(form: str) -> None:
    np.testing.assert_allclose(FORMS[form](f64(0.9), i64(10_000)), slope(0.9, 10_000), rtol=1e-9)


@pytest.mark.parametrize("form", ["counted", "known", "repeated"])
def test_the_time_of_a_loop_is_linear(form: str) -> None:
    """Ten times the iterations take ten times as long: 100 times if anything were quadratic."""
    d, x = FORMS[form], f64(0.9)
    few, many = i64(10_000), i64(100_000)
    assert shortest(lambda: d(x, many)) < 40 * shortest(lambda: d(x, few))


def test_the_time_of_a_recursion_is_linear() -> None:
    d, x = FORMS["recursive"], f64(0.9)
    assert shortest(lambda: d(x, i64(20_000))) < 40 * shortest(lambda: d(x, i64(2_000)))


@pytest.mark.parametrize("form", FORMS)
def test_what_a_call_saves_is_given_back(form: str) -> None:
    """1,000 calls that save 10 to 50 KB each."""
    d, x, n = FORMS[form], f64(0.9), i64(1000)
    for _ in range(50):
        d(x, n)
    before = resident()
    for _ in range(1000):
        d(x, n)
    assert resident() - before < 2e6


def test_what_a_call_has_saved_is_given_back_when_it_stops() -> None:
    """By an index that is outside, at the end of a loop that has saved 1,000 records."""

    @nk.staged
    def f(xs: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        return nk.fori(0, n, lambda i, r: step(xs[i], r), xs[0])

    d, xs = nk.gradient(of=f, wrt=0), Tensor1D(np.ones(1000))

    def fail() -> None:
        with pytest.raises(nk.IndexOutOfRangeError):
            d(xs, i64(1001))

    for _ in range(50):
        fail()
    before = resident()
    for _ in range(500):
        fail()
    assert resident() - before < 2e6


PEAK = """
import re, sys
import nnkit as nk
from tests.nnkit.test_resources_of_gradients import FORMS

d, n = FORMS[sys.argv[1]], int(sys.argv[2])
d(nk.f64(0.9), nk.i64(1000))
d(nk.f64(0.9), nk.i64(n))
with open("/proc/self/status") as file:
    print(int(re.search(r"VmHWM:\\s*(\\d+) kB", file.read())[1]) * 1024)
"""


def peak(form: str, n: int) -> int:
    """The most memory of a process that takes the gradient of n iterations."""
    command = [sys.executable, "-c", PEAK, form, str(n)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(finished.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["counted", "repeated"])
def test_a_million_iterations_take_as_many_records(form: str) -> None:
    """Two numbers and the tape of those before, and up to as much again for where they lie."""
    few = peak(form, 1000)
    assert 16e6 < peak(form, 1_000_000) - few < 100e6


def test_a_recursion_that_is_too_deep_is_an_error() -> None:
    """In either half, whatever the depth, and it can be called again."""
    d = FORMS["recursive"]
    second = nk.gradient(of=d, wrt=0)
    for g in (d, second):
        with pytest.raises(nk.RecursionDepthError, match="too deep"):
            g(f64(0.9), i64(10_000_000))
        with pytest.raises(nk.RecursionDepthError, match="too deep"):
            g(f64(0.9), i64(-1))
        for n in range(30_000, 110_000, 5_000):
            with suppress(RecursionError):
                g(f64(0.9), i64(n))
        g(f64(0.9), i64(10_000))
    np.testing.assert_allclose(d(f64(0.9), i64(10)), slope(0.9, 10), rtol=1e-12)


@nk.staged
def added_up(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    """Nothing is saved, so the gradient is a backward loop alone."""
    return nk.fori(0, n, lambda i, r: r + nk.sin(x * i.cast(f64)), x)


@nk.staged
def climbing(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    """The forward loop counts for ever."""
    return nk.while_loop(lambda r: r >= n.cast(f64), lambda r: r + x, x)


def test_a_signal_stops_a_backward_loop() -> None:
    d = nk.gradient(of=added_up, wrt=0)
    expected = float(d(f64(0.5), i64(3)))
    for _ in range(2):
        stops(lambda: d(f64(0.5), i64(1 << 60)))
        assert float(d(f64(0.5), i64(3))) == expected


def test_a_signal_stops_what_counts_iterations() -> None:
    d = nk.gradient(of=climbing, wrt=0)
    stops(lambda: d(f64(0.5), i64(0)))
    assert float(d(f64(0.5), i64(1))) == 1.0


def test_what_was_saved_is_given_back_when_a_signal_comes() -> None:
    """Whether it stops the forward or the backward loop: of some 100 MB, nothing is kept."""
    d, n = FORMS["counted"], i64(1 << 60)
    d(f64(0.9), i64(10))
    found: list[int] = []
    for _ in range(4):
        stops(lambda: d(f64(0.9), n), after=0.1)
        found.append(resident())
    assert found[-1] - found[1] < 30e6


@pytest.mark.parametrize("form", FORMS)
def test_threads_call_one_gradient_at_once(form: str) -> None:
    """Each gets what it would get alone, to the last bit."""
    d = FORMS[form]
    cases = [(f64(0.1 * k), i64(700 * k)) for k in range(1, 7)]
    alone = [float(d(*case)) for case in cases]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            if float(d(*cases[number])) != alone[number]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


LIMITED = """
import re
import resource
import nnkit as nk
from tests.nnkit.test_resources_of_gradients import FORMS

d = FORMS["counted"]
d(nk.f64(0.9), nk.i64(10))
resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))
try:
    d(nk.f64(0.9), nk.i64(1 << 60))
except MemoryError as error:
    assert isinstance(error, nk.OutOfMemoryError)
    message, line, caret = str(error).split("\\n")
    kept = int(re.search(r"([\\d,]+) bytes are kept, and there are no \\d+ bytes more", message)[1].replace(",", ""))
    assert 10**8 < kept < 10**9, message
    assert "fori(" in line and "^" in caret, str(error)
    assert "checkpoint" in error.__notes__[0]
    print("stopped", float(d(nk.f64(0.9), nk.i64(0))))
"""

STATIC = """
import re
import resource
import numpy as np
import nnkit as nk

resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))
chain = nk.fn(nk.Tensor1D[nk.f64])(lambda x: nk.fori(0, 1_000_000, lambda i, c: nk.sin(c), x).sum())
try:
    nk.gradient(of=chain, wrt=0)(np.ones(1000))
except MemoryError as error:
    assert re.search(r"needs 8,0[\\d,]+ bytes, 8,000,000,000 of them for one value", str(error)), error
    assert error.__notes__[0].strip().startswith("<string>:8"), error.__notes__  # the loop; from 3.13 on its text, too
    print("refused")
"""


@pytest.mark.parametrize("form", ["counted", "known", "repeated"])
def test_a_tape_ends_before_the_memory_of_the_machine(form: str) -> None:
    """Linux would promise more, and end the process when it is used."""
    process = this_process()
    if process is None:
        pytest.skip("nothing is known of the process, so there is no limit")
    words: Any = process.kept
    limit, words[0][MOST_KEPT // 8] = words[0][MOST_KEPT // 8], 10**7
    try:
        with pytest.raises(nk.OutOfMemoryError, match=r"\d,\d{3},\d{3} bytes are kept") as caught:
            FORMS[form](f64(0.9), i64(1 << 20))
    finally:
        words[0][MOST_KEPT // 8] = limit
    assert f"{__name__.rpartition('.')[2]}.py" in str(caught.value)
    FORMS[form](f64(0.9), i64(1 << 10))


@pytest.mark.slow
def test_a_tape_larger_than_memory_is_an_error() -> None:
    """Where memory ends at a gigabyte."""
    command = [sys.executable, "-c", LIMITED]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout == "stopped 1.0\n", finished.stderr


def test_a_tape_of_known_size_that_is_larger_than_memory() -> None:
    command = [sys.executable, "-c", STATIC]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout == "refused\n", finished.stderr


@pytest.mark.parametrize("form", FORMS)
def test_what_may_find_no_memory_knows_its_line(form: str) -> None:
    """So in batches, where what decides may differ, and to second order."""
    g, x, n = FORMS[form], f64(0.3), i64(3)
    xs, ns = np.array([0.3, 0.4]), np.array([3, 5])
    batch = nk.vmap(g, in_axes=(0, 0)), (xs, ns)
    for f, arguments in ((g, (x, n)), batch, (nk.gradient(of=g, wrt=0), (x, n))):
        specialization = f._specialization(f._values(arguments))
        module, _ = specialization.module("compute")
        bodies = [function.body for function in module.functions.values() if function.body]
        allocations = [i for body in bodies for i in walk(body) if i.op.name == "allocateBytes"]
        assert allocations or form == "known"
        for instruction in allocations:
            place = instruction.location and instruction.location.resolve()
            assert place is not None and place.file == __file__
