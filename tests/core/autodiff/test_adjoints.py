"""Cotangents come together."""

from __future__ import annotations

from nnkit.core.autodiff.adjoints import Adjoints
from nnkit.core.ir import Builder

from .building import tensor


def test_contributions_are_added_and_zeros_cost_nothing() -> None:
    b = Builder()
    x, first, second = (b.argument(tensor()) for _ in range(3))
    adjoints = Adjoints(b, {x})
    adjoints.add(x, None)
    assert adjoints[x] is None
    adjoints.add(x, first)
    assert not b.block.instructions
    adjoints.add(x, second)
    (addition,) = b.block.instructions
    found = adjoints[x]
    assert found is addition.result


def test_a_value_that_is_not_active_gathers_nothing() -> None:
    b = Builder()
    x, ct = b.argument(tensor()), b.argument(tensor())
    adjoints = Adjoints(b, set())
    adjoints.add(x, ct)
    assert adjoints[x] is None
