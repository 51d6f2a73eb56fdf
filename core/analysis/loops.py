"""Natural loops of a graph, and how they are nested.

A *back edge* leads to a node that dominates its start.  The loop of its end, the *header*, is what reaches
the edge without going through the header; edges to one header make one loop.  Two loops with different
headers are nested or disjoint.

Headers are visited from the inside outwards, each walking backwards from its back edges; loops found before
are stepped over as one node, so that the cost stays near-linear however deep they are nested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ..lazy_dataclass import dataclass
from .dominance import DominatorTree
from .graph import Graph


@dataclass(eq=False)
class NaturalLoop:
    """A natural loop: `own` are the nodes in no inner loop, the header first."""

    header: int
    latches: Sequence[int]
    """Where the back edges start."""
    parent: NaturalLoop | None = None
    children: list[NaturalLoop] = field(default_factory=list["NaturalLoop"])
    own: list[int] = field(default_factory=list[int])

    def __repr__(self) -> str:
        return f"<loop at {self.header} of {len(self.own)} nodes and {len(self.children)} loops>"

    @property
    def depth(self) -> int:
        """1 for a loop in no other."""
        depth, loop = 1, self.parent
        while loop is not None:
            depth, loop = depth + 1, loop.parent
        return depth

    def members(self) -> Iterator[int]:
        """All nodes of the loop, those of inner loops included."""
        pending: list[NaturalLoop] = [self]
        while pending:
            loop = pending.pop()
            yield from loop.own
            pending.extend(reversed(loop.children))


@dataclass(frozen=True, eq=False)
class LoopInfo:
    """All natural loops, inner ones before outer ones; `innermost` has the loop of each node, if any."""

    all: Sequence[NaturalLoop]
    innermost: Sequence[NaturalLoop | None]


def natural_loops(graph: Graph, tree: DominatorTree) -> LoopInfo:
    """The natural loops of what the entry reaches; `tree` are the dominators of `graph`."""
    innermost: list[NaturalLoop | None] = [None] * len(graph)
    around: dict[NaturalLoop, NaturalLoop] = {}
    found: list[NaturalLoop] = []
    for header in reversed(graph.order):
        latches = [node for node in graph.predecessors[header] if tree.dominates(header, node)]
        if latches:
            loop = NaturalLoop(header, list(dict.fromkeys(latches)), own=[header])
            _collect(loop, graph, innermost, around)
            found.append(loop)
    return LoopInfo(found, innermost)


def _collect(
    loop: NaturalLoop,
    graph: Graph,
    innermost: list[NaturalLoop | None],
    around: dict[NaturalLoop, NaturalLoop],
) -> None:
    """Fill `loop`, walking backwards from its latches; `around` leads from a loop towards the outermost."""
    innermost[loop.header] = loop
    pending = list(loop.latches)
    while pending:
        node = pending.pop()
        inner = innermost[node]
        if inner is None:
            innermost[node] = loop
            loop.own.append(node)
        else:
            inner = _outermost(inner, around)
            if inner is loop:
                continue
            inner.parent = around[inner] = loop
            loop.children.append(inner)
            node = inner.header
        pending.extend(p for p in graph.predecessors[node] if graph.is_reachable(p))


def _outermost(loop: NaturalLoop, around: dict[NaturalLoop, NaturalLoop]) -> NaturalLoop:
    top = loop
    while top in around:
        top = around[top]
    while loop is not top:
        following = around[loop]
        around[loop] = top
        loop = following
    return top
