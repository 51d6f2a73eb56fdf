"""What was measured as a page in Markdown: the machine, its limits, a table for each group, and what is to be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .limits import Limits
from .limits import table as table_of_limits
from .problems import TWO_THREADS
from .report import OURS, Row, geometric_mean, table
from .timing import QUIET, Spread

GROUPS: Mapping[str, tuple[str, str]] = {
    "table": (
        "Programs",
        "One thread.  The share of the machine is the time that its peak and its memory would allow, over ours; in "
        "brackets that of the peak that it keeps up for as long as a row is measured.",
    ),
    "products": (
        "Products",
        "Operations a second, a multiply-add counts as two; ratios are those of times.",
    ),
    "larger": ("Larger programs", "One thread."),
    "memory": ("Through memory", "One thread; results of 16 and 32 MiB."),
    "gradbench": (
        "GradBench, f64",
        "One thread, beside loops in C++ with derivatives by hand and JAX "
        "([all sizes](gradbench/README.md)).",
    ),
    "start": (
        "Once for each program",
        "New processes, nothing compiled left from before, as many threads as each library takes.",
    ),
}
"""Titles, and what is to be known of the rows."""
DISTURBED = (
    "Other programs used the cores during the run.  Rows on two threads, which are by a clock, say little then: they "
    "are in no mean, and shares of the machine are smaller than they are."
)
PLOTTED = ("table", "products", "larger")


@dataclass(frozen=True)
class Results:
    """Everything that a run has measured."""

    header: str
    limits: Limits
    groups: Mapping[str, Sequence[Row]]
    absent: Mapping[str, str]
    busy: float = 0.0
    """The share of the cores that other programs used."""

    def plotted(self) -> list[Row]:
        groups = self.counted()
        return [row for group in PLOTTED for row in groups.get(group, ())]

    def counted(self) -> Mapping[str, Sequence[Row]]:
        """Without the rows on several threads where other programs used the cores, too."""
        return {
            group: [row for row in rows if self.busy < QUIET or TWO_THREADS not in row.title]
            for group, rows in self.groups.items()
        }


def page(results: Results, picture: str) -> str:
    """All of it, in Markdown, with a picture beside it."""
    parts = [f"# NNKit beside other libraries\n\n{results.header}"]
    parts += [DISTURBED] * (results.busy >= QUIET)
    parts += [summary(results.counted(), picture), shortfalls(results.counted())]
    parts.append(f"## What one core does at most\n\n{table_of_limits(results.limits)}")
    for group, rows in results.groups.items():
        title, remark = GROUPS[group]
        columns = list(dict.fromkeys(name for row in rows for name in row.cells))
        parts.append(f"## {title}\n\n{remark}\n\n{table(rows, columns, {})}")
        parts.append(speedups(rows))
    parts += [f"No {package}: {reason}." for package, reason in results.absent.items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def speedups(rows: Sequence[Row]) -> str:
    """How many times as fast two threads are, where a row was measured on both."""
    alone = {row.title: row for row in rows}
    lines: list[str] = []
    for row in rows:
        base = alone.get(row.title.removesuffix(TWO_THREADS))
        if base is None or base is row:
            continue
        found = [
            f"{name} {one.median / two.median:.2f}"
            for name, two in row.cells.items()
            if isinstance(two, Spread) and isinstance(one := base.cells.get(name), Spread)
        ]
        lines.append(f"- {base.title}: {', '.join(found)}")
    return "\n".join(["How many times as fast two threads are:", "", *lines]) if lines else ""


def summary(groups: Mapping[str, Sequence[Row]], picture: str) -> str:
    """Geometric means of ours over the best of the others, of the rows that have a target, and a picture of all."""
    lines: list[str] = []
    for group, rows in groups.items():
        counted = [row for row in rows if row.target is not None and row.ratio() is not None]
        if counted:
            title, mean = GROUPS[group][0], geometric_mean(counted)
            lines.append(f"- {title}: {mean:.2f} ({len(counted)} rows)")
    title = "Geometric means of our time ÷ that of the best other:"
    return "\n".join([title, "", *lines, "", f"![ratios]({picture})"]) if lines else ""


def shortfalls(groups: Mapping[str, Sequence[Row]]) -> str:
    """Where another library is faster, and where the target is missed."""
    slower: list[str] = []
    missed: list[str] = []
    for row in (row for rows in groups.values() for row in rows):
        ratio = row.ratio()
        if ratio is None:
            continue
        said = f"- {row.title}: {ratio.median:.2f} of {row.best_other()}"
        if ratio.median > 1:
            slower.append(said)
        elif row.target is not None and ratio.median > row.target:
            missed.append(f"{said}, to be {row.target:g}")
    parts = [f"Where {OURS} is slower than another library:\n\n" + "\n".join(slower)] * bool(slower)
    parts += ["Faster, but not as much as it is to be:\n\n" + "\n".join(missed)] * bool(missed)
    return "\n\n".join(parts)
