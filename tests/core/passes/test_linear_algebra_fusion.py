"""Sums of products as one product: where it pays, and where it does not or must not be done."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value, finish_function, start_function
from nnkit.core.ops import Add, Dot, Negate, Return
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.linear_algebra_fusion import LinearAlgebraFusion
from nnkit.core.types import F32, I64, DType, TensorType
from nnkit.core.verify import verify


def sum_of(
    m: int, n: int, depths: list[int], *, batch: tuple[int, ...] = (), dtype: DType = I64
) -> Module:
    """Σ xᵢ·wᵢ + b, added from the left."""
    types = [
        TensorType((*batch, *s), dtype) for k in depths for s in ((m, k), (k, n))
    ] + [TensorType((n,), dtype)]  # fmt: skip
    b = start_function(types)
    *factors, bias = b.block.arguments
    products = [b.emit(Dot(), *factors[k : k + 2]) for k in range(0, len(factors), 2)]
    total = products[0]
    for product in products[1:]:
        total = b.emit(Add(), total, product)
    return finished(b, b.emit(Add(), total, bias))


def finished(b: Builder, value: Value) -> Module:
    b.emit_many(Return(), [value])
    module = Module()
    module.add(finish_function("f", b, value.type))
    return module


def dots(module: Module) -> int:
    return sum(isinstance(i.op, Dot) for i in module.functions["f"].entry.instructions)


def run(module: Module, *, fast_math: bool = False) -> bool:
    changed = apply_pass(LinearAlgebraFusion(fast_math), module)
    verify(module)
    assert not apply_pass(LinearAlgebraFusion(fast_math), module)
    return changed


@given(
    st.integers(1, 12), st.integers(1, 12), st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.sampled_from([(), (2,), (2, 1)]),
)  # fmt: skip
def test_the_sum_stays_the_same(m: int, n: int, depths: list[int], batch: tuple[int, ...]) -> None:
    module = sum_of(m, n, depths, batch=batch)
    rng = np.random.default_rng(0)
    values = [rng.integers(-9, 9, p.tensor.shape) for p in module.functions["f"].parameters]
    before = evaluate(module, "f", *values)
    run(module)
    np.testing.assert_array_equal(evaluate(module, "f", *values), before)


def test_thin_products_are_joined() -> None:
    module = sum_of(64, 64, [4, 8, 2])
    assert run(module)
    assert dots(module) == 1


def test_thick_ones_are_not() -> None:
    assert not run(sum_of(8, 8, [64, 64]))


def test_floats_need_permission() -> None:
    module = sum_of(64, 64, [4, 8], dtype=F32)
    assert not run(module)
    assert run(module, fast_math=True)


def test_a_product_that_is_used_twice_stays() -> None:
    b = start_function([TensorType(s, I64) for s in ((64, 2), (2, 64), (64, 2), (2, 64))])
    x, w, y, u = b.block.arguments
    first = b.emit(Dot(), x, w)
    total = b.emit(Add(), first, b.emit(Dot(), y, u))
    module = finished(b, b.emit(Add(), total, b.emit(Negate(), first)))
    assert not run(module)
