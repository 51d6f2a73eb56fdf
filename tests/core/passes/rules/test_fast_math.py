"""Laws of real numbers: taken only when asked for, and true up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Op, Value
from nnkit.core.ops import (
    Add,
    Aggregate,
    Broadcast,
    Divide,
    Dot,
    Exp,
    Log,
    Multiply,
    Negate,
    Power,
    Reduce,
    Sqrt,
    Square,
    Subtract,
    Transpose,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.passes import Simplify, apply_pass
from nnkit.core.types import BF16, F16, F32, F64, I8, DType, TensorType, TupleType
from tests.core.passes.laws import Law, check, module_of, number, opcodes, rows
from tests.nearest import FORMATS, epsilon

X = TensorType((3, 4), F64)
Y = TensorType((4, 3), F64)
ONE = TensorType((), F64)
ADD = Combinator.ADD
FLOATS = (F16, BF16, F32, F64)

LAWS = rows(
    (
        "−(x − y) = y − x",
        [X, X],
        lambda b, x, y: b.emit(Negate(), b.emit(Subtract(), x, y)),
        "subtract",
    ),
    ("x + 0 = x", [X], lambda b, x: b.emit(Add(), x, number(b, x, 0)), ""),
    (
        "(x + 1) + 2 = x + 3",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Add(), x, number(b, x, 1)), number(b, x, 2)),
        "add",
    ),
    ("0 − x = −x", [X], lambda b, x: b.emit(Subtract(), number(b, x, 0), x), "negate"),
    ("x − x = 0", [X], lambda b, x: b.emit(Subtract(), x, x), ""),
    ("x · 0 = 0", [X], lambda b, x: b.emit(Multiply(), x, number(b, x, 0)), ""),
    (
        "(x · 2) · 3 = x · 6",
        [X],
        lambda b, x: b.emit(Multiply(), number(b, x, 3), b.emit(Multiply(), x, number(b, x, 2))),
        "multiply",
    ),
    ("x / x = 1", [X], lambda b, x: b.emit(Divide(), x, x), ""),
    ("x / 3 = x · ⅓", [X], lambda b, x: b.emit(Divide(), x, number(b, x, 3)), "multiply"),
    ("x / √y", [X, X], lambda b, x, y: b.emit(Divide(), x, b.emit(Sqrt(), y)), "rsqrt multiply"),
    ("exp(log(x)) = x", [X], lambda b, x: b.emit(Exp(), b.emit(Log(), x)), ""),
    ("log(exp(x)) = x", [X], lambda b, x: b.emit(Log(), b.emit(Exp(), x)), ""),
    ("(√x)² = x", [X], lambda b, x: b.emit(Square(), b.emit(Sqrt(), x)), ""),
    ("x^½ = √x", [X], lambda b, x: b.emit(Power(), x, number(b, x, 0.5)), "sqrt"),
    ("x^(−½)", [X], lambda b, x: b.emit(Power(), x, number(b, x, -0.5)), "rsqrt"),
    ("x⁻¹ = 1 / x", [X], lambda b, x: b.emit(Power(), x, number(b, x, -1)), "divide"),
    ("x³ = x² · x", [X], lambda b, x: b.emit(Power(), x, number(b, x, 3)), "square multiply"),
    ("x^0.3 stays", [X], lambda b, x: b.emit(Power(), x, number(b, x, 0.3)), "power"),
    (
        "Σᵢ Σⱼ x",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Reduce(ADD, (1,)), x)),
        "reduce",
    ),
    (
        "a sum of what is repeated",
        [ONE],
        lambda b, x: b.emit(Reduce(ADD, (0, 2)), b.emit(Broadcast((3, 4, 5)), x)),
        "multiply broadcast",
    ),
    (
        "Aᵀ · Bᵀ = (B · A)ᵀ",
        [Y, X],
        lambda b, x, y: b.emit(Dot(), b.emit(Transpose(), x), b.emit(Transpose(), y)),
        "dot transpose",
    ),
    ("−(x + y) stays", [X, X], lambda b, x, y: b.emit(Negate(), b.emit(Add(), x, y)), "add negate"),
    ("x + 2 stays", [X], lambda b, x: b.emit(Add(), x, number(b, x, 2)), "add"),
    (
        "(x · 2) + 3 stays",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Multiply(), x, number(b, x, 2)), number(b, x, 3)),
        "multiply add",
    ),
    (
        "(x + 2) · 3 stays",
        [X],
        lambda b, x: b.emit(Multiply(), b.emit(Add(), x, number(b, x, 2)), number(b, x, 3)),
        "add multiply",
    ),
    ("x − y stays", [X, X], lambda b, x, y: b.emit(Subtract(), x, y), "subtract"),
    ("x / y stays", [X, X], lambda b, x, y: b.emit(Divide(), x, y), "divide"),
    ("√x / y stays", [X, X], lambda b, x, y: b.emit(Divide(), b.emit(Sqrt(), x), y), "sqrt divide"),
    ("exp(exp(x)) stays", [X], lambda b, x: b.emit(Exp(), b.emit(Exp(), x)), "exp exp"),
    ("log(√x) stays", [X], lambda b, x: b.emit(Log(), b.emit(Sqrt(), x)), "sqrt log"),
    ("√(x²) stays", [X], lambda b, x: b.emit(Sqrt(), b.emit(Square(), x)), "square sqrt"),
    (
        "Σᵢ max over j stays",
        [X],
        lambda b, x: b.emit(Reduce(ADD, (0,)), b.emit(Reduce(Combinator.MAX, (1,)), x)),
        "reduce reduce",
    ),
    (
        "A · Bᵀ stays",
        [X, X],
        lambda b, x, y: b.emit(Dot(), x, b.emit(Transpose(), y)),
        "transpose dot",
    ),
)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("inner", "outer"), [(Add, Add), (Multiply, Multiply), (Negate, Divide)])
def test_numbers_stay_those_of_the_element_type(
    inner: type[Op], outer: type[Op], dtype: DType
) -> None:
    """Results that are computed without overflow and underflow stay what they are, up to rounding."""
    numbers = normal_numbers(dtype)
    x = TensorType((), dtype)

    def steps(b: Builder, x: Value, m: float, n: float) -> tuple[Value, Value]:
        first = b.emit(inner(), x, *([number(b, x, m)] if inner is not Negate else []))
        return first, b.emit(outer(), first, number(b, x, n))

    def build(b: Builder, x: Value) -> Value:
        values = [v for m in numbers for n in numbers for v in steps(b, x, m, n)]
        return b.emit(Aggregate(TupleType(tuple(v.type for v in values))), *values)

    strict, fast = (module_of([x], build) for _ in range(2))
    apply_pass(Simplify(fast_math=True), fast)
    least, largest = numbers[0], numbers[-1]
    for start in (0.0, *numbers, *(-n for n in numbers)):
        steps_of = [
            np.array(evaluate(module, "main", start), np.float64).reshape(-1, 2)
            for module in (strict, fast)
        ]
        sizes = abs(steps_of[0])
        is_tame = np.all((sizes >= least) & (sizes <= largest), axis=1)
        expected, actual = (values[is_tame, 1] for values in steps_of)
        # a sum may cancel what is larger than it
        scale = largest if inner is Add else abs(expected)
        assert np.all(abs(actual - expected) <= 3 * epsilon(dtype) * scale), start


def normal_numbers(dtype: DType) -> list[float]:
    """From the least normal number to the largest."""
    _, first, last = FORMATS[dtype]
    least, largest = 2.0**first, (2.0 - epsilon(dtype)) * 2.0**last
    return [least, 3 * least, 0.75, 1.0, 3.0, 200.0, largest / 3, largest]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_sum_of_more_equals_than_there_are_numbers(dtype: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Reduce(ADD, (0,)), b.emit(Broadcast((70_000,)), x))

    left = "broadcast reduce" if dtype == F16 else "multiply"
    check(
        Law("Σ x", [TensorType((), dtype)], build, left), Simplify(fast_math=True), is_exact=False
    )


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    arguments = [
        np.linspace(0.5, 2 + k, p.size).reshape(p.shape) for k, p in enumerate(law.parameters)
    ]
    strict, fast = (module_of(law.parameters, law.build) for _ in range(2))
    apply_pass(Simplify(), strict)
    apply_pass(Simplify(fast_math=True), fast)
    np.testing.assert_allclose(
        evaluate(fast, "main", *arguments), evaluate(strict, "main", *arguments), rtol=1e-12
    )
    check(law, Simplify(fast_math=True), is_exact=False)


@pytest.mark.parametrize("law", [row for row in LAWS if not str(row.id).endswith("stays")])
def test_off_by_default(law: Law) -> None:
    module = module_of(law.parameters, law.build)
    before = opcodes(module.functions["main"])
    apply_pass(Simplify(), module)
    assert opcodes(module.functions["main"]) == before


def test_integers_have_no_fractions() -> None:
    n = TensorType((9,), I8)
    check(
        Law("n / 3", [n], lambda b, x: b.emit(Divide(), x, number(b, x, 3)), "divide"),
        Simplify(fast_math=True),
    )
