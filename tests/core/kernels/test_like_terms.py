"""Terms of a sum with the same factors become a multiple of one of them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.like_terms import collect_like_terms
from nnkit.core.ops import Add, Multiply, Square, StrongMultiply, Subtract
from nnkit.core.ops.nest import is_nest
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64
from nnkit.core.verify import verify
from tests.core.compute.building import results
from tests.rows import each

from .test_multiply_add import Expression, built, number, pairs


def times(b: Builder, *factors: Value) -> Value:
    product = factors[0]
    for factor in factors[1:]:
        product = b.emit(Multiply(), product, factor)
    return product


def strongly(b: Builder, *factors: Value) -> Value:
    product = factors[0]
    for factor in factors[1:]:
        product = b.emit(StrongMultiply(), product, factor)
    return product


def plus(b: Builder, *terms: Value) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = b.emit(Add(), total, term)
    return total


def slope_of_cube(b: Builder, x: Value, g: Value) -> Value:
    """x³ and the derivative of g · x · x · x by x: one strong product is left, and a multiple."""
    square = times(b, x, x)
    once = strongly(b, g, x)
    terms = [strongly(b, g, square), strongly(b, once, x), strongly(b, once, x)]
    return plus(b, times(b, square, x), plus(b, *terms))


def slope_with_number(b: Builder, x: Value, g: Value) -> Value:
    """g ⊗ (a · x · x) is there; (g ⊗ x) ⊗ (a · x) and (g ⊗ x ⊗ x) · a are the same."""
    a = number(b, x, 0.25)
    scaled = times(b, a, x)
    square = times(b, scaled, x)
    once = strongly(b, g, x)
    rest = [strongly(b, g, square), strongly(b, once, scaled), times(b, strongly(b, once, x), a)]
    return plus(b, g, *rest, times(b, square, x))


ROWS: dict[str, tuple[Expression, dict[str, int]]] = {
    "a product in both orders": (
        lambda b, x, g: plus(b, times(b, x, g), times(b, g, x)),
        {"multiply": 2},
    ),
    "three of four terms": (
        lambda b, x, g: plus(
            b,
            times(b, x, x, g),
            times(b, x, x),
            times(b, g, b.emit(Square(), x)),
            times(b, g, x, x),
        ),
        {"multiply": 3, "add": 1},
    ),
    "the derivative of a cube": (slope_of_cube, {"multiply": 2, "strongMultiply": 2, "add": 1}),
    "that of a · x · x · x": (slope_with_number, {"multiply": 3, "strongMultiply": 2, "add": 2}),
    "numbers are factors": (
        lambda b, x, g: plus(b, times(b, number(b, x, 2), x), times(b, number(b, x, 3), x)),
        {"multiply": 2, "add": 1},
    ),
    "0 and −0 are two": (
        lambda b, x, g: plus(b, times(b, number(b, x, -0.0), x), times(b, number(b, x, 0.0), x)),
        {"multiply": 2, "add": 1},
    ),
    "a term that is used elsewhere": (
        lambda b, x, g: times(b, plus(b, m := times(b, x, g), times(b, g, x)), m),
        {"multiply": 3},
    ),
    "a difference": (
        lambda b, x, g: b.emit(Subtract(), times(b, x, g), times(b, g, x)),
        {"multiply": 2, "subtract": 1},
    ),
    "the sum of a sum that is used elsewhere": (
        lambda b, x, g: times(b, s := plus(b, times(b, x, g), g), plus(b, s, times(b, g, x))),
        {"multiply": 3, "add": 2},
    ),
}


@each("name", ROWS)
def test_like_terms(name: str) -> None:
    """The instructions that are left, and what they make of zeros, infinities, NaN and huge numbers."""
    expression, counts = ROWS[name]
    for dtype in (F32, F64):
        module = built(expression, dtype)
        arguments = pairs(dtype)
        with np.errstate(all="ignore"):
            expected = results(module, arguments)
        (nest,) = filter(is_nest, module.functions["main"].entry.instructions)
        collect_like_terms(nest)
        found = Counter(i.op.name for i in nest.regions[0].entry.instructions)
        assert {k: n for k, n in found.items() if k not in ("literal", "yield")} == counts
        verify(module)
        rtol = 1e-5 if dtype is F32 else 1e-14
        for late in (False, True):
            if late:
                schedule(module, Target(fma=False))
            for x, y in zip(expected, results(module, arguments), strict=True):
                # a product that overflows may be left out, one of small numbers be the one that stays
                kept = np.isfinite(x) & ((arguments[0] == 0) | (abs(arguments[0]) > 1e-18))
                np.testing.assert_allclose(y[kept], x[kept], rtol=rtol, atol=rtol * 1e-20)
                assert np.isnan(x[np.isnan(y)]).all()
