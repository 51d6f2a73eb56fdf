"""The measurements as a table in Markdown, under the machine and the versions they hold for."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


def table(rows: Sequence[Row], columns: Sequence[str], absent: Mapping[str, str]) -> str:
    """Medians, in brackets the middle 80%; the last column is ours over the best of the others."""
    lines = [
        "| | " + " | ".join(columns) + " | ours ÷ best other |",
        "|---|" + "---|" * (len(columns) + 1),
    ]
    reasons = [f"No {package}: {reason}." for package, reason in absent.items()]
    for row in rows:
        lines.append(f"| {row.title} | " + " | ".join(_cells(row, columns)) + f" | {_ratio(row)} |")
        for name, cell in row.cells.items():
            if isinstance(cell, str):
                reasons.append(f"{name}, {row.title}: {cell}.")
    return "\n".join(lines + [""] * bool(reasons) + reasons)


def header(command: str, rounds: int, load: float) -> str:
    """Machine, versions and how it was measured; `load` is the share of the cores in use before."""
    names = ("numpy", "llvmlite", "jax", "torch")
    versions = [f"{name} {version}" for name in names if (version := _version(name))]
    return (
        f"Machine: {_processor()}, {len(os.sched_getaffinity(0))} cores, {platform.platform()}.\n"
        f"Versions: nnkit {_version('nnkit') or 'from this folder'}, Python "
        f"{platform.python_version()}, {', '.join(versions)}.\n"
        f"Measured by `{command}`: {rounds} rounds, the libraries in turns; median (10% – 90%). "
        f"Other load at the beginning: {load:.0%} of the cores.\n"
    )


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value * 1e9)} ns"


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


def _ratio(row: Row) -> str:
    ours = row.cells.get(OURS)
    others = [
        cell.median for name, cell in row.cells.items() if name != OURS and isinstance(cell, Spread)
    ]
    if not isinstance(ours, Spread) or not others:
        return "–"
    return _digits(ours.median / min(others))


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
