"""Matrix chains: the order that takes the fewest multiplications, and what is left alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import ShapeError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value, finish_function, start_function
from nnkit.core.ops import Dot, Negate, Return
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.matrix_chain import MatrixChain
from nnkit.core.types import F64, I64, DType, Shape, TensorType
from nnkit.core.verify import verify
from tests.values import Draw


def chain(shapes: Sequence[Shape], order: Sequence[int], dtype: DType = I64) -> Module:
    """The product of matrices of `shapes`; `order` says which neighbours are multiplied next."""
    b = start_function([TensorType(shape, dtype) for shape in shapes])
    values = list(b.block.arguments)
    for position in order:
        at = position % (len(values) - 1)
        values[at : at + 2] = [b.emit(Dot(), values[at], values[at + 1])]
    return finished(b, values[0])


def finished(b: Builder, value: Value) -> Module:
    b.emit_many(Return(), [value])
    module = Module()
    module.add(finish_function("f", b, value.type))
    return module


def multiplications(module: Module) -> int:
    return sum(
        i.result.tensor.size * i.operands[0].tensor.shape[-1]
        for i in module.functions["f"].entry.instructions
        if isinstance(i.op, Dot)
    )


def run(module: Module, *, fast_math: bool = False) -> bool:
    changed = apply_pass(MatrixChain(fast_math), module)
    verify(module)
    assert not apply_pass(MatrixChain(fast_math), module)
    return changed


def arguments(module: Module) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(-9, 9, p.tensor.shape) for p in module.functions["f"].parameters]


def least(shapes: Sequence[Shape]) -> int:
    """By trying everything: the definition."""

    @cache
    def costs(first: int, last: int) -> dict[Shape, int]:
        """What the product of these factors takes, by the shape that it has."""
        if first == last:
            return {shapes[first]: 0}
        found: dict[Shape, int] = {}
        for split in range(first, last):
            sides = costs(first, split).items(), costs(split + 1, last).items()
            for (left, one), (right, other) in product(*sides):
                try:
                    type = Dot().infer(TensorType(left, I64), TensorType(right, I64))
                except ShapeError:
                    continue
                cost = one + other + type.size * left[-1]
                found[type.shape] = min(cost, found.get(type.shape, cost))
        return found

    return min(costs(0, len(shapes) - 1).values())


@st.composite
def chains(draw: Draw) -> tuple[list[Shape], list[int]]:
    """Matrices, some of them batches, or vectors at the ends; and which neighbours are multiplied next."""
    extents = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 9]), min_size=4, max_size=8))
    shapes: list[Shape] = [*pairwise(extents)]
    kind = draw(st.sampled_from(["matrices", "batches", "vectors"]))
    if kind == "batches":
        batches = st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)])
        shapes = [(*draw(batches), *shape) for shape in shapes]
    elif kind == "vectors":
        shapes[0] = draw(st.sampled_from([shapes[0], shapes[0][1:]]))
        shapes[-1] = draw(st.sampled_from([shapes[-1], shapes[-1][:1]]))
    count = len(shapes) - 1
    return shapes, draw(st.lists(st.integers(0, 99), min_size=count, max_size=count))


@given(chains())
def test_the_fewest_multiplications(drawn: tuple[list[Shape], list[int]]) -> None:
    shapes, order = drawn
    module = chain(shapes, order)
    values = arguments(module)
    before = evaluate(module, "f", *values)
    run(module)
    assert multiplications(module) == least(shapes)
    np.testing.assert_array_equal(evaluate(module, "f", *values), before)


def test_matrices_before_a_vector_that_cannot_be_moved() -> None:
    """A batch times a vector is no vector; what is multiplied before it is a chain of its own."""
    module = chain([(9, 9), (9, 9), (3, 9, 1), (1,)], [0, 0, 0])
    assert run(module)
    assert multiplications(module) == 3 * (9 * 9 * 2 + 9)


def test_a_vector_in_the_middle_is_not_moved_across() -> None:
    b = start_function([TensorType(s, I64) for s in ((4, 4), (4,), (4, 3))])
    w, v, u = b.block.arguments
    module = finished(b, b.emit(Dot(), b.emit(Dot(), w, v), u))
    assert not run(module)


def test_a_product_used_twice_is_computed_once() -> None:
    b = start_function([TensorType(s, I64) for s in ((50, 50), (50, 50), (50, 1))])
    x, y, v = b.block.arguments
    shared = b.emit(Dot(), x, y)
    once = b.emit(Dot(), shared, b.emit(Dot(), shared, v))
    module = finished(b, b.emit(Negate(), once))
    assert not run(module)


def test_floats_need_permission() -> None:
    module = chain([(100, 100), (100, 100), (100, 1)], [0, 0], F64)
    assert not run(module)
    assert run(module, fast_math=True)
    assert multiplications(module) == 2 * 100 * 100


@pytest.mark.parametrize("count", [64, 200])
def test_long_chains_end(count: int) -> None:
    extents = [2 + k * 7 % 5 for k in range(count + 1)]
    module = chain([*pairwise(extents)], [0] * (count - 1))
    before = multiplications(module)
    apply_pass(MatrixChain(), module)
    verify(module)
    assert multiplications(module) < before
    assert math.prod(module.functions["f"].type.result.shape) == extents[0] * extents[-1]  # type: ignore[attr-defined]
