"""Reading through a reshape finds the same element, or says that it cannot."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.address import address, delinearize, is_inside, linearize, through_cast
from nnkit.core.ops.nest import Affine, Bounds, Index, Loaded, coordinate, identity_access
from nnkit.core.types import F32, Shape, TensorType

FACTORS = st.lists(st.sampled_from((1, 2, 3)), max_size=5)


@st.composite
def casts(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Shape, Shape]:
    """Two shapes of one size: different ways to multiply the same factors together."""
    factors = draw(FACTORS)

    def grouped() -> Shape:
        shape: list[int] = []
        for factor in factors:
            if shape and draw(st.booleans()):
                shape[-1] *= factor
            else:
                shape.append(factor)
            if draw(st.integers(0, 4)) == 0:
                shape.append(1)
        return tuple(shape)

    return grouped(), grouped()


@given(casts())
def test_reading_an_alias_reads_the_element(shapes: tuple[Shape, Shape]) -> None:
    cast, source = shapes
    indices = identity_access(cast)
    found = through_cast(indices, cast, source, Bounds.INSIDE, cast)
    if found is None:
        return
    data = np.arange(math.prod(source)).reshape(source)
    seen = data.reshape(cast)
    for point in itertools.product(*map(range, cast)):
        where = tuple(int(i.evaluate(point)) for i in found if isinstance(i, Affine))
        assert data[where] == seen[point]


@pytest.mark.parametrize(
    ("cast", "source"),
    [
        ((3, 1, 4), (3, 4)),
        ((3, 4), (1, 3, 4, 1)),
        ((2, 3, 4), (6, 4)),
        ((2, 2, 5), (4, 5)),
        ((), (1,)),
    ],
    ids=str,
)
def test_axes_of_extent_1_and_split_axes_are_read_through(cast: Shape, source: Shape) -> None:
    assert through_cast(identity_access(cast), cast, source, Bounds.INSIDE, cast) is not None


def test_a_merged_axis_cannot_be_read_through() -> None:
    assert through_cast((coordinate(0),), (6,), (2, 3), Bounds.INSIDE, (6,)) is None


def test_a_loaded_index_stays_where_axes_correspond() -> None:
    indices: tuple[Index, ...] = (Loaded(0), coordinate(0))
    for bounds in (Bounds.CHECK, Bounds.INSIDE, Bounds.CLIP):
        found = through_cast(indices, (5, 3), (5, 1, 3), bounds, (3,))
        assert found == (Loaded(0), Affine(), coordinate(0))
        assert through_cast(indices, (5, 3), (15,), bounds, (3,)) is None


def test_what_may_be_outside_is_not_spread_over_axes() -> None:
    shifted = (coordinate(0) + -1,)
    assert through_cast(shifted, (6,), (6, 1), Bounds.ZERO, (6,)) == (shifted[0], Affine())
    assert through_cast((*shifted, coordinate(1)), (2, 3), (6,), Bounds.ZERO, (2, 3)) is None


@given(st.lists(st.integers(1, 4), max_size=4).map(tuple))
def test_delinearize_undoes_linearize(shape: Shape) -> None:
    position = linearize(identity_access(shape), shape)
    found = delinearize(position, shape, shape)
    assert found is not None
    for point in itertools.product(*map(range, shape)):
        assert tuple(int(i.evaluate(point)) for i in found) == point


def test_addresses_ignore_axes_of_extent_1() -> None:
    wide = address((4, 1, 3), TensorType((4, 1, 3), F32), identity_access((4, 1, 3)), Bounds.INSIDE)
    narrow = address(
        (4, 1, 3), TensorType((12,), F32), (coordinate(0) * 3 + coordinate(2),), Bounds.INSIDE
    )
    assert wide == narrow == coordinate(0) * 3 + coordinate(2)
    assert address((4,), TensorType((4,), F32), (coordinate(0),), Bounds.CLIP) is None


def test_is_inside() -> None:
    d0 = coordinate(0)
    assert is_inside(d0 + 1, 4, (3,))
    assert not is_inside(d0 + 1, 3, (3,))
    assert not is_inside(d0 + -1, 3, (3,))
    assert not is_inside(Loaded(0), 3, (3,))
