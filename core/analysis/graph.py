"""Directed graphs of numbered nodes: orders, strongly connected components.

Everything here takes time in proportion to nodes and edges, and nothing recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ..lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes 0, 1, … with the successors of each; paths start at `entry`."""

    successors: Sequence[Sequence[int]]
    entry: int = 0

    def __len__(self) -> int:
        return len(self.successors)

    @cached_property
    def predecessors(self) -> Sequence[Sequence[int]]:
        """Who goes on to a node, as often as they do; nodes that are not reached count too."""
        found: list[list[int]] = [[] for _ in self.successors]
        for node, after in enumerate(self.successors):
            for successor in after:
                found[successor].append(node)
        return found

    @cached_property
    def order(self) -> Sequence[int]:
        """Reverse postorder of what the entry reaches: but for cycles, a node comes before its successors."""
        if not self.successors:
            return []
        finished: list[int] = []
        entered = [False] * len(self.successors)
        entered[self.entry] = True
        path: list[tuple[int, Iterator[int]]] = [(self.entry, iter(self.successors[self.entry]))]
        while path:
            node, rest = path[-1]
            for successor in rest:
                if not entered[successor]:
                    entered[successor] = True
                    path.append((successor, iter(self.successors[successor])))
                    break
            else:
                finished.append(node)
                path.pop()
        return finished[::-1]

    @cached_property
    def position(self) -> Sequence[int]:
        """Where each node stands in `order`; −1 when the entry does not reach it."""
        found = [-1] * len(self.successors)
        for position, node in enumerate(self.order):
            found[node] = position
        return found

    def is_reachable(self, node: int) -> bool:
        """Whether a path leads from the entry to `node`."""
        return self.position[node] >= 0


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """The strongly connected components, each after those it leads to.

    Source: Tarjan 1972, with the calls on a list.
    """
    found: list[list[int]] = []
    index = [-1] * len(successors)
    low = [0] * len(successors)
    waiting: list[int] = []
    is_waiting = [False] * len(successors)
    count = 0
    for root in range(len(successors)):
        path: list[tuple[int, Iterator[int]]] = []
        entering = root if index[root] < 0 else -1
        while entering >= 0 or path:
            if entering >= 0:
                index[entering] = low[entering] = count
                count += 1
                waiting.append(entering)
                is_waiting[entering] = True
                path.append((entering, iter(successors[entering])))
                entering = -1
            node, rest = path[-1]
            for successor in rest:
                if index[successor] < 0:
                    entering = successor
                    break
                if is_waiting[successor]:
                    low[node] = min(low[node], index[successor])
            if entering >= 0:
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            if low[node] == index[node]:
                start = len(waiting) - 1
                while waiting[start] != node:
                    start -= 1
                component = waiting[start:]
                del waiting[start:]
                for member in component:
                    is_waiting[member] = False
                found.append(component)
    return found
