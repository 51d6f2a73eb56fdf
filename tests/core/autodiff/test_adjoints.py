"""Cotangents come together."""

from __future__ import annotations

import pytest

from nnkit.core.autodiff.adjoints import Adjoints
from nnkit.core.autodiff.cotangent_arithmetic import CotangentArithmetic
from nnkit.core.autodiff.tangent_types import TangentTypes
from nnkit.core.ir import Builder, Module
from nnkit.core.ops import Bounds, Pad, Scatter, ScatterAdd, Update, constant
from nnkit.core.ops.scatter import added_part
from nnkit.core.types import F64, I64, scalar

from .building import tensor

ARITHMETIC = CotangentArithmetic(TangentTypes(Module()))


def test_contributions_are_added_and_zeros_cost_nothing() -> None:
    b = Builder()
    x, first, second = (b.argument(tensor()) for _ in range(3))
    adjoints = Adjoints(b, {x}, ARITHMETIC)
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
    adjoints = Adjoints(b, set(), ARITHMETIC)
    adjoints.add(x, ct)
    assert adjoints[x] is None


def test_a_part_is_added_to_the_total_that_there_is() -> None:
    """One from around the body where it has one, else what has come together in it."""
    b = Builder()
    x, inside, around, whole = (b.argument(tensor(9)) for _ in range(4))
    row, place = b.argument(tensor()), b.argument(scalar(I64))
    adjoints = Adjoints(
        b, {x, inside}, ARITHMETIC, start=lambda value: around if value is x else None
    )
    part = b.emit(ScatterAdd((9,), 0), row, place)
    adjoints.add(x, whole)
    adjoints.add(x, part)
    total = adjoints.total(x)
    assert total is not None
    assert total.producer is not None
    assert total.op == Scatter(0, Update.ADD)
    assert total.producer.operands == (row, around, place)
    assert adjoints[x] is whole
    for order in ((part, whole), (whole, part)):
        adjoints = Adjoints(b, {inside}, ARITHMETIC, start=lambda _: None)
        for contribution in order:
            adjoints.add(inside, contribution)
        found = adjoints[inside]
        assert found is not None
        assert found.producer is not None
        assert found.producer.operands == (row, whole, place)


@pytest.mark.parametrize(("extent", "is_added"), [(2, True), (3, False)])
def test_slices_that_are_small_are_added_to_their_place(extent: int, is_added: bool) -> None:
    b = Builder()
    part = b.argument(tensor(extent))
    padded = b.emit(Pad((1,), (31 - extent,), (0,)), part, constant(b, scalar(F64), 0))
    added = added_part(padded)
    assert (added is not None) is is_added
    assert added is None or added.op == Scatter(0, Update.ADD, (1,), (1,), Bounds.INSIDE)
