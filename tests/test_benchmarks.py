"""The comparison with other libraries: the table, and a run with what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import ablation, irdiff, limits, problems, scale
from benchmarks.__main__ import difference, with_sustained
from benchmarks.limits import Limits, best, measure_limits
from benchmarks.plot import place, svg
from benchmarks.problems import ABLATED, Work
from benchmarks.process import MEASURED
from benchmarks.report import Cell, Row, geometric_mean, mebibytes, seconds, table
from benchmarks.results import GROUPS, shortfalls, speedups, summary
from benchmarks.timing import Spread, alternate, calibrate
from benchmarks.worker import confined
from benchmarks.workloads_nnkit import BUILD, to_numpy
from nnkit.core.schedule.switches import SWITCHES, VARIABLE

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
    code, entry = found["test_one.py::test_it"]
    assert "define i64 @kernel" in code and "define ptr @entry" in entry


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


def test_ratios_are_those_of_rounds_and_means_are_geometric() -> None:
    cells = {
        "NNKit": Spread.of([1.0, 2.0, 6.0]),
        "JAX jit": Spread.of([4.0, 4.0, 4.0]),
        "PyTorch eager": Spread.of([5.0, 5.0, 9.0]),
    }
    row = Row("step", cells, seconds, target=0.4, least=0.5)
    slower = Row("slow", {**cells, "NNKit": Spread.of([8.0] * 3)}, seconds, target=0.4)
    alone = Row("alone", {"NNKit": cells["NNKit"]}, seconds, target=0.4, least=1.0)
    assert row.best_other() == "JAX jit" and alone.best_other() is None
    assert row.ratio() == Spread(0.5, 0.25, 1.5) and alone.ratio() is None
    assert row.share() == "25%" and slower.share() == ""
    assert replace(row, sustained=1.0).share() == "25% (50%)"
    assert geometric_mean([row, slower, alone]) == pytest.approx(1.0)
    assert "0.5 (0.25 – 1.5) | 0.4 | 25% |" in table([row], list(cells), {})
    groups = {"table": [row, slower, alone]}
    *_, means, _, picture = summary(groups, "shown.svg").splitlines()
    assert (means, picture) == ("- Programs: 1.00 (2 rows)", "![ratios](shown.svg)")
    first, second = shortfalls(groups).split("Faster, but")
    assert "- slow: 2.00 of JAX jit" in first and "- step: 0.50 of JAX jit, to be 0.4" in second
    quick = Row("step, two threads", {"NNKit": Spread.of([1.0]), "JAX jit": "none"}, seconds)
    assert speedups([row, quick]).splitlines()[2:] == ["- step: NNKit 2.00"]
    drawn = ElementTree.fromstring(svg([row, slower, alone], list(cells)))
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    assert len(circles) == 2 + 4  # the legend, and two rows
    assert place(0.5) < place(1.0) < place(4.0) == place(40.0)


def test_the_least_time_is_that_of_arithmetic_or_of_memory() -> None:
    rates = {name: 1e9 / (k + 1) for k, name in enumerate(limits.WORKING_SETS)}
    kept_up = {"f32": 5e10, "f64": 4e10}
    machine = Limits(
        {"f32": 1e11, "f64": 5e10}, rates, {n: r / 4 for n, r in rates.items()}, kept_up
    )
    assert machine.seconds(Work(1e9, 1e3)) == 0.01
    assert machine.seconds(Work(1e9, 1e3, type="f64")) == 0.02
    assert machine.seconds(Work(1e9, 1e3), threads=2) == 0.005
    assert machine.seconds(Work(1, 1e4)) == 1e-5
    assert machine.seconds(Work(1, 5e3, 5e3)) == 4e-5
    assert machine.seconds(Work(1, 1e9)) == 4.0
    assert machine.seconds(Work(1e9, 1e3), sustained=True) == 0.02
    assert machine.seconds(Work(1, 1e9), sustained=True) == 4.0
    both = best(machine, Limits({"f32": 2e11, "f64": 1.0}, rates, rates, {"f32": 1.0, "f64": 5e10}))
    assert both.operations == {"f32": 2e11, "f64": 5e10}
    assert both.sustained == {"f32": 5e10, "f64": 5e10}
    between = with_sustained(machine, [{"f32": x, "f64": 1.0} for x in (3.0, 9.0, 4.0)])
    assert between.sustained == {"f32": 4.0, "f64": 1.0}
    assert with_sustained(machine, []) == machine
    found = measure_limits({"16 KiB": 2**14})
    moved = found.triad["16 KiB"], found.reading["16 KiB"]
    assert min(*found.operations.values(), *found.sustained.values(), *moved) > 1e6
    assert "GF/s" in limits.table(found)


TINY: dict[str, Callable[[np.random.Generator], problems.Arrays]] = {
    "call": problems.small,
    "affine": problems.affine,
    "step": problems.step((5, 4, 3), 2),
    "gelu": problems.gelu(10),
    "softmax": problems.softmax(3, 4),
    "attention": problems.attention(2, 3, 8),
    "block": problems.block(2, 3, 8),
    "product": problems.product(5),
    "line": problems.line(7),
    "symmetric": problems.square(5),
    "mixture": problems.mixture(4, 2, 3),
    "lstm": problems.lstm(2, 5),
}


def results_of(kind: str, data: problems.Arrays, *, calls: int = 1) -> list[Any]:
    call = BUILD[kind](data, "NNKit")
    for _ in range(calls - 1):
        call()
    return to_numpy(call())


def test_our_programs_compute_what_their_titles_say() -> None:
    drawn = {kind: make(np.random.default_rng(0)) for kind, make in TINY.items()}
    found = {kind: results_of(kind, data) for kind, data in drawn.items()}
    for kind, results in found.items():
        assert all(np.isfinite(result).all() for result in results), kind
    data = drawn["affine"]
    expected = np.tanh(data["x"] @ data["w"] + data["b"])
    np.testing.assert_allclose(found["affine"][0], expected, rtol=1e-4)
    np.testing.assert_allclose(
        found["product"][0], drawn["product"]["a"] @ drawn["product"]["b"], rtol=1e-4
    )
    x, y = drawn["line"]["x"], drawn["line"]["y"]
    np.testing.assert_allclose(found["line"][0], 1.5 * x + y, rtol=1e-5, atol=1e-6)
    x = drawn["symmetric"]["x"]
    np.testing.assert_allclose(found["symmetric"][0], (x + x.T) / 2, rtol=1e-6)
    x = drawn["gelu"]["x"].astype(float)
    gelu = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(found["gelu"][0], gelu.sum(), rtol=1e-5)
    x, labels = drawn["softmax"]["x"].astype(float), drawn["softmax"]["labels"]
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    slope = (p - np.eye(4)[labels]) / 3
    np.testing.assert_allclose(found["softmax"][0], -np.log(p[range(3), labels]).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["softmax"][1], slope, atol=1e-6)
    assert [part.shape for part in found["lstm"]] == [(4, 56), (3, 14)]
    assert results_of("step", drawn["step"], calls=20)[0] < found["step"][0]
    assert [part.shape for part in found["block"]] == [
        drawn["block"][name].shape for name in problems.BLOCK
    ]


def test_every_problem_can_be_built_and_has_a_limit() -> None:
    assert {problem.kind or problem.name for problem in ABLATED} == BUILD.keys()
    assert len({problem.name for problem in ABLATED}) == len(ABLATED)
    for problem in ABLATED:
        assert problem.work.operations > 0 and problem.work.read > 0
        assert problem.group in GROUPS
    layers, batch = (784, 256, 128, 10), 64
    flops = 2 * batch * (784 * 256 * 2 + (256 * 128 + 128 * 10) * 3)
    assert problems.work_of_step(layers, batch).operations == flops


def test_processes_are_confined_and_told_of_switches() -> None:
    cores, environment = os.sched_getaffinity(0), dict(os.environ)
    with confined(1, {VARIABLE: "fuse"}):
        assert os.sched_getaffinity(0) == {max(cores)}
        assert os.environ["NNKIT_NUM_THREADS"] == "1" and os.environ[VARIABLE] == "fuse"
    assert os.sched_getaffinity(0) == cores and os.environ == environment


def test_the_ablation_has_a_column_for_each_switch() -> None:
    cells: dict[str, Cell] = {name: Spread.of([3.0, 3.0]) for name in SWITCHES}
    cells[ablation.EVERYTHING] = Spread.of([2.0, 2.0])
    lines = ablation.table({"step": cells}).splitlines()
    assert lines[2] == "| step | 2 s |" + " 1.5 (1.5 – 1.5) |" * len(SWITCHES)
    assert lines[3] == "| geometric mean | |" + " 1.50 |" * len(SWITCHES)
    assert [line.split("`")[1] for line in lines if line.startswith("- ")] == list(SWITCHES)


def test_growth_is_measured_and_marked() -> None:
    found = scale.measure("operations", 10)
    assert found.compile > 0 and found.code > 100 and 0 < found.call < 1
    row = [scale.Measured(10, 1.0, 100, 1e-6), scale.Measured(100, 10.0, 10_000, 1e-6)]
    assert scale.table("layers", row).splitlines()[-1] == "| exponent | 1.00 | 2.00! | 0.00 |"
    two = [scale.Measured(1, 1.0, 1, 2e-6), scale.Measured(2, 1.0, 1, 1e-6)]
    assert scale.table("tanh, threads", two).splitlines()[-1] == "| faster | | | 2.00 |"


def test_results_that_differ_are_named() -> None:
    wanted = [np.array([1.0, 0.0]), np.array(0.0)]
    assert difference([np.array([1.0, 1e-9]), np.array(0.0)], wanted, 1e-6) is None
    assert difference([np.array([1.0, 1e-3]), np.array(0.0)], wanted, 1e-6) == (
        "result 0 by 0.001 of 1"
    )
    assert difference([np.array([1.0, np.nan]), np.array(0.0)], wanted, 1e-6) == (
        "result 0 by nan of 1"
    )
    assert "shapes" in (difference([wanted[0]], wanted, 1e-6) or "")


@pytest.mark.slow
def test_a_run() -> None:
    options = ["--only", "call", *MEASURED, "--rounds", "2", "--patience", "0"]
    command = [sys.executable, "-m", "benchmarks", *options]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "Machine: " in finished.stdout and "numpy " in finished.stdout
    rows = [line for line in finished.stdout.splitlines() if line.startswith("| ")][1:]
    rows = [row for row in rows if "GF/s" not in row and "triad" not in row]
    assert sum("(" in row.split("|")[2] for row in rows) == 1 + len(MEASURED)
    for package in ("jax", "torch"):
        assert (f"No {package}: it is not installed." in finished.stdout) == (
            find_spec(package) is None
        )
