"""Loop decisions of one nest: the order of its axes, the vector axis and lanes, accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from ..ops.nest import Nest
from .target import Target


@dataclass(frozen=True)
class LoopPlan:
    """The fields that `Loops` adds to a nest, places and group apart."""

    order: tuple[int, ...]
    vector: int = -1
    lanes: int = 1
    accumulators: int = 1


def plan_loops(nest: Nest, target: Target) -> LoopPlan:
    """The loops of `nest` on `target`."""
    axes = range(len(nest.extents))
    summed = summed_axes(nest)
    return LoopPlan((*(a for a in axes if a not in summed), *(a for a in axes if a in summed)))


def summed_axes(nest: Nest) -> frozenset[int]:
    """Axes that some combining result does not keep."""
    summed: set[int] = set()
    for written in nest.outputs:
        kept = written.kept_axes
        if written.combinator is not None and kept is not None:
            summed.update(set(range(len(nest.extents))) - set(kept))
    return frozenset(summed)
