"""Compare NNKit with JAX and PyTorch: `python -m benchmarks [--only NAME ...] [--rounds N] [--output FILE]`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .problems import PROBLEMS, Problem
from .process import MEASURED, measure
from .report import Cell, Row, header, mebibytes, seconds, table
from .timing import Spread, alternate

PACKAGES = ("nnkit", "jax", "torch")
TIMES = 3
"""How often a new process is measured; the slow compilers take half a minute each time."""


@dataclass(frozen=True)
class Contestant:
    """A library in one of its modes."""

    name: str
    package: str
    workloads: Any


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    contestants, absent = load()
    rows = [compare(problem, contestants, options.rounds) for problem in chosen(options.only)]
    once = [name for name in MEASURED if not options.only or name in options.only]
    if once:
        rows += in_new_processes(once, contestants)
    command = " ".join(["python -m benchmarks", *arguments])
    names = [contestant.name for contestant in contestants]
    text = header(command, options.rounds) + "\n" + table(rows, names, absent) + "\n"
    if options.output:
        options.output.write_text(text)
    print(text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [problem.name for problem in PROBLEMS] + list(MEASURED)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--output", type=Path)
    return parser.parse_args(arguments)


def chosen(only: Sequence[str]) -> list[Problem]:
    return [problem for problem in PROBLEMS if not only or problem.name in only]


def load() -> tuple[list[Contestant], dict[str, str]]:
    """Every library that can be imported, and why the others cannot."""
    contestants: list[Contestant] = []
    absent: dict[str, str] = {}
    for package in PACKAGES:
        try:
            workloads = importlib.import_module(f"{__package__}.workloads_{package}")
        except ImportError as error:
            absent[package] = str(error)
        else:
            contestants += [Contestant(mode, package, workloads) for mode in workloads.MODES]
    return contestants, absent


def compare(problem: Problem, contestants: Sequence[Contestant], rounds: int) -> Row:
    """Check that all get the same results, then time them."""
    progress(problem.title)
    calls: dict[str, Callable[[], object]] = {}
    cells: dict[str, Cell] = {}
    expected: list[np.ndarray[Any, Any]] = []
    for contestant in contestants:
        name = contestant.name
        try:
            call = contestant.workloads.BUILD[problem.name](problem.arrays(), name)
            results = contestant.workloads.to_numpy(call())
        except Exception as error:  # a compiler of another library that fails here
            cells[name] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            continue
        expected = expected or results
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(
                found, wanted, rtol=2e-4, atol=2e-5, err_msg=f"{name} {problem.name}"
            )
        calls[name] = call
    return Row(problem.title, cells | alternate(calls, rounds), seconds)


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
