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
