"""Laws of real numbers: taken only when asked for, and true up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ops import (
    Add,
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
from nnkit.core.types import F64, I8, TensorType
from tests.core.passes.laws import Law, check, module_of, number, opcodes, rows

X = TensorType((3, 4), F64)
Y = TensorType((4, 3), F64)
ONE = TensorType((), F64)
ADD = Combinator.ADD

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
    (
        "A · Bᵀ stays",
        [X, X],
        lambda b, x, y: b.emit(Dot(), x, b.emit(Transpose(), y)),
        "transpose dot",
    ),
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
