"""Schedules of checkpoints: the same bits as without, few states, and few iterations computed again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, LoopSchedule, Rep, Scalar, Struct, Tensor1D, f64, i64

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number = Scalar[f64]
Count = Scalar[i64]
Row = Tensor1D[f64]
Schedule = LoopSchedule | None

SCHEDULES = [nk.every_sqrt(), nk.binomial(3)]
X, W = np.array([0.3, 0.5, 0.7]), np.array([1.1, 0.9, 0.7])


def counted(schedule: Schedule) -> Any:
    """With two values carried, and the index used."""

    @nk.staged
    def f(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        def step(i: Any, c: Any) -> Any:
            return nk.sin(c[0]) * w + c[1], c[1] * w + i.cast(f64)

        a, b = nk.fori(0, n, step, (x, x), checkpoint=schedule)
        return a * b

    return f


def repeated(schedule: Schedule) -> Any:
    @nk.staged
    def f(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        start = (nk.const(i64(0)), x)

        def step(c: Any) -> Any:
            return c[0] + 1, nk.sin(c[1]) * w + x

        return nk.while_loop(lambda c: c[0] < n, step, start, checkpoint=schedule)[1]

    return f


def nested(schedule: Schedule) -> Any:
    """A loop of known length in one that is not, with a choice in it."""

    @nk.staged
    def f(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        def inner(j: Any, q: Any) -> Any:
            return nk.cond(q.sum() > 1.0, lambda: nk.sin(q) * w, lambda: nk.exp(-q) + x)

        def outer(i: Any, c: Any) -> Any:
            return nk.fori(0, 5, inner, c, checkpoint=schedule) + c * w

        return nk.fori(0, n, outer, x, checkpoint=schedule)

    return f


def scanned(schedule: Schedule) -> Any:
    """Of as many rows as there are."""

    @nk.staged
    def f(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        def step(c: Any, e: Any) -> Any:
            return nk.sin(c) * e + c, c * e

        total, ys = x.scan(w, step, checkpoint=schedule)
        folded = x.fold(w, lambda c, e: nk.tanh(c * e) + x, checkpoint=schedule)
        return total + folded + nk.stack([ys.tensor().sum(axis=0)])[0]

    return f


def known(n: int) -> Callable[[Schedule], Any]:
    def make(schedule: Schedule) -> Any:
        @nk.staged
        def f(x: Rep[Row], w: Rep[Row], _: Rep[Count]) -> Rep[Row]:
            def step(i: Any, c: Any) -> Any:
                return nk.sin(c) * w + c * i.cast(f64)

            return nk.fori(0, n, step, x, checkpoint=schedule)

        return f

    return make


class Body(Struct):
    x: Field[Row]
    v: Field[Row]


def test_structs_and_recursion_in_a_scheduled_loop() -> None:
    """What is carried is a struct, and its step calls a function that calls itself."""

    @nk.staged
    def power(x: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        return nk.cond(n == 0, lambda: x * 0.0 + 1.0, lambda: x * power(x, n - 1))

    def make(schedule: Schedule) -> Any:
        @nk.staged
        def f(body: Rep[Body], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
            def step(i: Any, one: Any) -> Any:
                v = one[Body.v] - nk.sin(one[Body.x]) * power(w, n)
                return nk.build(Body, Body.x << one[Body.x] + v * 0.1, Body.v << v)

            return nk.fori(0, n, step, body, checkpoint=schedule)[Body.x]

        return f

    start, n = Body(Tensor1D(X), Tensor1D(W)), i64(5)
    expected, by_w = nk.gradient(of=make(None), wrt=(0, 1))(start, W, n)
    for schedule in SCHEDULES:
        found, other = nk.gradient(of=make(schedule), wrt=(0, 1))(start, W, n)
        for one, same in ((found.x, expected.x), (found.v, expected.v), (other, by_w)):
            np.testing.assert_array_equal(one.numpy(), same.numpy())


def gradients(f: Any, n: int) -> list[bytes]:
    return [g.numpy().tobytes() for g in nk.gradient(of=f, wrt=(0, 1))(X, W, i64(n))]


@pytest.mark.parametrize(
    ("form", "schedule"),
    [
        (counted, nk.binomial(3)),
        (repeated, nk.every_sqrt()),
        (nested, nk.binomial(2)),
        (nested, nk.every_sqrt()),
    ],
)
def test_any_number_of_iterations_has_the_same_bits(form: Any, schedule: LoopSchedule) -> None:
    plain, scheduled = form(None), form(schedule)
    for n in (0, 1, 2, 7, 20, 45):
        assert scheduled(X, W, i64(n)).numpy().tobytes() == plain(X, W, i64(n)).numpy().tobytes()
        assert gradients(scheduled, n) == gradients(plain, n), n


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.attribute)
def test_a_known_number_of_iterations_has_the_same_bits(schedule: LoopSchedule) -> None:
    assert gradients(known(7)(schedule), 0) == gradients(known(7)(None), 0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.attribute)
def test_rows_have_the_same_bits(schedule: LoopSchedule) -> None:
    assert gradients(scanned(schedule), 0) == gradients(scanned(None), 0)


@pytest.mark.parametrize(
    ("form", "schedule"), [(counted, nk.binomial(2)), (repeated, nk.every_sqrt())]
)
def test_second_derivatives(form: Any, schedule: LoopSchedule) -> None:
    """Forward over reverse and reverse over reverse."""

    def second(f: Any) -> list[Any]:
        slope = nk.gradient(of=f, wrt=1)
        total = nk.fn(Row, Row, Count)(lambda x, w, n: f(x, w, n).sum())
        square = nk.fn(Row, Row, Count)(lambda x, w, n: (slope(x, w, n) * x).sum())
        n = i64(4)
        product = nk.hvp(of=total, wrt=(0, 1))(X, W, n, W, X)
        return [*product, *nk.gradient(of=square, wrt=(0, 1))(X, W, n)]

    for found, expected in zip(second(form(schedule)), second(form(None)), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-13)


def test_forward_mode_passes_through_as_ever() -> None:
    one, other = (nk.jvp(repeated(s), wrt=(0, 1)) for s in (None, nk.binomial(2)))
    expected, found = (d(X, W, i64(6), W, X)[1].numpy() for d in (one, other))
    np.testing.assert_array_equal(found, expected)


def test_nothing_is_stacked_or_taped_of_all_iterations() -> None:
    f = known(100)
    for schedule, extent in ((nk.every_sqrt(), 10), (nk.binomial(3), 0), (None, 100)):
        text = nk.gradient(of=f(schedule), wrt=1).ir(X, W, i64(0), stage="optimizable")
        assert ("x 3 x f64>" in text) == bool(extent)
        assert all(f"<{k} x 3 x f64>" not in text for k in {10, 99, 100} - {extent})
    text = nk.gradient(of=counted(nk.binomial(3)), wrt=1).ir(X, W, i64(0), stage="optimizable")
    assert "enum" not in text


PEAK = """
import re, sys
import numpy as np
import nnkit as nk
from tests.nnkit.test_checkpointing import long

d, x, n = nk.gradient(of=long(eval(sys.argv[1])), wrt=(0, 1)), np.full(1000, 0.5), int(sys.argv[2])
d(x, x, nk.i64(100))
before = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
d(x, x, nk.i64(n))
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) - before)
"""


def long(schedule: Schedule) -> Any:
    @nk.staged
    def f(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Row]:
        return nk.fori(0, n, lambda i, c: c * w + x, x, checkpoint=schedule)

    return f


def peak(schedule: str, n: int) -> int:
    """Bytes that the gradient takes for n iterations on 1,000 numbers, 8 kB each."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PEAK, schedule, str(n)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return int(found.stdout) * 1024


def test_memory_is_that_of_the_states() -> None:
    """4,000 iterations would keep 32 MB; √n states are 0.5 MB, three slots 24 kB."""
    assert peak("None", 4000) > 25e6
    assert peak("nk.every_sqrt()", 4000) < 8e6
    assert peak("nk.binomial(3)", 4000) < 4e6


def test_errors() -> None:
    for wrong in (0, -1, 65, 2.5, True):
        with pytest.raises(nk.StagingError, match="takes 1 to 64 slots"):
            nk.binomial(wrong)
    with pytest.raises(nk.StagingError, match="checkpoint of fori is a schedule, not 3"):
        known(3)(3).ir(X, W, i64(0))
