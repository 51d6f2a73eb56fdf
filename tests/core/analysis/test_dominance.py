"""Dominators of random graphs agree with their definition: remove a node, and see what is cut off."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from nnkit.core.analysis import Graph, dominators
from tests.patience import PATIENCE

from .graphs import graphs, is_dominator, reached


@given(graphs())
def test_dominance_is_what_its_definition_says(graph: Graph) -> None:
    tree = dominators(graph)
    for a in range(len(graph)):
        for b in range(len(graph)):
            assert tree.dominates(a, b) == is_dominator(graph, a, b)


@given(graphs())
def test_the_immediate_dominator_is_the_nearest(graph: Graph) -> None:
    tree = dominators(graph)
    for node in range(len(graph)):
        strict = [a for a in range(len(graph)) if a != node and is_dominator(graph, a, node)]
        parent = tree.parents[node]
        assert (parent >= 0) == bool(strict)
        assert all(is_dominator(graph, a, parent) for a in strict)


@given(graphs())
def test_the_tree_holds_what_is_reached(graph: Graph) -> None:
    tree = dominators(graph)
    inside = reached(graph)
    assert set(tree.preorder) == inside
    place = {node: k for k, node in enumerate(tree.preorder)}
    assert all(place[tree.parents[n]] < place[n] for n in inside if n != graph.entry)


def test_a_graph_without_nodes() -> None:
    tree = dominators(Graph([]))
    assert list(tree.preorder) == [] and list(Graph([]).order) == []


N = 20_000
DEEP = {
    "chain": [[n + 1] for n in range(N)] + [[]],
    "exits": [[n + 1, N] for n in range(N)] + [[]],
    "exits turned": [[N, n + 1] for n in range(N)] + [[]],
    "diamonds": [[n + 1, n + 2] for n in range(N)] + [[N + 1], []],
    "nested loops": [[n + 1] + [2 * N - n] * (n > N) for n in range(2 * N)] + [[]],
    "ladder back": [[n + 1, max(n - 1, 0)] for n in range(N)] + [[]],
    "all from the entry": [list(range(1, N))] + [[n - 1] for n in range(1, N)],
}


@pytest.mark.parametrize("name", DEEP)
def test_large_graphs_take_little_time(name: str) -> None:
    graph = Graph(DEEP[name])
    start = time.process_time()
    assert dominators(graph).dominates(0, len(graph) - 1)
    assert time.process_time() - start < 3 * PATIENCE, "a quarter of a second on an idle machine"
