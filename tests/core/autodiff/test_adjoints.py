"""Cotangents come together."""

from __future__ import annotations

from nnkit.core.autodiff.adjoints import Adjoints
from nnkit.core.ir import Builder

from .building import tensor


def test_contributions_are_added_and_zeros_cost_nothing() -> None:
    b = Builder()
    x, first, second = (b.argument(tensor()) for _ in range(3))
    adjoints = Adjoints(b, {x})
    adjoints.add(x, None, strong=False)
    assert adjoints[x] is None
    adjoints.add(x, first, strong=False)
    assert not b.block.instructions
    adjoints.add(x, second, strong=False)
    (addition,) = b.block.instructions
    found = adjoints[x]
    assert found is not None and found.value is addition.result


def test_a_value_that_is_not_active_gathers_nothing() -> None:
    b = Builder()
    x, ct = b.argument(tensor()), b.argument(tensor())
    adjoints = Adjoints(b, set())
    adjoints.add(x, ct, strong=False)
    assert adjoints[x] is None


def test_a_sum_is_strong_only_if_all_of_it_is() -> None:
    b = Builder()
    x, y, ct = (b.argument(tensor()) for _ in range(3))
    adjoints = Adjoints(b, {x, y})
    for value, strengths in ((x, (True, True)), (y, (True, False))):
        for strong in strengths:
            adjoints.add(value, ct, strong)
    found = [adjoints[value] for value in (x, y)]
    assert [ct is not None and ct.strong for ct in found] == [True, False]
