"""Matrix chains: the order that takes the fewest multiplications, and what is left alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value, finish_function, start_function
from nnkit.core.ops import Dot, Negate, Return
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.matrix_chain import MatrixChain
from nnkit.core.types import F64, I64, DType, Shape, TensorType
from nnkit.core.verify import verify


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


def least(extents: Sequence[int]) -> int:
    """By trying everything: the definition."""
    if len(extents) < 3:
        return 0
    return min(
        least(extents[: k + 1]) + least(extents[k:]) + extents[0] * extents[k] * extents[-1]
        for k in range(1, len(extents) - 1)
    )


@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=7), st.lists(st.integers(0, 99), min_size=9)
)
def test_the_fewest_multiplications(extents: list[int], order: list[int]) -> None:
    module = chain([*pairwise(extents)], order[: len(extents) - 2])
    values = arguments(module)
    before = evaluate(module, "f", *values)
    run(module)
    assert multiplications(module) == least(extents)
    np.testing.assert_array_equal(evaluate(module, "f", *values), before)


@given(st.lists(st.integers(0, 99), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_vectors_at_the_ends_and_batches(order: list[int], batched: bool, vector: bool) -> None:
    shapes: list[Shape] = [(4, 5), (5, 6), (6, 2), (2, 7)]
    if batched:
        shapes[1] = (3, 5, 6)
        shapes[2] = (2, 1, 6, 2)
    elif vector:
        shapes[0], shapes[-1] = (5,), (2,)
    module = chain(shapes, order)
    values = arguments(module)
    before, cost = evaluate(module, "f", *values), multiplications(module)
    run(module)
    assert multiplications(module) <= cost
    np.testing.assert_array_equal(evaluate(module, "f", *values), before)


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
