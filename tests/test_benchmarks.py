"""The comparison with other libraries: the table, and a run with what is installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import irdiff
from benchmarks.problems import PROBLEMS, Problem
from benchmarks.process import MEASURED
from benchmarks.report import Row, mebibytes, seconds, table
from benchmarks.timing import Spread, alternate, calibrate
from benchmarks.workloads_nnkit import BUILD, to_numpy

ROOT = Path(__file__).parent.parent


def test_differences_of_code_are_named_by_their_test(capsys: pytest.CaptureFixture[str]) -> None:
    base = {"test_a": ["x\ny"], "test_b": ["z"], "test_c": []}
    assert irdiff.report(base, base, lines=5) == 0
    assert irdiff.report(base, {"test_a": ["x\nnew", "z"], "test_b": ["z"]}, lines=5) == 1
    same, differing = capsys.readouterr().out.split("\n", maxsplit=1)
    assert same.startswith("no differences: 3 tests compile 2 modules")
    assert "test_a: 2 lines before, 3 now" in differing and "    -y" in differing
    assert "1 differences" in differing and "1 tests only before" in differing


def test_code_is_recorded_by_test(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import numpy as np, nnkit as nk\ndef test_it():\n    nk.staged(nk.sin)(np.ones(3))\n"
    )
    found = irdiff.record(tmp_path, ["test_one.py", "test_absent.py"], tmp_path / "record.json")
    (code,) = found["test_one.py::test_it"]
    assert "define" in code and "kernel" in code


def test_a_spread_is_the_median_and_the_middle() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 1.0, 5.0)
    assert Spread.of(range(101)) == Spread(50, 10, 90)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(13.6, "13.6 s"), (0.185, "185 ms"), (6.2e-6, "6.2 µs"), (2.14e-7, "214 ns"), (1e-3, "1 ms")],
)
def test_times_have_three_digits_and_a_unit(value: float, shown: str) -> None:
    assert seconds(value) == shown


def test_contestants_take_turns() -> None:
    calls: list[str] = []

    def contestant(name: str) -> float:
        calls.append(name)
        return 1.0

    def first(count: int) -> float:
        return contestant("first")

    def second(count: int) -> float:
        return contestant("second")

    found = alternate({"first": first, "second": second}, rounds=4, patience=0.0)
    assert found == {"first": Spread(1.0, 1.0, 1.0), "second": Spread(1.0, 1.0, 1.0)}
    assert calls[2:] == ["first", "second", "second", "first"] * 2


def test_a_batch_is_long_enough_to_measure() -> None:
    assert calibrate(lambda count: 1e-6) == pytest.approx(10_000, rel=0.01)
    assert calibrate(lambda count: 1.0) == 1


def test_the_table_gives_ratios_and_reasons() -> None:
    ours, other = Spread(2e-3, 1e-3, 3e-3), Spread(1e-3, 1e-3, 1e-3)
    rows = [
        Row("step", {"NNKit": ours, "JAX jit": other, "PyTorch compile": "no compiler"}, seconds),
        Row("memory", {"NNKit": Spread(2**20, 2**20, 2**20)}, mebibytes),
    ]
    lines = table(rows, ["NNKit", "JAX jit", "PyTorch compile"], {"tinygrad": "not installed"})
    assert "| step | 2 ms (1 ms – 3 ms) | 1 ms (1 ms – 1 ms) | – | 2 |" in lines
    assert "| memory | 1 MiB (1 MiB – 1 MiB) | – | – | – |" in lines
    assert "No tinygrad: not installed." in lines
    assert "PyTorch compile, step: no compiler." in lines


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_every_problem_gives_the_same_twice(problem: Problem) -> None:

    first, second = (BUILD[problem.name](problem.arrays(), "NNKit") for _ in range(2))
    for found, expected in zip(to_numpy(first()), to_numpy(second()), strict=True):
        assert (found == expected).all()


@pytest.mark.slow
def test_a_run() -> None:
    options = ["--only", "call", *MEASURED, "--rounds", "2", "--patience", "0"]
    command = [sys.executable, "-m", "benchmarks", *options]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "Machine: " in finished.stdout and "numpy " in finished.stdout
    rows = [line for line in finished.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 4 and all("(" in row.split("|")[2] for row in rows)
    for package in ("jax", "torch"):
        assert (f"No {package}: it is not installed." in finished.stdout) == (
            find_spec(package) is None
        )
