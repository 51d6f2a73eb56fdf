"""The measurements as a table in Markdown, under the machine and the versions they hold for."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path

from .timing import Spread

OURS = "NNKit"
Cell = Spread | str
"""A measurement, or the reason why there is none."""


@dataclass(frozen=True)
class Row:
    """One thing measured, for every contestant."""

    title: str
    cells: Mapping[str, Cell]
    show: Callable[[float], str]
    target: float | None = None
    """What ours ÷ the best other is to be at most."""
    least: float | None = None
    """What the machine needs at least."""
    sustained: float | None = None
    """The same at the speed that it keeps up."""

    def best_other(self) -> str | None:
        """Who is the best of the others, if there is one."""
        others = {
            name: cell.median
            for name, cell in self.cells.items()
            if name != OURS and isinstance(cell, Spread)
        }
        return min(others, key=others.__getitem__, default=None)

    def ratio(self) -> Spread | None:
        """Ours over the best of the others, if both were measured."""
        ours, best = self.cells.get(OURS), self.cells.get(self.best_other() or "")
        if not isinstance(ours, Spread) or not isinstance(best, Spread):
            return None
        return ours.over(best)

    def share(self) -> str:
        """Of what the machine can do, what we do; in brackets of what it keeps up, where that is less."""
        ours = self.cells.get(OURS)
        if not isinstance(ours, Spread) or self.least is None:
            return ""
        at_most = f"{self.least / ours.median:.0%}"
        kept_up = f"{(self.sustained or self.least) / ours.median:.0%}"
        return at_most if kept_up == at_most else f"{at_most} ({kept_up})"


def table(rows: Sequence[Row], columns: Sequence[str], absent: Mapping[str, str]) -> str:
    """Medians, in brackets the middle 80%; then ours over the best of the others, the target and the share."""
    heads = [*columns, "ours ÷ best other"]
    targets = any(row.target is not None for row in rows)
    shares = any(row.least is not None for row in rows)
    heads += ["to be"] * targets + ["share of the machine"] * shares
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    reasons = [f"No {package}: {reason}." for package, reason in absent.items()]
    for row in rows:
        cells = [row.title, *_cells(row, columns), written_ratio(row.ratio())]
        if targets:
            cells.append("" if row.target is None else _digits(row.target))
        if shares:
            cells.append(row.share())
        lines.append(f"| {' | '.join(cells)} |")
        for name, cell in row.cells.items():
            if isinstance(cell, str):
                reasons.append(f"{name}, {row.title}: {cell}.")
    return "\n".join(lines + [""] * bool(reasons) + reasons)


def geometric_mean(rows: Sequence[Row]) -> float:
    """Of ours over the best of the others, in the rows that have both; not a number where none has."""
    found = [ratio.median for row in rows if (ratio := row.ratio())]
    return statistics.geometric_mean(found) if found else math.nan


def written_ratio(ratio: Spread | None) -> str:
    """The median, and in brackets the middle 80% of the rounds."""
    if ratio is None:
        return "–"
    rounds = f" ({_digits(ratio.low)} – {_digits(ratio.high)})" if ratio.measured else ""
    return _digits(ratio.median) + rounds


def header(command: str, rounds: int, load: float, *, clock: str = "seconds of a clock") -> str:
    """Machine, versions and how it was measured; `load` is the share of the cores in use before."""
    names = ("numpy", "llvmlite", "jax", "torch")
    versions = [f"{name} {version}" for name in names if (version := _version(name))]
    return (
        f"Machine: {_processor()}, {len(os.sched_getaffinity(0))} cores, {platform.platform()}.\n"
        f"Versions: nnkit {_version('nnkit') or 'from this folder'}, Python "
        f"{platform.python_version()}, {', '.join(versions)}.\n"
        f"Measured on {date.today()} by `{command}`: {rounds} rounds, the libraries in turns, {clock}; "
        f"median (10% – 90%). "
        f"Other load at the beginning: {load:.0%} of the cores.\n"
    )


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value * 1e9)} ns"


def rate(operations: float) -> Callable[[float], str]:
    """Of a time, so many operations over it."""
    return lambda value: f"{operations / value / 1e9:.0f} GF/s"


def mebibytes(value: float) -> str:
    """An amount of memory given in bytes."""
    return f"{value / 2**20:.0f} MiB"


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    shown: list[str] = []
    for name in columns:
        cell = row.cells.get(name, "")
        if isinstance(cell, str):
            shown.append("–")
        else:
            shown.append(f"{row.show(cell.median)} ({row.show(cell.low)} – {row.show(cell.high)})")
    return shown


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """The name of the processor, as well as the system tells it."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
