"""Compare peak bytes with JAX: `python -m benchmarks.memory [--only WORD …] [--output FILE] [--planned]`.

Bytes that a call needs besides its arguments.  As both compilers say: of ours `memory_analysis(…).peak_bytes`, of JAX's
the outputs without aliases, and temporaries.  What JAX's products and convolutions allocate while they run is not
counted there; what ours pack is counted.  And as the system counts them, for larger shapes (`benchmarks.resident`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import jax

from . import memory_jax, memory_nnkit
from .memory_programs import PROGRAMS, Program, Shapes
from .resident import resident_bytes

_SAID: Final = (
    f"Bytes that a call needs besides its arguments, f32; JAX {jax.__version__} on a CPU."
)
_MEASURED: Final = """\
What a call takes in fact, for larger shapes: by how many MB the resident memory of a process grows, at most, when it
runs the program for the first time.  That counts what products of either library allocate while they run, which no plan
of JAX has.  Threads are those of each library; 0.5 MB are the error of what Linux counts.
"""


def table(programs: Sequence[Program]) -> str:
    """What both compilers say."""
    rows = ["| | NNKit | JAX | ratio |", "|---|---:|---:|---:|"]
    for program in programs:
        ours, theirs = memory_nnkit.planned_bytes(program), memory_jax.planned_bytes(program)
        rows.append(f"| {program.title} | {ours:,} | {theirs:,} | {ours / max(theirs, 1):.2f} |")
    return "\n".join(rows) + "\n"


def resident_table(programs: Sequence[Program]) -> str:
    """What the system says."""
    rows = ["| | shapes | NNKit, MB | JAX, MB | ratio |", "|---|---|---:|---:|---:|"]
    for program in programs:
        if program.large:
            number = PROGRAMS.index(program)
            ours, theirs = (resident_bytes(library, number) / 1e6 for library in ("nnkit", "jax"))
            rows.append(
                f"| {program.name} | {_written(program.large)} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |"
            )
    return "\n".join(rows) + "\n"


def _written(shapes: Shapes) -> str:
    """Equal ones once."""
    return ", ".join(" x ".join(map(str, shape)) for shape in dict.fromkeys(shapes))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="in titles")
    parser.add_argument("--output", type=Path, help="also write the page to this file")
    parser.add_argument("--planned", action="store_true", help="run nothing")
    options = parser.parse_args()
    chosen = [one for one in PROGRAMS if any(word in one.title for word in options.only)]
    page = f"# Peak memory\n\n{_SAID} `python -m benchmarks.memory`\n\n{table(chosen)}"
    if not options.planned:
        page += f"\n## As the system counts it\n\n{_MEASURED}\n{resident_table(chosen)}"
    print(page)
    if options.output:
        options.output.write_text(page)


if __name__ == "__main__":
    main()
