"""Compare NNKit with JAX and PyTorch: `python -m benchmarks [--only NAME ...] [--rounds N] [--output FILE]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .problems import PROBLEMS, Problem
from .process import MEASURED, measure
from .report import Cell, Row, header, mebibytes, seconds, table
from .timing import Batch, Spread, alternate, other_load
from .worker import Failure, Worker

PACKAGES = {
    "nnkit": ("NNKit",),
    "jax": ("JAX jit",),
    "torch": ("PyTorch eager", "PyTorch compile"),
}
"""The modes of every library."""
TIMES = 3
"""How often a new process is measured; the slow compilers take half a minute each time."""


@dataclass(frozen=True)
class Contestant:
    """A library in one of its modes."""

    name: str
    package: str


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    busy = other_load()
    contestants, absent = find()
    names = [contestant.name for contestant in contestants]
    workers = {one.name: Worker(one.package, one.name) for one in contestants}
    rows = [
        compare(problem, workers, options.rounds, options.patience)
        for problem in chosen(options.only)
    ]
    for worker in workers.values():
        worker.close()
    once = [name for name in MEASURED if not options.only or name in options.only]
    if once:
        rows += in_new_processes(once, contestants)
    command = " ".join(["python -m benchmarks", *arguments])
    text = header(command, options.rounds, busy) + "\n" + table(rows, names, absent) + "\n"
    if options.output:
        options.output.write_text(text)
    print(text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [problem.name for problem in PROBLEMS] + list(MEASURED)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--rounds", type=int, default=30, help="batches per library, default 30")
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        help="seconds that each comparison may wait for other programs to be quiet",
    )
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    return parser.parse_args(arguments)


def chosen(only: Sequence[str]) -> list[Problem]:
    return [problem for problem in PROBLEMS if not only or problem.name in only]


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


def compare(problem: Problem, workers: Mapping[str, Worker], rounds: int, patience: float) -> Row:
    """Check that all get the same results, then time them."""
    progress(problem.title)
    batches: dict[str, Batch] = {}
    cells: dict[str, Cell] = {}
    expected: list[np.ndarray[Any, Any]] = []
    for name, worker in workers.items():
        try:
            results = worker.first(problem.name)
        except Failure as failure:
            cells[name] = str(failure)
            continue
        expected = expected or results
        for found, wanted in zip(results, expected, strict=True):
            where = f"{name}, {problem.title}"
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5, err_msg=where)
        batches[name] = worker.batch
    return Row(problem.title, cells | alternate(batches, rounds, patience), seconds)


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
