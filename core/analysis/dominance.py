"""Dominator trees of graphs.

The tree is found in near-linear time for every graph, however deep, irreducible ones included:

1. number the nodes by a depth-first search from the entry;
2. in falling order, find a node's semidominator: the smallest node from which a path of larger ones leads
   to it; a forest with path compression answers what is smallest on the way;
3. the immediate dominator is the semidominator, or that of the node which was smallest.

Source: Lengauer & Tarjan 1979, the simple version.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..lazy_dataclass import dataclass
from .graph import Graph


@dataclass(frozen=True, eq=False)
class DominatorTree:
    """`parents` has the immediate dominator of each node; −1 for the root and for what it does not reach."""

    root: int
    parents: Sequence[int]

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """The nodes immediately dominated by each."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(node)
        return found

    @cached_property
    def preorder(self) -> Sequence[int]:
        """The nodes of the tree, each before those it dominates."""
        found: list[int] = []
        pending = [self.root] if self.parents else []
        while pending:
            node = pending.pop()
            found.append(node)
            pending.extend(reversed(self.children[node]))
        return found

    @cached_property
    def _spans(self) -> Sequence[tuple[int, int]]:
        """Where a node stands in `preorder`, and how far what it dominates goes; (−1, −1) outside."""
        first = [-1] * len(self.parents)
        size = [1] * len(self.parents)
        for position, node in enumerate(self.preorder):
            first[node] = position
        for node in reversed(self.preorder):
            if self.parents[node] >= 0:
                size[self.parents[node]] += size[node]
        return [(a, a + n if a >= 0 else -1) for a, n in zip(first, size, strict=True)]

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the root to `b` goes through `a`; a node dominates itself.

        False where the root does not reach both.  Constant time.
        """
        start, end = self._spans[a]
        return start <= self._spans[b][0] < end


def dominators(graph: Graph) -> DominatorTree:
    """The dominator tree of what `graph.entry` reaches."""
    if not len(graph):
        return DominatorTree(graph.entry, [])
    search = _Search(graph)
    return DominatorTree(graph.entry, search.immediate_dominators())


class _Search:
    """Steps 1 to 3 of the module's text; nodes are numbers of the search inside."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.number = [-1] * len(graph)
        self.nodes: list[int] = []
        self.parent: list[int] = []
        self._enter()
        count = len(self.nodes)
        self.semi = list(range(count))
        self.smallest = list(range(count))
        self.ancestor = [-1] * count

    def _enter(self) -> None:
        pending = [(self.graph.entry, -1)]
        while pending:
            node, parent = pending.pop()
            if self.number[node] >= 0:
                continue
            number = self.number[node] = len(self.nodes)
            self.nodes.append(node)
            self.parent.append(parent)
            pending.extend((successor, number) for successor in self.graph.successors[node])

    def immediate_dominators(self) -> list[int]:
        count = len(self.nodes)
        dominator = [-1] * count
        waiting: list[list[int]] = [[] for _ in range(count)]
        for w in range(count - 1, 0, -1):
            for predecessor in self.graph.predecessors[self.nodes[w]]:
                v = self.number[predecessor]
                if v >= 0:
                    self.semi[w] = min(self.semi[w], self.semi[self._least(v)])
            waiting[self.semi[w]].append(w)
            self.ancestor[w] = parent = self.parent[w]
            for v in waiting[parent]:
                u = self._least(v)
                dominator[v] = u if self.semi[u] < self.semi[v] else parent
            waiting[parent].clear()
        for w in range(1, count):
            if dominator[w] != self.semi[w]:
                dominator[w] = dominator[dominator[w]]
        found = [-1] * len(self.graph)
        for w in range(1, count):
            found[self.nodes[w]] = self.nodes[dominator[w]]
        return found

    def _least(self, v: int) -> int:
        """The node with the smallest semidominator on the way up from `v`, the forest's root aside."""
        if self.ancestor[v] < 0:
            return v
        path: list[int] = []
        top = v
        while self.ancestor[self.ancestor[top]] >= 0:
            path.append(top)
            top = self.ancestor[top]
        for node in reversed(path):
            above = self.ancestor[node]
            if self.semi[self.smallest[above]] < self.semi[self.smallest[node]]:
                self.smallest[node] = self.smallest[above]
            self.ancestor[node] = self.ancestor[above]
        return self.smallest[v]
