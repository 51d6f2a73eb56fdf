"""Reductions and running reductions as functions; the tables of reductions are in `staged`."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import define, title
from .methods import running
from .staged import places

CLASSES = {
    "sum": "SumNumber",
    "prod": "ReduceNumber",
    "max": "ReduceNumber",
    "min": "ReduceNumber",
    "mean": "ReduceFloat",
    "var": "SpreadFloat",
    "std": "SpreadFloat",
    "all": "ReduceLogical",
    "any": "ReduceLogical",
    "count_nonzero": "Count",
    "nansum": "ReduceNumber",
    "nanprod": "ReduceNumber",
    "nanmax": "ReduceNumber",
    "nanmin": "ReduceNumber",
    "nanmean": "ReduceFloat",
    "nanmedian": "ReduceFloat",
    "nanvar": "SpreadFloat",
    "nanstd": "SpreadFloat",
}
"""The class of the object that a reduction is."""


def reduction_functions() -> Iterator[str]:
    yield title("reductions")
    for name, kind in CLASSES.items():
        yield f"{name}: {kind}"
    yield from places()
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        yield from define(name, running())
