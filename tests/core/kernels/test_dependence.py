"""Which iterations are independent: a table, and random accesses against all pairs of iterations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.dependence import accesses_in, dependence, may_touch_same, root_of
from nnkit.core.kernels.indices import IndexSum, access_of
from nnkit.core.kernels.loops import loops_of
from nnkit.core.types import F32, TensorType
from tests.values import Draw

Terms = Sequence[int]
"""A constant, and what the indices of loops are multiplied with, the outermost first."""

TABLE: list[tuple[str, Terms, Terms, bool]] = [
    # loops of 5 and 4 iterations; what is stored, what is loaded, whether iterations of the outer are independent
    ("the same element in each iteration of the inner loop", (0, 1, 0), (0, 1, 0), True),
    ("the same in all iterations", (0, 0, 1), (0, 0, 1), False),
    ("even and odd", (0, 2, 0), (1, 2, 0), True),
    ("even, and some even ones", (0, 2, 0), (2, 2, 0), False),
    ("far apart", (0, 1, 0), (5, 1, 0), True),
    ("not far enough", (0, 1, 0), (4, 1, 0), False),
    ("runs of four", (0, 4, 1), (0, 4, 1), True),
    ("runs of four, the next", (0, 4, 1), (1, 4, 1), False),
    ("runs that overlap", (0, 3, 1), (0, 3, 1), False),
    ("runs with gaps", (0, 8, 2), (1, 8, 2), True),
    ("from both ends", (0, 1, 0), (9, -1, 0), True),
    ("from both ends, meeting", (0, 1, 0), (4, -1, 0), False),
]


@pytest.mark.parametrize(
    ("store", "load", "is_independent"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_table(store: Terms, load: Terms, is_independent: bool) -> None:
    build = written(store, load, (5, 4))
    assert (dependence(loops_of(build.block)[0]) is None) == is_independent


def written(
    store: Terms, load: Terms, counts: tuple[int, int], lanes: tuple[int, int] = (0, 0)
) -> KernelBuilder:
    """Two loops that load and store a buffer at these indices, perhaps a vector."""
    build = KernelBuilder([], [TensorType((1000,), F32)])
    (y,) = build.outputs
    with build.loop(counts[0]) as outer, build.loop(counts[1]) as inner:
        places = [
            IndexSum(
                terms[0] + 500,
                {v: c for v, c in zip((outer.index, inner.index), terms[1:], strict=True) if c},
            )
            for terms in (store, load)
        ]
        stored, loaded = lanes
        value = build.load(y, places[1], lanes=loaded, steps=(1,) if loaded else ())
        if stored != loaded:
            value = build.load(y, 0, lanes=stored, steps=(1,) if stored else ())
        build.store(value, y, places[0], steps=(1,) if stored else ())
    return build


def elements(terms: Terms, at: tuple[int, ...], lanes: int) -> range:
    first = terms[0] + sum(c * i for c, i in zip(terms[1:], at, strict=True))
    return range(first, first + max(lanes, 1))


@st.composite
def terms(draw: Draw) -> Terms:
    return tuple(draw(st.integers(-4, 4)) for _ in range(3))


@given(
    terms(), terms(), st.tuples(st.integers(1, 4), st.integers(1, 4)), st.sampled_from((0, 2, 4))
)
def test_what_meets_is_found(
    store: Terms, load: Terms, counts: tuple[int, int], lanes: int
) -> None:
    build = written(store, load, counts, (lanes, lanes))
    (loop,) = loops_of(build.block)
    iterations = list(product(range(counts[0]), range(counts[1])))
    meeting = any(
        one[0] != other[0] and set(elements(store, one, lanes)) & set(elements(used, other, lanes))
        for used in (store, load)
        for one in iterations
        for other in iterations
    )
    assert not meeting or dependence(loop) is not None
    found = {a.is_store: a for a in accesses_in(build.block.instructions).accesses}
    same = any(
        set(elements(store, at, lanes)) & set(elements(load, at, lanes)) for at in iterations
    )
    assert not same or may_touch_same(found[True], found[False])
    assert all(access_of(a.instruction) == a for a in found.values())


def test_buffers_that_may_lie_in_one_place_have_one_root() -> None:
    """A result in the place of one operand or another, and another result there: they are one for all rewrites."""
    build = KernelBuilder([TensorType((4,), F32)] * 4, [TensorType((4,), F32)] * 3)
    (a, b, c, d), (x, y, z) = build.operands, build.outputs
    pairs = [(a, x), (b, x), (b, y), (d, z)]
    roots = {one: root_of(one, pairs) for one in (a, b, c, d, x, y, z)}
    assert len({roots[one] for one in (a, b, x, y)}) == 1
    assert roots[d] is roots[z] is not roots[a]
    assert roots[c] is c
    for order in permutations(pairs):
        for one, other in product(roots, repeat=2):
            same = root_of(one, order) is root_of(other, order)
            assert same == (roots[one] is roots[other])
