"""Compare NNKit with JAX and PyTorch: `python -m benchmarks [--all] [--only NAME …] [--cpu] [--output FILE]`.

Results are compared before anything is timed, and what differs is not timed.  Then all take turns, each in a process
of its own on as many cores as the row says.  `--output results.md` also writes the picture `results.svg`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np

from .gradbench.times import read_rows
from .limits import Limits, best, measure_limits, sustained_peaks
from .plot import svg
from .problems import PROBLEMS, Problem
from .process import MEASURED, measure
from .report import OURS, Cell, Row, header, mebibytes, rate, seconds
from .results import Results, page
from .timing import Batch, Spread, alternate, other_load
from .worker import Arrays, Failure, Worker, confined

PACKAGES = {
    "nnkit": (OURS,),
    "jax": ("JAX jit",),
    "torch": ("PyTorch eager", "PyTorch compile"),
}
"""The modes of every library."""
TIMES = 2
"""How often a new process is measured; the slow compilers take a quarter of a minute each time."""
GRADBENCH = "gradbench"
FEW_ROUNDS = 5
"""Of calls of a tenth of a second and more."""
LONG = 0.1
PEAKS = 3
"""How often the sustained peak is measured behind each row."""
CLOCK = "seconds of a clock"
WRONG = "results differ from"


@dataclass(frozen=True)
class Contestant:
    """A library in one of its modes."""

    name: str
    package: str


class Workers:
    """The processes of all contestants, started when a row first needs so many threads."""

    def __init__(self, contestants: Sequence[Contestant], *, cpu: bool) -> None:
        self._contestants = contestants
        self._cpu = cpu
        self._started: dict[tuple[str, int], Worker] = {}

    def of(self, problem: Problem) -> dict[str, Worker]:
        """Those that take part in a row."""
        found: dict[str, Worker] = {}
        for one in self._contestants:
            if one.name in problem.without:
                continue
            key = one.name, problem.threads
            if key not in self._started:
                made = Worker(one.package, one.name, threads=problem.threads, cpu=self._cpu)
                self._started[key] = made
            found[one.name] = self._started[key]
        return found

    def close(self) -> None:
        """End all processes."""
        for worker in self._started.values():
            worker.close()


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    busy, before = other_load(), measure_limits()
    contestants, absent = find()
    workers = Workers(contestants, cpu=options.cpu)
    measured: list[tuple[Problem, dict[str, Cell]]] = []
    peaks: list[Mapping[str, float]] = []
    for problem in chosen(options.only, everything=options.all):
        cells = compare(problem, workers.of(problem), options.rounds, options.patience)
        measured.append((problem, cells))
        peaks += peaks_in_turns(cpu=options.cpu)
    workers.close()
    limits = with_sustained(best(before, measure_limits()), peaks)
    groups: dict[str, list[Row]] = {}
    for problem, cells in measured:
        groups.setdefault(problem.group, []).append(row_of(problem, cells, limits))
    command = " ".join(["python -m benchmarks", *arguments])
    clock = "CPU seconds of the process where it has one thread" if options.cpu else CLOCK
    top = header(command, options.rounds, busy, clock=clock)
    names = [one.name for one in contestants]
    write(Results(top, limits, groups, absent, busy), names, options.output)
    if not options.only or GRADBENCH in options.only:
        groups[GRADBENCH] = in_gradbench(everything=options.all, cpu=options.cpu)
        write(Results(top, limits, groups, absent, busy), names, options.output)
    if once := [name for name in MEASURED if not options.only or name in options.only]:
        groups["start"] = in_new_processes(once, contestants)
    text = write(Results(top, limits, groups, absent, busy), names, options.output)
    print(text)
    if WRONG in text:
        sys.exit("some results differ: they were not timed")


def write(results: Results, names: Sequence[str], output: Path | None) -> str:
    """The page of what there is so far, which is also written to files, so that an interruption leaves the rest."""
    picture = (output or Path("results.md")).with_suffix(".svg")
    text = page(results, picture.name)
    if output:
        output.write_text(text)
        picture.write_text(svg(results.plotted(), names))
    return text


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [*(problem.name for problem in PROBLEMS), GRADBENCH, *MEASURED]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--all", action="store_true", help="the rows that take long, too")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, where others use it, too")
    parser.add_argument("--rounds", type=int, default=20, help="batches per library, default 20")
    parser.add_argument(
        "--patience",
        type=float,
        default=5,
        help="seconds that each comparison may wait for other programs to be quiet",
    )
    parser.add_argument("--output", type=Path, help="also write the page to this file")
    return parser.parse_args(arguments)


def chosen(
    only: Sequence[str], problems: Sequence[Problem] = PROBLEMS, *, everything: bool = False
) -> list[Problem]:
    if only:
        return [problem for problem in problems if problem.name in only]
    return [problem for problem in problems if problem.quick or everything]


def find() -> tuple[list[Contestant], dict[str, str]]:
    """The libraries that are installed, and why the others take no part."""
    contestants: list[Contestant] = []
    absent: dict[str, str] = {}
    for package, modes in PACKAGES.items():
        if find_spec(package) is None:
            absent[package] = "it is not installed"
        else:
            contestants += [Contestant(mode, package) for mode in modes]
    return contestants, absent


def compare(
    problem: Problem, workers: Mapping[str, Worker], rounds: int, patience: float
) -> dict[str, Cell]:
    """Check that all get the same results, then time them."""
    progress(problem.title)
    batches: dict[str, Batch] = {}
    cells: dict[str, Cell] = {}
    expected: Arrays = []
    longest = 0.0
    for name, worker in workers.items():
        try:
            results = worker.first(problem.name)
            longest = max(longest, worker.batch(1))
        except Failure as failure:
            cells[name] = str(failure)
            continue
        expected = expected or results
        if said := difference(results, expected, problem.tolerance):
            cells[name] = f"{WRONG} those of {next(iter(workers))}: {said}"
        else:
            batches[name] = worker.batch
    rounds = min(rounds, FEW_ROUNDS) if longest > LONG else rounds
    return cells | alternate(batches, rounds, patience)


def difference(found: Arrays, wanted: Arrays, tolerance: float) -> str | None:
    """What is said of results that differ by more than a share of the largest number, NaN included."""
    if [each.shape for each in found] != [each.shape for each in wanted]:
        return f"shapes {[each.shape for each in found]} and {[each.shape for each in wanted]}"
    for number, (x, y) in enumerate(zip(found, wanted, strict=True)):
        error, largest = (
            float(np.max(np.abs(x - y), initial=0)),
            float(np.max(np.abs(y), initial=0)),
        )
        if not error <= tolerance * largest:
            return f"result {number} by {error:.2g} of {largest:.2g}"
    return None


def peaks_in_turns(*, cpu: bool) -> list[Mapping[str, float]]:
    """What a core keeps up now, that on which rows of one thread run, some times."""
    with confined(1):
        clock = time.process_time if cpu else time.perf_counter
        return [sustained_peaks(clock) for _ in range(PEAKS)]


def with_sustained(limits: Limits, peaks: Sequence[Mapping[str, float]]) -> Limits:
    """The same with the medians of what was kept up between the rows."""
    if not peaks:
        return limits
    medians = {type: median(peak[type] for peak in peaks) for type in limits.sustained}
    return replace(limits, sustained=medians)


def row_of(problem: Problem, cells: Mapping[str, Cell], limits: Limits) -> Row:
    """With what the machine needs at least."""
    show = rate(problem.work.operations) if problem.rate else seconds
    least = limits.seconds(problem.work, threads=problem.threads)
    sustained = limits.seconds(problem.work, threads=problem.threads, sustained=True)
    return Row(problem.title, cells, show, problem.target, least, sustained)


def in_gradbench(*, everything: bool, cpu: bool) -> list[Row]:
    """The rows of `benchmarks.gradbench.times`, which has a core and a process of its own."""
    progress("GradBench")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks.gradbench.times", "--rows", str(rows)]
        command += ["--quick"] * (not everything) + ["--cpu"] * cpu
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return [] if finished.returncode else read_rows(rows.read_text(), target=1.0)


def in_new_processes(once: Sequence[str], contestants: Sequence[Contestant]) -> list[Row]:
    """What each library costs at start: import, compile, memory."""
    measured: dict[str, list[dict[str, float]]] = {one.name: [] for one in contestants}
    failed: dict[str, str] = {}
    for turn in range(TIMES + 1):  # the first one fills the caches of the file system
        progress(f"new processes, {turn} of {TIMES}")
        for one in contestants:
            try:
                measured[one.name].append(measure(one.package, one.name))
            except RuntimeError as error:
                failed[one.name] = str(error)
    rows: list[Row] = []
    for key in once:
        cells: dict[str, Cell] = dict(failed)
        for name, turns in measured.items():
            if name not in failed:
                cells[name] = Spread.of([turn[key] for turn in turns[1:]])
        rows.append(Row(MEASURED[key], cells, mebibytes if key == "memory" else seconds))
    return rows


def progress(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
