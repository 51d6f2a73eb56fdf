"""What is known about index maps before the loops run, against trying every point."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.index_maps import axes_of, covers, is_injective
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Affine, Bounds, Loaded, Output, coordinate
from nnkit.core.types import F32, Shape, TensorType

D0, D1 = coordinate(0), coordinate(1)


@st.composite
def maps(draw: st.DrawFn) -> tuple[list[Affine], Shape]:
    """A few affine indices over a small box."""
    rank = draw(st.integers(1, 3))
    extents = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    count = draw(st.integers(1, 3))
    indices = [
        Affine(
            draw(st.integers(-2, 2)),
            tuple(
                (axis, c)
                for axis in range(rank)
                if (c := draw(st.sampled_from((0, 0, 1, 1, -1, 2, 3, 4, -5))))
            ),
        )
        for _ in range(count)
    ]
    return indices, extents


def points(extents: Shape, axes: frozenset[int]) -> list[tuple[int, ...]]:
    """The box with only these axes moving."""
    return list(
        itertools.product(*(range(n) if axis in axes else (0,) for axis, n in enumerate(extents)))
    )


@given(maps())
def test_injective_maps_do_not_repeat(case: tuple[list[Affine], Shape]) -> None:
    indices, extents = case
    places = [
        tuple(int(index.evaluate(point)) for index in indices)
        for point in points(extents, axes_of(indices, extents))
    ]
    if is_injective(indices, extents):
        assert len(set(places)) == len(places)


@given(maps())
def test_covers_means_every_element(case: tuple[list[Affine], Shape]) -> None:
    indices, extents = case
    ends = [index.bounds(extents) for index in indices]
    indices = [index + -low for index, (low, _) in zip(indices, ends, strict=True)]
    shape = tuple(high - low + 1 for low, high in ends)
    output = Output(TensorType(shape, F32), tuple(indices))
    if covers(output, extents):
        found = np.zeros(shape, bool)
        for point in points(extents, frozenset(range(len(extents)))):
            found[tuple(int(index.evaluate(point)) for index in indices)] = True
        assert found.all()


@pytest.mark.parametrize(
    ("indices", "extents", "wanted"),
    [
        ((D0, D1), (3, 4), True),
        ((D0 * 4 + D1,), (3, 4), True),
        ((D0 * 3 + D1,), (3, 4), False),
        ((D0 + D1, D1), (3, 4), True),
        ((D0 + D1,), (3, 4), False),
        ((D0 * -1 + 5,), (3,), True),
        ((Loaded(0), D0), (3,), False),
        ((), (1, 1), True),
    ],
    ids=str,
)
def test_is_injective(indices: tuple[Affine, ...], extents: Shape, wanted: bool) -> None:
    assert is_injective(indices, extents) is wanted


def test_covers() -> None:
    type = TensorType((3, 4), F32)
    assert covers(Output(type, (D0, D1)), (3, 4))
    assert covers(Output(type, (D0, D1), Combinator.ADD), (3, 4, 5))
    assert not covers(Output(type, (D0, D1)), (2, 4))
    assert not covers(Output(type, (D0, D1)), (3, 0))
    assert not covers(Output(type, (D0, D1), bounds=Bounds.ZERO), (3, 4))
    assert not covers(Output(type, (D0, D0)), (3,))
