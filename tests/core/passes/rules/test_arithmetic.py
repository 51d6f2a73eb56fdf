"""Laws of arithmetic, on floats with all their special numbers and on wrapping integers."""

from __future__ import annotations

import pytest

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import (
    Abs,
    Add,
    Divide,
    FloorDivide,
    Maximum,
    Minimum,
    Modulo,
    Multiply,
    Negate,
    Power,
    Sign,
    Square,
    Subtract,
    TruncateDivide,
    splat,
)
from nnkit.core.passes.rules.arithmetic import exact_inverse
from nnkit.core.types import BF16, F16, F32, F64, I8, I32, DType, TensorType
from tests.core.passes.laws import Law, check, full, number, rows
from tests.rows import each

X = TensorType((11,), F32)
ROW = TensorType((1, 11), F32)
N = TensorType((9,), I8)


def wide(b: Builder, x: Value, n: float) -> Value:
    """Three rows like `x`, every element `n`."""
    return b.emit(splat(x.tensor.with_shape((3, 11)), n))


LAWS = rows(
    ("−(−x) = x", [X], lambda b, x: b.emit(Negate(), b.emit(Negate(), x)), ""),
    ("−(−x) of integers", [N], lambda b, x: b.emit(Negate(), b.emit(Negate(), x)), ""),
    ("−|x| stays", [X], lambda b, x: b.emit(Negate(), b.emit(Abs(), x)), "abs negate"),
    ("||x|| = |x|", [X], lambda b, x: b.emit(Abs(), b.emit(Abs(), x)), "abs"),
    ("|−x| = |x|", [X], lambda b, x: b.emit(Abs(), b.emit(Negate(), x)), "abs"),
    ("|x²| = x²", [X], lambda b, x: b.emit(Abs(), b.emit(Square(), x)), "square"),
    ("|x²| of integers", [N], lambda b, x: b.emit(Abs(), b.emit(Square(), x)), "square abs"),
    ("sign(sign(x))", [X], lambda b, x: b.emit(Sign(), b.emit(Sign(), x)), "sign"),
    ("sign(|x|) stays", [X], lambda b, x: b.emit(Sign(), b.emit(Abs(), x)), "abs sign"),
    ("(−x)² = x²", [X], lambda b, x: b.emit(Square(), b.emit(Negate(), x)), "square"),
    ("|x|² = x²", [N], lambda b, x: b.emit(Square(), b.emit(Abs(), x)), "square"),
    ("(sign x)² stays", [X], lambda b, x: b.emit(Square(), b.emit(Sign(), x)), "sign square"),
    ("x + (−0) = x", [X], lambda b, x: b.emit(Add(), x, number(b, x, -0.0)), ""),
    ("−0 + x = x", [X], lambda b, x: b.emit(Add(), full(b, x, -0.0), x), ""),
    ("x + 0 stays", [X], lambda b, x: b.emit(Add(), x, number(b, x, 0.0)), "add"),
    ("x + 0 of integers", [N], lambda b, x: b.emit(Add(), x, number(b, x, 0)), ""),
    ("x + 1 of integers", [N], lambda b, x: b.emit(Add(), x, number(b, x, 1)), "add"),
    ("x + (−y) = x − y", [X, X], lambda b, x, y: b.emit(Add(), x, b.emit(Negate(), y)), "subtract"),
    ("(−x) + y = y − x", [X, X], lambda b, x, y: b.emit(Add(), b.emit(Negate(), x), y), "subtract"),
    ("|x| + y stays", [X, X], lambda b, x, y: b.emit(Add(), b.emit(Abs(), x), y), "abs add"),
    ("x − 0 = x", [X], lambda b, x: b.emit(Subtract(), x, number(b, x, 0.0)), ""),
    ("x − (−0) stays", [X], lambda b, x: b.emit(Subtract(), x, number(b, x, -0.0)), "subtract"),
    ("−0 − x = −x", [X], lambda b, x: b.emit(Subtract(), number(b, x, -0.0), x), "negate"),
    ("0 − x stays", [X], lambda b, x: b.emit(Subtract(), number(b, x, 0.0), x), "subtract"),
    ("0 − x of integers", [N], lambda b, x: b.emit(Subtract(), number(b, x, 0), x), "negate"),
    ("x − x of integers", [N], lambda b, x: b.emit(Subtract(), x, x), ""),
    ("x − x stays", [X], lambda b, x: b.emit(Subtract(), x, x), "subtract"),
    ("x − (−y) = x + y", [X, X], lambda b, x, y: b.emit(Subtract(), x, b.emit(Negate(), y)), "add"),
    (
        "(−x) − y stays",
        [X, X],
        lambda b, x, y: b.emit(Subtract(), b.emit(Negate(), x), y),
        "negate subtract",
    ),
    ("x · x = x²", [X], lambda b, x: b.emit(Multiply(), x, x), "square"),
    ("x · y stays", [X, X], lambda b, x, y: b.emit(Multiply(), x, y), "multiply"),
    ("x · 1 = x", [X], lambda b, x: b.emit(Multiply(), x, number(b, x, 1.0)), ""),
    ("1 · x = x", [N], lambda b, x: b.emit(Multiply(), number(b, x, 1), x), ""),
    ("x · 2 stays", [X], lambda b, x: b.emit(Multiply(), x, number(b, x, 2.0)), "multiply"),
    ("x · (−1) = −x", [X], lambda b, x: b.emit(Multiply(), x, number(b, x, -1.0)), "negate"),
    ("x · (−1) of integers", [N], lambda b, x: b.emit(Multiply(), x, number(b, x, -1)), "negate"),
    ("x · 0 of integers", [N], lambda b, x: b.emit(Multiply(), x, number(b, x, 0)), ""),
    ("x · 0 stays", [X], lambda b, x: b.emit(Multiply(), x, number(b, x, 0.0)), "multiply"),
    (
        "(−x) · 3 = x · (−3)",
        [X],
        lambda b, x: b.emit(Multiply(), b.emit(Negate(), x), number(b, x, 3.0)),
        "multiply",
    ),
    (
        "(−x) · 3 of integers",
        [N],
        lambda b, x: b.emit(Multiply(), b.emit(Negate(), x), number(b, x, 3)),
        "negate multiply",
    ),
    (
        "(−x) · (−y) = x · y",
        [X, X],
        lambda b, x, y: b.emit(Multiply(), b.emit(Negate(), x), b.emit(Negate(), y)),
        "multiply",
    ),
    (
        "(−x) · y stays",
        [X, X],
        lambda b, x, y: b.emit(Multiply(), b.emit(Negate(), x), y),
        "negate multiply",
    ),
    ("x / 1 = x", [X], lambda b, x: b.emit(Divide(), x, number(b, x, 1.0)), ""),
    ("x / 1 of integers", [N], lambda b, x: b.emit(Divide(), x, number(b, x, 1)), ""),
    ("x / (−1) = −x", [N], lambda b, x: b.emit(Divide(), x, number(b, x, -1)), "negate"),
    ("x / 8 = x · 0.125", [X], lambda b, x: b.emit(Divide(), x, number(b, x, 8.0)), "multiply"),
    ("x / 3 stays", [X], lambda b, x: b.emit(Divide(), x, number(b, x, 3.0)), "divide"),
    ("x / 2 of integers", [N], lambda b, x: b.emit(Divide(), x, number(b, x, 2)), "divide"),
    ("x / 0 stays", [X], lambda b, x: b.emit(Divide(), x, number(b, x, 0.0)), "divide"),
    ("x / ∞ stays", [X], lambda b, x: b.emit(Divide(), x, number(b, x, float("inf"))), "divide"),
    (
        "(−x) / (−y) = x / y",
        [X, X],
        lambda b, x, y: b.emit(Divide(), b.emit(Negate(), x), b.emit(Negate(), y)),
        "divide",
    ),
    (
        "(−x) / (−y) of integers",
        [N, N],
        lambda b, x, y: b.emit(Divide(), b.emit(Negate(), x), b.emit(Negate(), y)),
        "negate negate divide",
    ),
    ("⌊x / 1⌋ = x", [N], lambda b, x: b.emit(FloorDivide(), x, number(b, x, 1)), ""),
    (
        "⌊x / 1⌋ of floats",
        [X],
        lambda b, x: b.emit(FloorDivide(), x, number(b, x, 1)),
        "floorDivide",
    ),
    ("trunc(x / 1) = x", [N], lambda b, x: b.emit(TruncateDivide(), x, number(b, x, 1)), ""),
    ("x mod 1 = 0", [N], lambda b, x: b.emit(Modulo(), x, number(b, x, 1)), ""),
    ("x mod −1 = 0", [N], lambda b, x: b.emit(Modulo(), x, number(b, x, -1)), ""),
    ("x mod 1 of floats", [X], lambda b, x: b.emit(Modulo(), x, number(b, x, 1)), "modulo"),
    ("max(x, x) = x", [X], lambda b, x: b.emit(Maximum(), x, x), ""),
    ("min(x, x) = x", [N], lambda b, x: b.emit(Minimum(), x, x), ""),
    ("max(x, y) stays", [X, X], lambda b, x, y: b.emit(Maximum(), x, y), "max"),
    ("x⁰ = 1", [X], lambda b, x: b.emit(Power(), x, number(b, x, 0.0)), ""),
    ("x¹ = x", [X], lambda b, x: b.emit(Power(), x, number(b, x, 1.0)), ""),
    ("x⁰ = 1 of integers", [N], lambda b, x: b.emit(Power(), x, number(b, x, 0)), ""),
    ("x¹ = x of integers", [N], lambda b, x: b.emit(Power(), x, number(b, x, 1)), ""),
    ("x² of integers", [N], lambda b, x: b.emit(Power(), x, number(b, x, 2)), "square"),
    ("x³ of integers", [N], lambda b, x: b.emit(Power(), x, number(b, x, 3)), "power"),
    ("x⁻¹ of integers", [N], lambda b, x: b.emit(Power(), x, number(b, x, -1)), "power"),
    ("x^½ stays", [X], lambda b, x: b.emit(Power(), x, number(b, x, 0.5)), "power"),
    ("a wide 1", [ROW], lambda b, x: b.emit(Multiply(), x, wide(b, x, 1)), "broadcast"),
    ("a wide −1", [ROW], lambda b, x: b.emit(Multiply(), x, wide(b, x, -1)), "negate broadcast"),
)


@each("law", LAWS)
def test_law(law: Law) -> None:
    check(law)


def test_a_square_is_at_least_as_exact_as_a_power() -> None:
    law = Law("x²", [X], lambda b, x: b.emit(Power(), x, number(b, x, 2.0)), "square")
    check(law, is_exact=False)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_division_by_powers_of_two(dtype: DType) -> None:
    assert exact_inverse(4.0, dtype) == 0.25
    assert exact_inverse(-0.5, dtype) == -2.0
    assert exact_inverse(3.0, dtype) is None
    assert exact_inverse(float("nan"), dtype) is None
    tiny = {"f16": 2.0**-15, "bf16": 2.0**-127, "f32": 2.0**-127, "f64": 2.0**-1023}[dtype.name]
    assert exact_inverse(1 / tiny if dtype != F64 else 2.0**1023, dtype) is None


def test_the_constant_keeps_its_element_type() -> None:
    x = TensorType((9,), I32)
    check(Law("x · 1", [x], lambda b, x: b.emit(Multiply(), x, full(b, x, 1)), ""))
