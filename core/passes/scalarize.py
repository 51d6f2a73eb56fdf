"""Scalar replacement of aggregates: tuples, structs and arrays inside of functions become their leaves.

1. What structured ops carry, are given and yield, and what blocks take, becomes one value per leaf.
2. Extracting from what was put together gives the element (the laws in `rules.aggregate`), and so the callee of a
   call is known where a function was an element.
3. What was put together in vain is removed.
"""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses
from ..ir import Function
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..types import TensorType
from .base import FunctionPass
from .dce import remove_dead
from .rewrite import rewrite
from .rules import AGGREGATE, CALLS
from .split_aggregates import split_aggregates

_LAWS = {**AGGREGATE, **CALLS}


@dataclass(frozen=True)
class Scalarize(FunctionPass):
    """Removes the aggregates between what a function takes, what its calls return, and what it returns.

    An array of more than 16,384 leaves stays one value.  Blocks that take what an enum carries take it as it is.

    Requires: nothing.
    Preserves: results.
    Cost: linear, times the number of leaves.
    """

    name: ClassVar[str] = "scalarize"

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None or not has_aggregates(function):
            return False
        is_split = split_aggregates(function.body)
        if is_split:
            analyses.forget(function)
        if not rewrite(function, _LAWS, analyses) and not is_split:
            return False
        analyses.forget(function)
        remove_dead(function, analyses)
        return True


def has_aggregates(function: Function) -> bool:
    """Whether a body has values that are no tensors."""
    assert function.body is not None
    return any(
        not isinstance(x.type, TensorType)
        for instruction in walk(function.body)
        for x in (*instruction.operands, *instruction.results)
    )
