"""Natural loops agree with their definition on random graphs; nesting is inclusion."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from nnkit.core.analysis import Graph, NaturalLoop, dominators, natural_loops
from tests.patience import PATIENCE

from .graphs import graphs, is_dominator, reached


def by_definition(graph: Graph) -> dict[int, set[int]]:
    """The members of each header's loop."""
    found: dict[int, set[int]] = {}
    for header in reached(graph):
        latches = [
            node
            for node in range(len(graph))
            if header in graph.successors[node] and is_dominator(graph, header, node)
        ]
        if latches:
            found[header] = {header} | {
                node
                for node in reached(graph) - {header}
                if reached(graph, start=node, without=header) & set(latches)
            }
    return found


@given(graphs())
def test_loops_are_what_their_definition_says(graph: Graph) -> None:
    loops = natural_loops(graph, dominators(graph))
    found = {loop.header: sorted(loop.members()) for loop in loops.all}
    assert found == {header: sorted(nodes) for header, nodes in by_definition(graph).items()}
    assert len(found) == len(loops.all)
    for loop in loops.all:
        assert loop.own[0] == loop.header
        for latch in loop.latches:
            assert loop.header in graph.successors[latch]


@given(graphs())
def test_nesting_is_inclusion(graph: Graph) -> None:
    loops = natural_loops(graph, dominators(graph))
    members = by_definition(graph)

    def around(node: int) -> list[int]:
        """The headers of the loops that `node` is in, from the inside."""
        return sorted((h for h in members if node in members[h]), key=lambda h: len(members[h]))

    for node in range(len(graph)):
        found: list[int] = []
        loop: NaturalLoop | None = loops.innermost[node]
        assert (len(around(node)) if loop is None else loop.depth) == len(around(node))
        while loop is not None:
            found.append(loop.header)
            assert loop.parent is None or loop in loop.parent.children
            loop = loop.parent
        assert found == around(node)


IRREDUCIBLE = Graph([[1, 2], [2, 3], [1], []])


def test_a_cycle_with_two_entries_is_no_loop() -> None:
    assert not natural_loops(IRREDUCIBLE, dominators(IRREDUCIBLE)).all


def test_a_node_that_goes_on_to_itself() -> None:
    graph = Graph([[0, 0, 1], []])
    [loop] = natural_loops(graph, dominators(graph)).all
    assert (loop.header, list(loop.latches), loop.own) == (0, [0], [0])


N = 10_000
DEEP = {
    "nested": [[n + 1] for n in range(N)]
    + [[n + 1, 2 * N - n - 1] for n in range(N, 2 * N)]
    + [[]],
    "in a row": [[n, n + 1] for n in range(2 * N)] + [[]],
    "one header": [[n + 1, 0] for n in range(2 * N)] + [[]],
}


@pytest.mark.parametrize("name", DEEP)
def test_large_graphs_take_little_time(name: str) -> None:
    graph = Graph(DEEP[name])
    start = time.process_time()
    loops = natural_loops(graph, dominators(graph))
    assert len(loops.all) == {"nested": N, "in a row": 2 * N, "one header": 1}[name]
    assert time.process_time() - start < 3 * PATIENCE
