"""Structured control flow from blocks that branch."""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses
from ..ir import Block, Builder, Function, Region, Value
from ..lazy_dataclass import dataclass
from ..ops import Return
from .base import FunctionPass
from .structure import arrange, crossing_values, emit, find_needed, graph_of


@dataclass(frozen=True)
class Structurize(FunctionPass):
    """Makes one block with `if` and `while` of every function whose blocks branch, irreducible graphs too.

    Instructions are executed as often as before and in the same order; only where the header of a loop
    computes something cheap from what it is given, that may be computed once more.  Loops without an exit
    stay, as `while true`.  Blocks that cannot be reached are gone.

    Requires: nothing.
    Preserves: results, effects and their order, names and locations.
    Cost: near-linear; the depth of loops, which are found from the outside in, and the variables that are alive
        across a choice, or of which its cases set different ones, count as factors.
    Source: Bahmann, Reissmann, Jahre & Meyer 2015, "Perfect Reconstructability of Control Flow from
        Demand Dependence Graphs"; Ramsey 2022, "Beyond Relooper", for the order of what is joined.
    """

    name: ClassVar[str] = "structurize"

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or (len(body.blocks) == 1 and not body.entry.terminator.successors):
            return False
        graph = graph_of(function)
        blocks = [x.block for x in graph.scopes[0].vertices if x.block is not None]
        crossing = crossing_values(block.instructions for block in blocks)
        statements = arrange(graph, crossing)
        find_needed(statements, crossing, graph.results)
        entry = Block(name=body.entry.name)
        values: dict[Value, Value] = {}
        for old in body.entry.arguments:
            values[old] = Builder(entry).argument(old.type, old.name)
        returned = emit(statements, entry, values, graph.results)
        Builder(entry).emit_many(Return(), returned)
        function.body = Region([entry])
        return True
