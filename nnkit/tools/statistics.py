"""Statistics of a module before and after passes: the table of `dlopt --stats`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.analysis.call_graph import roots
from ..core.analysis.cost import Costs
from ..core.analysis.symbolic_count import Cost, SymbolicCount
from ..core.ir import Module
from ..core.lazy_dataclass import dataclass
from ..core.types import written

HEADS = ("instructions", "flops", "bytes")


@dataclass(frozen=True)
class Counts:
    """What a function, or a module, consists of and costs."""

    instructions: int
    cost: Cost

    @property
    def counts(self) -> tuple[SymbolicCount, SymbolicCount, SymbolicCount]:
        """One for each of `HEADS`."""
        return SymbolicCount((self.instructions,)), self.cost.flops, self.cost.bytes


@dataclass(frozen=True)
class Statistics:
    """The numbers of a module; its cost is that of calling each of `entries` once."""

    entries: tuple[str, ...]
    whole: Counts
    functions: Mapping[str, Counts]


def measure(module: Module, entries: Iterable[str] | None = None) -> Statistics:
    """Count what is in `module` and what `entries` cost; left out, they are the functions no other calls."""
    costs = Costs(module)
    functions = {
        name: Counts(costs.instructions(name), costs.of(name)) for name in module.functions
    }
    kept = (
        roots(module) if entries is None else tuple(name for name in entries if name in functions)
    )
    instructions = sum(numbers.instructions for numbers in functions.values())
    return Statistics(kept, Counts(instructions, costs.total(kept)), functions)


def comparison(before: Statistics, after: Statistics, *, by_function: bool = False) -> str:
    """Both as a table; `by_function` adds a line for each function of one of them."""
    counts = _change(str(len(before.functions)), str(len(after.functions)))
    lines = [("", *HEADS), (f"{counts} functions", *changes(before.whole, after.whole))]
    measured = [before.whole, after.whole]
    if by_function:
        for name in dict.fromkeys((*before.functions, *after.functions)):
            one, other = before.functions.get(name), after.functions.get(name)
            lines.append((written("@", name), *changes(one, other)))
            measured += [numbers for numbers in (one, other) if numbers is not None]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS) + 1)]
    texts = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    return "".join(f"{text}\n" for text in (*texts, *notes(measured)))


def changes(before: Counts | None, after: Counts | None) -> tuple[str, str, str]:
    """One cell for each of `HEADS`: `12 → 8`, or one number if both are the same; – for what is not there."""
    one, two, three = (
        _change(*(str(numbers.counts[k]) if numbers else "–" for numbers in (before, after)))
        for k in range(len(HEADS))
    )
    return one, two, three


def notes(measured: Iterable[Counts]) -> list[str]:
    """What must be said about numbers that are not all there is to say."""
    costs = [numbers.cost for numbers in measured]
    found: list[str] = []
    if any(len(count.terms) > 1 for cost in costs for count in (cost.flops, cost.bytes)):
        found.append("n: rounds of loops and recursions whose number the program does not say")
    unknown = sorted({name for cost in costs for name in cost.unknown})
    if unknown:
        found.append(f"not counted: calls of {', '.join(unknown)}")
    return found


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
