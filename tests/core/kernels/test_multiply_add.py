"""Sums of products are one instruction; products of derivatives compare only what may be zero beside infinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.kernels.multiply_add import multiply_and_add
from nnkit.core.ops import Add, Multiply, Negate, Square, StrongMultiply, Subtract, Tanh, constant
from nnkit.core.ops.nest import is_nest
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import print_module
from nnkit.core.types import F32, F64, Array, DType, TensorType, scalar
from nnkit.core.verify import verify
from tests.core.compute.building import module_of, results
from tests.rows import each

Expression = Callable[[Builder, Value, Value], Value]


def number(b: Builder, like: Value, value: float) -> Value:
    return constant(b, scalar(like.tensor.dtype), value)


def gelu_slope(b: Builder, x: Value, g: Value) -> Value:
    """x ⊗ (1 − tanh²(x + x³)) ⊗ x ⊗ x and other products of one chain."""
    two = b.emit(Multiply(), b.emit(Multiply(), number(b, x, 0.1), x), x)
    t = b.emit(Tanh(), b.emit(Add(), x, b.emit(Multiply(), two, x)))
    slope = b.emit(Subtract(), number(b, x, 1), b.emit(Square(), t))
    h = b.emit(Multiply(), b.emit(Multiply(), number(b, x, 0.5), x), number(b, x, 0.75))
    s = b.emit(Multiply(), b.emit(StrongMultiply(), h, slope), number(b, x, 0.25))
    once = b.emit(StrongMultiply(), s, x)
    both = b.emit(Add(), b.emit(StrongMultiply(), s, two), b.emit(StrongMultiply(), once, x))
    return b.emit(Add(), both, b.emit(Multiply(), g, b.emit(Negate(), once)))


ROWS: dict[str, tuple[Expression, dict[str, int]]] = {
    "a sum": (lambda b, x, g: b.emit(Add(), b.emit(Multiply(), x, g), x), {"fma": 1}),
    "a difference": (
        lambda b, x, g: b.emit(Subtract(), x, b.emit(Square(), g)),
        {"fma": 1, "negate": 1},
    ),
    "the other difference": (
        lambda b, x, g: b.emit(Subtract(), b.emit(Multiply(), x, number(b, x, 3)), g),
        {"fma": 1, "negate": 1},
    ),
    "a difference of two products": (
        lambda b, x, g: b.emit(Subtract(), b.emit(Multiply(), x, g), b.emit(Multiply(), g, x)),
        {"multiply": 2, "subtract": 1},
    ),
    "a sum with a product used twice": (
        lambda b, x, g: b.emit(Add(), m := b.emit(Multiply(), x, g), b.emit(Tanh(), m)),
        {"multiply": 1, "add": 1, "tanh": 1},
    ),
    "a strong product of anything": (
        lambda b, x, g: b.emit(StrongMultiply(), x, g),
        {"strongMultiply": 1},
    ),
    "a strong product of x and twice x": (
        lambda b, x, g: b.emit(StrongMultiply(), x, b.emit(Multiply(), x, number(b, x, 2))),
        {"multiply": 1, "fma": 1},
    ),
    "a strong product of x and what is at most 1": (
        lambda b, x, g: b.emit(StrongMultiply(), x, b.emit(Tanh(), x)),
        {"tanh": 1, "fma": 1, "notEqual": 1, "select": 1},
    ),
    "a strong product added to another number": (
        lambda b, x, g: b.emit(Add(), g, b.emit(StrongMultiply(), x, b.emit(Tanh(), x))),
        {"tanh": 1, "fma": 1, "notEqual": 1, "select": 1},
    ),
    "a chain": (
        gelu_slope,
        {"multiply": 5, "add": 1, "tanh": 1, "fma": 7, "notEqual": 2, "select": 4, "negate": 2},
    ),
}

FINITE = [0.0, -0.0, 1e-45, -1e-30, 1e-22, 0.5, 1.0, 9.0, 1e13, -1e20, 3e38]
SPECIAL = [*FINITE, np.inf, -np.inf, np.nan]


def built(expression: Expression, dtype: DType) -> Module:
    type = TensorType((len(SPECIAL) ** 2,), dtype)
    module = module_of(lambda b, x, g: expression(b, x, g), type, type)
    generate_compute(module)
    fuse(module)
    return module


def pairs(dtype: DType, *, with_infinities: bool = True) -> list[Array]:
    one = np.array(SPECIAL if with_infinities else FINITE[:-1], dtype.numpy)
    one = np.resize(one, len(SPECIAL))
    return [np.repeat(one, len(one)), np.tile(one, len(one))]


@each("name", ROWS)
def test_products_and_sums(name: str) -> None:
    """The instructions that are left, and what they make of zeros, infinities, NaN, subnormal and huge numbers."""
    expression, counts = ROWS[name]
    for dtype in (F32, F64):
        module = built(expression, dtype)
        # a product that overflows makes NaN of infinity, fma does not
        arguments = pairs(dtype, with_infinities="strong" in name or "chain" in name)
        expected = results(module, arguments)
        (nest,) = filter(is_nest, module.functions["main"].entry.instructions)
        multiply_and_add(nest)
        found = Counter(i.op.name for i in nest.regions[0].entry.instructions)
        assert {k: n for k, n in found.items() if k not in ("literal", "yield")} == counts
        schedule(module, Target(fma=True))
        verify(module)
        rtol = 1e-5 if dtype is F32 else 1e-14
        for x, y in zip(expected, results(module, arguments), strict=True):
            np.testing.assert_allclose(y, x, rtol=rtol, atol=rtol * 1e-20)


def test_what_is_switched_off_or_has_no_instruction_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for fma, disabled in ((True, "fma"), (False, "")):
        monkeypatch.setenv("NNKIT_DISABLE", disabled)
        module = built(gelu_slope, F32)
        schedule(module, Target(fma=fma))
        assert "fma" not in print_module(module)
