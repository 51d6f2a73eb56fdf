"""What each switch of `NNKIT_DISABLE` is good for: `python -m benchmarks.ablation [--only NAME …] [--cpu]`.

Each program is compiled with everything, and without each of `nnkit.core.schedule.switches.SWITCHES`, in processes of
their own, which take turns after their results were compared.  A cell is the time without the switch over the time with
everything: above 1, the switch makes the program faster.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nnkit.core.schedule.switches import SWITCHES, VARIABLE

from .__main__ import chosen, compare, progress
from .problems import ABLATED
from .report import OURS, Cell, geometric_mean, header, seconds, written_ratio
from .report import Row as Compared
from .timing import Spread, other_load
from .worker import Worker

EVERYTHING: Final = "everything"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    names = [problem.name for problem in ABLATED]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, where others use it, too")
    parser.add_argument("--rounds", type=int, default=10, help="batches per switch, default 10")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args(arguments)
    busy = other_load()
    rows: dict[str, Mapping[str, Cell]] = {}
    problems = chosen(options.only, ABLATED)
    for threads in sorted({problem.threads for problem in problems}):
        workers = {
            name: Worker(
                "nnkit", OURS, threads=threads, cpu=options.cpu, environment={VARIABLE: disabled}
            )
            for name, disabled in {EVERYTHING: "", **{name: name for name in SWITCHES}}.items()
        }
        for problem in problems:
            if problem.threads == threads:
                rows[problem.title] = compare(problem, workers, options.rounds, patience=2)
        for worker in workers.values():
            worker.close()
    progress("done")
    command = " ".join(["python -m benchmarks.ablation", *arguments])
    clock = "CPU seconds of the process" if options.cpu else "seconds of a clock"
    text = f"{header(command, options.rounds, busy, clock=clock)}\n{table(rows)}\n"
    if options.output:
        options.output.write_text(f"# What each switch is good for\n\n{text}")
    print(text)


def table(rows: Mapping[str, Mapping[str, Cell]]) -> str:
    """In Markdown, and what each switch does."""
    lines = [
        f"| | {EVERYTHING} | {' | '.join(f'without {name}' for name in SWITCHES)} |",
        f"|---|---|{'---|' * len(SWITCHES)}",
    ]
    for title, cells in rows.items():
        base = cells[EVERYTHING]
        shown = [seconds(base.median) if isinstance(base, Spread) else base]
        shown += [written_ratio(_over(cells[name], base)) for name in SWITCHES]
        lines.append(f"| {title} | {' | '.join(shown)} |")
    means = [f"{_mean(rows, name):.2f}" for name in SWITCHES]
    lines += [f"| geometric mean | | {' | '.join(means)} |", ""]
    return "\n".join([*lines, *(f"- `{name}`: {text}" for name, text in SWITCHES.items())])


def _over(cell: Cell, base: Cell) -> Spread | None:
    return cell.over(base) if isinstance(cell, Spread) and isinstance(base, Spread) else None


def _mean(rows: Mapping[str, Mapping[str, Cell]], name: str) -> float:
    """Of the time without a switch over that with everything."""
    pairs = [
        Compared(title, {OURS: cells[name], EVERYTHING: cells[EVERYTHING]}, seconds)
        for title, cells in rows.items()
    ]
    return geometric_mean(pairs)


if __name__ == "__main__":
    main(sys.argv[1:])
