"""Who calls whom."""

from __future__ import annotations

import itertools

import pytest

from nnkit.core.analysis.call_graph import call_sites, callees, cycles_callees_first, reachable
from nnkit.core.ir import Module
from nnkit.core.ops import Apply
from nnkit.core.types import F32, FunctionType, TensorType
from tests.core.passes.laws import define

X = TensorType((), F32)
UNARY = FunctionType((X,), X)


def graph(**calls: str) -> Module:
    """A module in which each function calls the functions named by letters, in order."""
    module = Module()
    for name, targets in calls.items():

        def build(b, x, targets=targets):  # type: ignore[no-untyped-def]
            for target in targets:
                x = b.emit(Apply(target, UNARY), x)
            return x

        define(module, name, [X], build)
    return module


def test_counts() -> None:
    module = graph(a="bbc", b="c", c="")
    assert callees(module.functions["a"]) == {"b": 2, "c": 1}
    assert call_sites(module) == {"b": 2, "c": 2}


def test_reachable() -> None:
    module = graph(a="b", b="a", c="a", d="")
    assert reachable(module, ["a"]) == {"a", "b"}
    assert reachable(module, ["missing"]) == set()


@pytest.mark.parametrize("order", list(itertools.permutations("abcdef"))[::37])
def test_callees_come_first(order: tuple[str, ...]) -> None:
    calls = {"a": "bc", "b": "d", "c": "de", "d": "bf", "e": "", "f": ""}
    module = graph(**{name: calls[name] for name in order})
    components = [frozenset(component) for component in cycles_callees_first(module)]
    assert sorted(map(sorted, components)) == [["a"], ["b", "d"], ["c"], ["e"], ["f"]]
    for component in components:
        seen = set().union(*components[: components.index(component) + 1])
        assert all(target in seen for name in component for target in calls[name])
