"""Orders and components of graphs."""

from __future__ import annotations

import time

from hypothesis import given

from nnkit.core.analysis import Graph, components
from tests.patience import PATIENCE

from .graphs import graphs, reached


@given(graphs())
def test_the_order_has_what_is_reached_and_only_cycles_run_against_it(graph: Graph) -> None:
    assert sorted(graph.order) == sorted(reached(graph))
    assert graph.order[0] == graph.entry
    assert all(graph.order[graph.position[node]] == node for node in graph.order)
    for node in graph.order:
        for successor in graph.successors[node]:
            if graph.position[successor] <= graph.position[node]:
                assert node in reached(graph, start=successor)


@given(graphs())
def test_predecessors_are_successors_turned_around(graph: Graph) -> None:
    edges = sorted((a, b) for a in range(len(graph)) for b in graph.successors[a])
    assert edges == sorted((a, b) for b in range(len(graph)) for a in graph.predecessors[b])


@given(graphs())
def test_members_of_a_component_lead_to_each_other(graph: Graph) -> None:
    found = components(graph.successors)
    component = {node: number for number, nodes in enumerate(found) for node in nodes}
    assert sorted(component) == list(range(len(graph)))
    assert sum(map(len, found)) == len(graph)
    for a in range(len(graph)):
        after = reached(graph, start=a)
        for b in range(len(graph)):
            is_cycle = b in after and a in reached(graph, start=b)
            assert (component[a] == component[b]) == is_cycle
        assert all(component[b] <= component[a] for b in after)


def test_long_chains_and_cycles() -> None:
    count = 100_000
    start = time.process_time()
    ring = Graph([[(n + 1) % count] for n in range(count)])
    assert len(components(ring.successors)) == 1 and len(ring.order) == count
    assert time.process_time() - start < 3 * PATIENCE
