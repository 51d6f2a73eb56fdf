"""Random graphs of a few nodes, and what their definitions say about them."""

from __future__ import annotations

from hypothesis import strategies as st

from nnkit.core.analysis import Graph


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph of up to 9 nodes: unreachable parts, cycles of every kind, edges that stand twice."""
    count = draw(st.integers(1, 9))
    ends = st.lists(st.integers(0, count - 1), max_size=3)
    return Graph(draw(st.lists(ends, min_size=count, max_size=count)))


def reached(graph: Graph, *, start: int | None = None, without: int = -1) -> set[int]:
    """What paths from `start` (the entry unless given) lead to that do not touch `without`."""
    pending = [graph.entry if start is None else start]
    found: set[int] = set()
    while pending:
        node = pending.pop()
        if node != without and node not in found:
            found.add(node)
            pending.extend(graph.successors[node])
    return found


def is_dominator(graph: Graph, a: int, b: int) -> bool:
    """Whether the entry reaches `b`, and no longer does without `a`."""
    inside = reached(graph)
    return b in inside and a in inside and (a == b or b not in reached(graph, without=a))
