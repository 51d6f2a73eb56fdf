"""Long functions in parts: the same results, failures and polls."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f64, i64
from nnkit.core.errors import CheckError
from nnkit.core.schedule.switches import VARIABLE
from nnkit.jit.emit import parts
from tests.programs import Program, programs

from .test_program import EXACT, SEEDS, agree, scheduled_entry

Row = Tensor1D[f64]
Number = Scalar[f64]


@nk.staged
def step(x: Rep[Row]) -> Rep[Row]:
    for _ in range(12):
        x = nk.tanh(x) * x + nk.sin(x)
    return x


def chain(count: int) -> Any:
    @nk.staged
    def f(x: Rep[Row]) -> Rep[Number]:
        y = x
        for _ in range(count):
            y = step(y)
        return y.sum() * x[0]

    return f


def test_chains_of_calls_and_their_gradients_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in one, where the switch says so."""
    whole, divided = chain(60), chain(60)
    x = np.linspace(0.1, 0.5, 5)
    expected = nk.gradient_dynamic(of=whole, wrt=(0,))(x)[0].numpy()
    with mock.patch.multiple(parts, PART=7, _LEAST_PARTS=2):
        gradient = nk.gradient_dynamic(of=divided, wrt=(0,))
        text = str(gradient.llvm(x))
        assert text.count("define internal i64 @kernel.part.") > 10
        np.testing.assert_array_equal(gradient(x)[0].numpy(), expected)
        monkeypatch.setenv(VARIABLE, "parts")
        assert "@kernel.part." not in str(nk.gradient_dynamic(of=chain(60), wrt=(0,)).llvm(x))


def test_few_long_kernels_are_many_parts(pytestconfig: pytest.Config) -> None:
    """What counts is what stands in them: a gradient of numbers in a row is a few kernels of a thousand lines each."""

    def in_a_row() -> Any:
        @nk.staged
        def f(x: Rep[Row]) -> Rep[Number]:
            y = x[0]
            for k in range(40):
                y = nk.sin(y) * x[k % 5] + y
            return y

        return nk.gradient(of=f, wrt=0)

    x = np.linspace(0.1, 0.5, 5)
    expected = in_a_row()(x).numpy()
    with mock.patch.multiple(parts, PART=300, _LEAST_PARTS=2):
        divided = in_a_row()
        text = str(divided.llvm(x))
        most = 24 if pytestconfig.getoption("level") == 0 else 8
        assert 2 <= text.count("define internal i64 @kernel.part.") <= most
        np.testing.assert_array_equal(divided(x).numpy(), expected)


def test_a_failure_in_a_part_is_that_of_the_whole() -> None:
    with mock.patch.multiple(parts, PART=1, _LEAST_PARTS=2):

        @nk.staged
        def f(x: Rep[Row], i: Rep[Scalar[i64]]) -> Rep[Row]:
            y = step(step(step(x)))
            nk.check(x[0] < 2.0, "x is too large")
            rows = nk.take(step(y), i) * nk.fori(0, 3, lambda _, z: step(z), y)
            return rows + step(rows)

        f(np.ones(5), i64(3))
        with pytest.raises(IndexError, match="index 7 is out of range for an axis of extent 5"):
            f(np.ones(5), i64(7))
        with pytest.raises(CheckError, match="x is too large"):
            f(np.full(5, 3.0), i64(3))


@settings(max_examples=25)
@given(programs(ops=EXACT), SEEDS, st.integers(1, 3))
def test_random_programs_in_parts(program: Program, seed: int, size: int) -> None:
    function, arrays = scheduled_entry(program, seed)
    with mock.patch.multiple(parts, PART=size, _LEAST_PARTS=1):
        agree(function, arrays)
