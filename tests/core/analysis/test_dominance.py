"""Dominators of random graphs agree with their definition: remove a node, and see what is cut off."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from nnkit.core.analysis import Graph, dominators, post_dominators

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
    assert set(tree.preorder) == inside == {n for n in range(len(graph)) if n in tree}
    place = {node: k for k, node in enumerate(tree.preorder)}
    assert all(place[tree.parents[n]] < place[n] for n in inside if n != graph.entry)


@given(graphs())
def test_the_common_dominator_is_the_lowest(graph: Graph) -> None:
    tree = dominators(graph)
    for a in tree.preorder:
        for b in tree.preorder:
            both = [c for c in tree.preorder if tree.dominates(c, a) and tree.dominates(c, b)]
            assert all(tree.dominates(c, tree.common(a, b)) for c in both)
            assert tree.common(a, b) in both


@given(graphs())
def test_post_dominance_is_dominance_backwards(graph: Graph) -> None:
    tree = post_dominators(graph)
    ends = [n for n in range(len(graph)) if not graph.successors[n]]
    for a in range(len(graph)):
        for b in range(len(graph)):
            if not reached(graph, start=b) & set(ends):
                expected = False
            else:
                expected = a == b or not reached(graph, start=b, without=a) & set(ends)
            assert tree.dominates(a, b) == expected


def test_a_graph_without_nodes() -> None:
    tree = dominators(Graph([]))
    assert list(tree.preorder) == [] and list(Graph([]).order) == []
    assert post_dominators(Graph([])).parents == [-1]


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
    tree, after = dominators(graph), post_dominators(graph)
    assert tree.dominates(0, len(graph) - 1) and len(after.preorder) > 0
    assert time.process_time() - start < 3, "a quarter of a second on an idle machine"
