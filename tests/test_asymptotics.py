"""Gradients grow with programs as programs do: `benchmarks.asymptotics`, on sizes that are quick."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchmarks.asymptotics import KINDS, exponent, in_a_process, instructions, measure, table
from nnkit import f64
from nnkit.core.ir.surgery import walk
from nnkit.core.text import parse_module

LOOPS = ("norm", "rows", "rows-late", "updates", "steps", "while", "recursion")
"""Programs whose text does not grow with their size."""


def count(kind: str, size: int) -> int:
    _, derivative, arguments = KINDS[kind][0](size)
    return instructions(derivative, arguments)


@pytest.mark.parametrize("kind", LOOPS)
def test_the_gradient_of_a_loop_takes_time_in_proportion(kind: str) -> None:
    """16 times the iterations: a quadratic gradient would take 256 times as long, 48 leaves room for noise."""
    small, large = measure(kind, 500), measure(kind, 8_000)
    assert small.instructions == large.instructions
    assert large.gradient < 48 * small.gradient


def test_a_gradient_has_as_many_instructions_as_the_program_in_proportion() -> None:
    assert count("product", 1_000) <= 5_000
    calls = [count("calls", size) for size in (10, 20, 40)]
    assert calls[2] - calls[1] == 2 * (calls[1] - calls[0])


def test_what_is_called_a_hundred_times_stays_a_call() -> None:
    """So the code of unrolled steps is that of one step, and a call for each."""
    _, derivative, arguments = KINDS["unrolled"][0](120)
    module = parse_module(derivative.ir(*arguments, stage="optimized"))
    names = [i.op.name for f in module.functions.values() if f.body for i in walk(f.body)]
    assert names.count("apply") == 240 and names.count("tanh") == 4


def test_orders_of_derivatives_multiply_instructions_by_less_than_two() -> None:
    counts = [count("order", size) for size in range(2, 7)]
    assert all(after < 2 * before for before, after in pairwise(counts))


def test_coefficients_of_series_take_instructions_as_the_square_of_their_order() -> None:
    """Twice the order is at most four times as many, less what is there at any order."""
    counts = [count("taylor", size) for size in (1, 8, 16, 32)]
    assert all(after < 4 * before for before, after in pairwise(counts[1:]))
    assert counts[1] < count("order", 6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_the_derivative_of_its_function(kind: str) -> None:
    """Of each, for a small size, along the derivative by the first argument."""
    function, derivative, arguments = KINDS[kind][0](3)
    if kind in ("order", "taylor"):
        function, derivative = KINDS[kind][0](1)[:2]
    point = np.asarray(arguments[0], np.float64)
    found = derivative(*arguments)
    by_first = np.asarray(found[0] if isinstance(found, tuple) else found)
    direction = np.cos(np.arange(point.size)).reshape(point.shape)
    ends = [
        np.asarray(function(*(_like(arguments[0], point + s * 1e-6 * direction), *arguments[1:])))
        for s in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose((by_first * direction).sum(), expected, rtol=1e-6, atol=1e-8)


def _like(model: object, array: Any) -> object:
    return array if isinstance(model, np.ndarray) else f64(float(array))


def test_the_command_measures_in_processes_of_its_own() -> None:
    row = [in_a_process("steps", size) for size in (10, 20)]
    lines = table("steps", row).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 10", "| 20", "| exponent"]
    assert exponent(row, lambda one: one.instructions) == 0
