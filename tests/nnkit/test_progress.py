"""A compile that takes long says so once, with what it is busy with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, f64, progress
from nnkit.progress import Progress
from nnkit.staging.tracing_clock import TRACING


def clock_of(*times: float) -> Callable[[], float]:
    given: Iterator[float] = iter(times)
    return lambda: next(given)


@pytest.fixture(autouse=True)
def _aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNKIT_QUIET", raising=False)


def test_what_is_told_at_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    told = Progress("step", clock_of(0.0, 0.1, 0.5, 2.4, 9.0, 9.5))
    for what in ("in pass 'a'", "in pass 'b'", "in pass 'c'", "in LLVM"):
        told.begin(what)
    told.end()
    assert capsys.readouterr() == (
        "",
        "nnkit: compiling step takes more than 2 s, now in pass 'c' (most of it in pass 'b', 1.9 s)\n",
    )


def test_what_is_told_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    told = Progress("step", clock_of(0.0, 0.1, 0.2, 5.0))
    told.begin("in pass 'a'")
    told.begin("in LLVM")
    told.end()
    assert (
        capsys.readouterr().err == "nnkit: compiling step took 5.0 s (most of it in LLVM, 4.8 s)\n"
    )


def test_what_is_quick_or_to_be_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Progress("step", clock_of(0.0, 0.1, 1.9))
    quick.begin("in LLVM")
    quick.end()
    monkeypatch.setenv("NNKIT_QUIET", "1")
    slow = Progress("step", clock_of(0.0, 0.1, 9.0))
    slow.begin("in LLVM")
    slow.end()
    assert capsys.readouterr() == ("", "")


def test_compiles_tell_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step takes a second by this clock; calls of what is compiled say nothing."""
    now = iter(range(1000))
    monkeypatch.setattr(progress.Progress.__init__, "__defaults__", (lambda: float(next(now)),))
    f = nk.staged(lambda x: x * 2.0)
    f(np.ones(3))
    said = capsys.readouterr().err
    assert said.startswith(
        "nnkit: compiling <lambda> takes more than 2 s, now in the specialization to shapes"
    )
    assert said.count("\n") == 1
    f(np.ones(3))
    assert capsys.readouterr().err == ""
    f(np.ones(4))
    assert capsys.readouterr().err.count("\n") == 1


def test_tracing_is_told_while_it_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is staged inside counts as its own; the traces of another function do not."""
    now = iter(range(1000))
    monkeypatch.setattr(progress.Progress.__init__, "__defaults__", (lambda: float(next(now)),))

    @nk.staged
    def step(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        for _ in range(200):
            x = x * 2.0  # two operations: the number is one
        return x

    @nk.staged
    def steps(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        for _ in range(200):
            x = -step(x)
        return x

    text = steps.ir(np.ones(3))
    assert "multiply" in text
    assert capsys.readouterr().err == (
        "nnkit: compiling steps takes more than 2 s, now tracing, 512 operations so far "
        "(a loop of Python is unrolled, `nk.fori` is not)\n"
    )
    assert TRACING.report is None
