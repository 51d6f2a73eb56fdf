"""Time our functions beside C++ and JAX on one core, a table in Markdown: `python -m benchmarks.gradbench.times`.

Those whose results differ are not timed.  The constant of gmm, which needs no derivative, is left out everywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, cast

import numpy as np

from ..report import Cell, Row, header, seconds, table
from ..timing import Batch, Spread, alternate, batch, other_load
from . import gmm, inputs, native
from .__main__ import MODULES
from .compressed_rows import CompressedRows
from .protocol import Json

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]
CASES: dict[str, tuple[Callable[..., Json], list[tuple[int, ...]]]] = {
    "lse": (inputs.lse, [(2_500,), (80_000,), (1_280_000,)]),
    "gmm": (
        inputs.gmm,
        [
            *((2, 5, 1000), (10, 25, 1000), (20, 50, 1000)),
            *((64, 5, 1000), (64, 25, 1000), (64, 100, 1000)),
        ],
    ),
    "lstm": (inputs.lstm, [(2, 1024), (2, 4096), (4, 4096), (6, 8192)]),
    "kmeans": (inputs.kmeans, [(10, 1000, 8), (100, 10_000, 16), (1000, 10_000, 16)]),
    "ba": (inputs.ba, [(49, 7776, 31843), (356, 226_730, 1_255_268)]),
}
"""By module: what makes an input, and sizes: n; d, k, n; layers, characters; k, n, d; cameras, points, observations."""
QUICK: dict[str, list[tuple[int, ...]]] = {
    "lse": [(80_000,)],
    "gmm": [(10, 25, 1000), (64, 5, 1000)],
    "lstm": [(2, 1024)],
    "kmeans": [(100, 10_000, 16)],
    "ba": [(49, 7776, 31843)],
}
"""The sizes that take a moment."""
TOLERANCE = 1e-8


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gradbench.times", description=__doc__
    )
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=10, help="batches per contestant, default 10")
    parser.add_argument(
        "--cpu", action="store_true", help="seconds of this process, not of a clock"
    )
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    parser.add_argument("--quick", action="store_true", help="few sizes, those that take a moment")
    parser.add_argument("--rows", type=Path, help="also write what was measured as JSON")
    options = parser.parse_args(arguments)
    busy = other_load()
    names, absent = contestants()
    rows = [
        compare(module, function, size, names, options.rounds, cpu=options.cpu)
        for module in options.only
        for size in (QUICK[module] if options.quick else CASES[module][1])
        for function in MODULES[module]
    ]
    command = " ".join(["python -m benchmarks.gradbench.times", *arguments])
    text = header(command, options.rounds, busy) + "\n" + table(rows, names, absent) + "\n"
    if options.output:
        options.output.write_text(text)
    if options.rows:
        options.rows.write_text(json.dumps([_plain(row) for row in rows]))
    print(text)


def _plain(row: Row) -> Json:
    """A row without classes; `read_rows` is the other way."""
    cells = {
        name: cell if isinstance(cell, str) else list(cell.measured)
        for name, cell in row.cells.items()
    }
    return {"title": row.title, "cells": cells}


def read_rows(text: str, target: float | None = None) -> list[Row]:
    """What `--rows` has written."""
    rows: list[Row] = []
    for row in json.loads(text):
        cells: dict[str, Cell] = {
            name: cell if isinstance(cell, str) else Spread.of(cell)
            for name, cell in row["cells"].items()
        }
        rows.append(Row(row["title"], cells, seconds, target))
    return rows


def contestants() -> tuple[list[str], dict[str, str]]:
    """Who takes part, and why others do not."""
    names, absent = ["NNKit"], dict[str, str]()
    if which("g++"):
        names += ["C++", f"C++ {native.FAST}"]
    else:
        absent["C++"] = "there is no g++"
    if find_spec("jax"):
        names.append("JAX jit")
    else:
        absent["jax"] = "it is not installed"
    return names, absent


def build(name: str, module: str, function: str, given: Json) -> Call:
    """A call that leaves its results as it makes them."""
    if name == "NNKit":
        chosen = MODULES[module][function]
        run = gmm.log_density if (module, function) == ("gmm", "objective") else chosen.run
        return partial(run, *chosen.prepare(given))
    if name == "JAX jit":
        made: Call = import_module(".workloads_jax", __package__).build(module, function, given)
        return made
    return native.build(module, function, given, *name.split()[1:])


def compare(
    module: str,
    function: str,
    size: tuple[int, ...],
    names: list[str],
    rounds: int,
    *,
    cpu: bool = False,
) -> Row:
    """Time those whose results agree with those of the last contestant; say by how much others are wrong."""
    title = f"{module} {function}, {', '.join(map(str, size))}"
    print(f"… {title}", file=sys.stderr, flush=True)
    given = CASES[module][0](*size)
    calls = {name: build(name, module, function, given) for name in names}
    batches: dict[str, Batch] = {}
    cells: dict[str, Cell] = {}
    expected = numbers(calls[names[-1]]())
    for name, call in calls.items():
        found = numbers(call())
        error = float(np.max([*map(distance, found, expected)]))  # NaN if there is one
        if error < TOLERANCE:
            clock = time.process_time if cpu else time.perf_counter
            batches[name] = partial(batch, call, clock=clock)
        else:
            cells[name] = f"wrong, |x - y| / max(1, |x| + |y|) = {error:.2g}"
    return Row(title, cells | alternate(batches, rounds, patience=0), seconds)


def distance(x: Array, y: Array) -> float:
    """NaN where there is one."""
    return float((np.abs(x - y) / np.maximum(1, np.abs(x) + np.abs(y))).max())


def numbers(results: Any) -> list[Array]:
    """The results as copies; the arrays of a sparse Jacobian in the order of those of C++."""
    if isinstance(results, gmm.Mixture):
        results = [results.alpha, results.mu, results.q, results.l]
    elif isinstance(results, CompressedRows):
        results = [results.values, results.columns, results.begins]
    elif not isinstance(results, list | tuple):
        results = [results]
    return [np.array(each, np.float64) for each in cast("Sequence[Any]", results)]


if __name__ == "__main__":
    cores = os.sched_getaffinity(0)
    if len(cores) > 1:  # one for all of them, before NumPy and JAX make their threads
        os.sched_setaffinity(0, {max(cores)})
        os.execv(
            sys.executable, [sys.executable, "-m", "benchmarks.gradbench.times", *sys.argv[1:]]
        )
    main(sys.argv[1:])
