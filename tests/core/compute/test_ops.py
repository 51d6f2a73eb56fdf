"""The library product: its type rule, its meaning, and its nest."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nnkit.core.compute.ops import MatrixProduct, flipped
from nnkit.core.errors import ShapeError
from nnkit.core.ops.nest import Nest
from nnkit.core.types import Shape

from .building import arguments_for, assert_close, f32, module_of, nests, results

BATCHES: list[tuple[Shape, Shape, Shape]] = [
    ((), (), ()),
    ((3,), (3,), (3,)),
    ((1,), (3,), (3,)),
    ((2, 1), (3,), (2, 3)),
    ((), (0,), (0,)),
]


@pytest.mark.parametrize("batches", BATCHES, ids=str)
@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)), ids=str)
def test_product_and_nest_agree(
    batches: tuple[Shape, Shape, Shape], flips: tuple[bool, bool]
) -> None:
    left, right, both = batches
    op = MatrixProduct(*flips)
    a, b = flipped((*left, 4, 5), flips[0]), flipped((*right, 5, 6), flips[1])
    library = module_of(lambda e, x, y: e.emit(op, x, y), f32(*a), f32(*b))
    loops = module_of(lambda e, x, y: op.nest(e, x, y), f32(*a), f32(*b))
    assert isinstance(nests(loops)[0].op, Nest)
    arguments = arguments_for(library)
    (expected,) = results(library, arguments)
    assert expected.shape == (*both, 4, 6)
    x, y = (np.swapaxes(v, -1, -2) if flip else v for v, flip in zip(arguments, flips, strict=True))
    assert_close([x @ y], [expected])
    assert_close([expected], results(loops, arguments))


@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize(
    ("first", "length", "parts"), [(0, 0, 0), (2, 0, 0), (1, 3, 0), (0, 2, 4), (1, 3, 2), (3, 5, 1)]
)
def test_some_of_the_products_are_summed_or_parts_of_them(
    first: int, length: int, parts: int, flips: tuple[bool, bool]
) -> None:
    op = MatrixProduct(*flips, first, length, parts)
    a, b = flipped((2, 4, 8), flips[0]), flipped((8, 6), flips[1])
    library = module_of(lambda e, x, y: e.emit(op, x, y), f32(*a), f32(*b))
    loops = module_of(lambda e, x, y: op.nest(e, x, y), f32(*a), f32(*b))
    arguments = arguments_for(library)
    (expected,) = results(library, arguments)
    assert_close([expected], results(loops, arguments))
    x, y = (np.swapaxes(v, -1, -2) if flip else v for v, flip in zip(arguments, flips, strict=True))
    ends = [first + n * length for n in range(max(parts, 1) + 1)] if length else [first, 8]
    pieces = [x[..., i:j] @ y[..., i:j, :] for i, j in itertools.pairwise(ends)]
    assert_close([np.stack(pieces) if parts else pieces[0]], [expected])


@pytest.mark.parametrize(
    ("first", "length", "parts", "message"),
    [
        (9, 0, 0, "of 8 products those from 9 upto 8 are not summed"),
        (4, 5, 0, "of 8 products those from 4 upto 9 are not summed"),
        (0, 3, 3, "of 8 products those from 0 upto 9 are not summed"),
        (0, 0, 2, "there are no 2 parts of 0 products from 0 on"),
        (-1, 2, 0, "there are no 0 parts of 2 products from -1 on"),
    ],
)
def test_products_that_are_not_there(first: int, length: int, parts: int, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        MatrixProduct(False, False, first, length, parts).infer(f32(4, 8), f32(8, 3))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((4, 5), (6, 7), "5 and 6 differ"),
        ((5,), (5, 7), "takes matrices"),
        ((2, 4, 5), (3, 5, 7), "broadcast"),
    ],
    ids=str,
)
def test_misuse(a: Shape, b: Shape, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        MatrixProduct().infer(f32(*a), f32(*b))
