"""Expressions are shared, and move with their coordinates."""

from __future__ import annotations

from nnkit.core.compute.fusion_cost import LOAD, cost_of
from nnkit.core.compute.scalars import ScalarPool, Substitution, reachable
from nnkit.core.ir import Value
from nnkit.core.ops import Add, Exp, Multiply
from nnkit.core.ops.nest import Affine, Bounds, coordinate
from nnkit.core.types import F32, I64, TensorType

D0, D1 = coordinate(0), coordinate(1)
X = Value(TensorType((4, 5), F32))
I = Value(TensorType((4,), I64))


def test_equal_scalars_are_one() -> None:
    pool = ScalarPool()
    x = pool.read(X, (D0, D1), Bounds.INSIDE)
    y = pool.read(X, (D0, D1), Bounds.INSIDE)
    assert pool.computed(Add(), (x, y)) is pool.computed(Add(), (y, x))
    assert pool.read(X, (D1, D0), Bounds.INSIDE) is not x


def test_operands_come_first() -> None:
    pool = ScalarPool()
    x = pool.read(X, (D0, D1), Bounds.INSIDE)
    e = pool.computed(Exp(), (x,))
    assert reachable([pool.computed(Multiply(), (e, x))])[:2] == [x, e]


def test_substitution_moves_reads_and_coordinates() -> None:
    pool = ScalarPool()
    x = pool.read(X, (D0, D1), Bounds.INSIDE)
    axes = Substitution((D1 + 1, D0 * 2))
    assert pool.substitute(x, axes) is pool.read(X, (D1 + 1, D0 * 2), Bounds.INSIDE)
    assert pool.substitute(pool.coordinate(D0 + D1), axes) is pool.coordinate(D1 + D0 * 2 + 1)


def test_an_identity_substitution_makes_nothing_new() -> None:
    pool = ScalarPool()
    e = pool.computed(Exp(), (pool.read(X, (D0, D1), Bounds.INSIDE),))
    assert pool.substitute(e, Substitution((D0, D1))) is e


def test_a_loaded_index_takes_the_place_of_a_plain_coordinate_only() -> None:
    pool = ScalarPool()
    index = pool.read(I, (D0,), Bounds.INSIDE)
    axes = Substitution((index, D1))
    plain = pool.read(X, (D0, D1), Bounds.INSIDE)
    assert pool.substitute(plain, axes) is pool.read(X, (index, D1), Bounds.INSIDE)
    assert pool.substitute(pool.read(X, (D0 + 1, D1), Bounds.INSIDE), axes) is None


def test_reads_at_unsafe_coordinates_take_the_bounds() -> None:
    pool = ScalarPool()
    axes = Substitution((D0 + -1, D1), frozenset({0}), Bounds.CLIP)
    moved = pool.substitute(pool.read(X, (D0, D1), Bounds.INSIDE), axes)
    assert moved is pool.read(X, (D0 + -1, D1), Bounds.CLIP)
    other = pool.read(X, (Affine(), D1), Bounds.INSIDE)
    assert pool.substitute(other, axes) is other


def test_what_does_not_change_in_the_inner_loop_costs_little() -> None:
    pool = ScalarPool()
    x = pool.read(X, (D0, D1), Bounds.INSIDE)
    row = pool.computed(Exp(), (pool.read(X, (D0, Affine()), Bounds.INSIDE),))
    product = pool.computed(Multiply(), (x, row))
    assert cost_of(reachable([product]), (4, 1000)) < 2 * LOAD
    assert cost_of(reachable([row]), (4,)) > 10
