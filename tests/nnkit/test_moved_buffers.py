"""Loops whose values change places: buffers move instead, and are where they belong when the loop has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, f64, staged
from nnkit.core.schedule.switches import VARIABLE
from nnkit.core.types import Array

Vector = Rep[Tensor1D[f64]]
Step = Callable[[Sequence[Any]], list[Any]]
SIZES = (40, 33, 3)  # the last ones are copied


def random_step(rng: Random, count: int) -> Step:
    """Each of so many vectors becomes one of them as it is, or something new."""
    chosen: list[tuple[int, int, str]] = []
    for _ in range(count):
        kind = rng.choice(("kept", "kept", "sum", "other elements"))
        chosen.append((rng.randrange(count), rng.randrange(count), kind))

    def step(xs: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for one, other, kind in chosen:
            roll = np.roll if isinstance(xs[0], np.ndarray) else nk.roll
            if kind == "kept":
                found.append(xs[one])
            elif kind == "sum":
                found.append(0.5 * (xs[one] + xs[other]) + 1.0)
            else:
                found.append(0.5 * (xs[one] - roll(xs[other], 1)))
        return found

    return step


def rounds(step: Step, times: int, xs: Sequence[Array]) -> list[Array]:
    for _ in range(times):
        xs = step(xs)
    return list(xs)


def counted(step: Step, times: int) -> Any:
    def loop(xs: Sequence[Vector]) -> Any:
        return nk.fori(0, times, lambda _, carried: nk.tup(*step(carried.unpack())), nk.tup(*xs))

    return loop


def bounded(step: Step, times: int) -> Any:
    """The same as a loop that asks each time."""

    def loop(xs: Sequence[Vector]) -> Any:
        first = nk.tup(nk.const(nk.i64(0)), *xs)

        def body(carried: Any) -> Any:
            number, *rest = carried.unpack()
            return nk.tup(number + 1, *step(rest))

        _, *found = nk.while_loop(lambda x: x.unpack()[0] < times, body, first).unpack()
        return nk.tup(*found)

    return loop


def with_vectors(count: int, loop: Any) -> Any:
    """The staged function of so many vectors."""
    if count == 2:

        def two(a: Vector, b: Vector) -> Any:
            return loop([a, b])

        return staged(two)

    def three(a: Vector, b: Vector, c: Vector) -> Any:
        return loop([a, b, c])

    return staged(three)


@pytest.mark.parametrize("seed", range(60))
def test_loops_compute_what_numpy_does(seed: int) -> None:
    rng, data = Random(seed), np.random.default_rng(seed)
    count, size = rng.choice((2, 3)), rng.choice(SIZES)
    step = random_step(rng, count)
    xs = [data.integers(-8, 9, size).astype(np.float64) for _ in range(count)]
    form = rng.choice((counted, bounded))
    for times in (0, 1, 2, 3, 4, 7):
        found = with_vectors(count, form(step, times))(*xs)
        for one, wanted in zip(found, rounds(step, times, xs), strict=True):
            np.testing.assert_array_equal(np.asarray(one), wanted, f"{times} times")


def wave(times: int) -> Any:
    def body(_: Any, carried: Any) -> Any:
        before, now = carried.unpack()
        return nk.tup(now, 2.0 * now - before + 0.25 * (nk.roll(now, 1) - nk.tanh(now)))

    def energy(a: Vector, b: Vector) -> Any:
        before, now = nk.fori(0, times, body, nk.tup(a, b)).unpack()
        return (before * now).sum()

    return staged(energy)


def test_gradients_are_those_without_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop that stacks what each step had, too, and one in another."""
    data = np.random.default_rng(1)
    xs = [data.normal(size=50) for _ in range(2)]
    for times in (1, 2, 5):
        moved = nk.value_and_gradient(of=wave(times), wrt=(0, 1))(*xs)
        with monkeypatch.context() as patch:
            patch.setenv(VARIABLE, "moves")
            copied = nk.value_and_gradient(of=wave(times), wrt=(0, 1))(*xs)
        flat = [(moved[0], copied[0]), *zip(moved[1], copied[1], strict=True)]
        for one, other in flat:
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-13)


def test_nothing_is_copied_in_a_step() -> None:
    """The body is one kernel, whose result lies where the value lay that is given up."""

    @staged
    def f(a: Vector, b: Vector, c: Vector) -> Any:
        def body(_: Any, carried: Any) -> Any:
            x, y, z = carried.unpack()
            return nk.tup(y, z, x + y * z)

        return nk.fori(0, 9, body, nk.tup(a, b, c))

    text = f.ir(*[np.ones(50)] * 3, stage="schedule")
    body, _, _ = text[text.index("carrying") :].partition("yield %1")
    assert body.count("kernel of") == 1
    assert "writing <50 x f64> overwriting (0, 0), (1, 0), (2, 0) into output 0" in body


def test_nested_loops_move_too() -> None:
    @staged
    def f(a: Vector, b: Vector) -> Any:
        def inner(_: Any, carried: Any) -> Any:
            x, y = carried.unpack()
            return nk.tup(y, x + y)

        def outer(_: Any, carried: Any) -> Any:
            x, y = nk.fori(0, 3, inner, carried).unpack()
            return nk.tup(y, x)

        return nk.fori(0, 3, outer, nk.tup(a, b))

    a, b = np.arange(64.0), np.arange(64.0) * 3 + 1
    x, y = a, b
    for _ in range(3):
        for _ in range(3):
            x, y = y, x + y
        x, y = y, x
    found = f(a, b)
    np.testing.assert_array_equal(np.asarray(found[0]), x)
    np.testing.assert_array_equal(np.asarray(found[1]), y)


def test_donated_arguments_move_too() -> None:
    @staged
    def f(a: Vector, b: Vector) -> Any:
        return nk.fori(
            0, 5, lambda _, carried: nk.tup(*reversed(carried.unpack())), nk.tup(a + 0.0, b)
        )

    a, b = nk.Tensor1D(np.arange(64.0)), nk.Tensor1D(np.arange(64.0) + 100)
    found = nk.donate(f, 0, 1)(a, b)
    np.testing.assert_array_equal(np.asarray(found[0]), np.arange(64.0) + 100)
    np.testing.assert_array_equal(np.asarray(found[1]), np.arange(64.0))
