"""Constant folding: what becomes a literal, with the bits the evaluator gives, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ops import (
    Add,
    Aggregate,
    Apply,
    Bounds,
    Broadcast,
    Concatenate,
    DataTypeCast,
    Divide,
    Dot,
    Extract,
    Gather,
    Iota,
    Literal,
    Multiply,
    Negate,
    Pad,
    Power,
    Reduce,
    Slice,
    Sqrt,
    Transpose,
    dense,
    splat,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.passes import Fold, apply_pass
from nnkit.core.passes.fold import SMALL
from nnkit.core.types import BF16, F32, F64, I8, I64, FunctionType, TensorType, TupleType
from tests.core.passes.laws import Law, check, module_of, opcodes, rows
from tests.programs import same_bits

WIDE = TensorType((1000, 1000), F32)
MATRIX = TensorType((2, 3), F32)
NUMBERS = dense(MATRIX, np.array([[0.1, -0.0, np.inf], [np.nan, 1e-45, -7.0]], np.float32))
INDICES = TensorType((2,), I64)


def lit(b: Builder, n: float, type: TensorType = MATRIX) -> Value:
    """A splat."""
    return b.emit(splat(type, n))


LAWS = rows(
    ("numbers", [], lambda b: b.emit(Add(), lit(b, 0.1), lit(b, 0.2)), ""),
    ("a division by zero", [], lambda b: b.emit(Divide(), lit(b, 1), lit(b, 0)), ""),
    ("a root of −1", [], lambda b: b.emit(Sqrt(), lit(b, -1)), ""),
    (
        "integers wrap around",
        [],
        lambda b: b.emit(Add(), lit(b, 127, TensorType((), I8)), lit(b, 1, TensorType((), I8))),
        "",
    ),
    (
        "bf16 is rounded",
        [],
        lambda b: b.emit(
            Multiply(), lit(b, 1.1, TensorType((), BF16)), lit(b, 1.1, TensorType((), BF16))
        ),
        "",
    ),
    ("different elements", [], lambda b: b.emit(Negate(), b.emit(NUMBERS)), ""),
    (
        "different elements and a splat",
        [],
        lambda b: b.emit(Multiply(), b.emit(NUMBERS), lit(b, 3)),
        "",
    ),
    ("elementwise on a large splat", [], lambda b: b.emit(Sqrt(), lit(b, 2, WIDE)), ""),
    ("a cast of a large splat", [], lambda b: b.emit(DataTypeCast(F64), lit(b, 0.1, WIDE)), ""),
    ("broadcasting a splat", [], lambda b: b.emit(Broadcast((1000, 2, 3)), lit(b, 2)), ""),
    (
        "broadcasting a few elements to many",
        [],
        lambda b: b.emit(Broadcast((1000, 2, 3)), b.emit(NUMBERS)),
        "broadcast",
    ),
    ("a slice of a large splat", [], lambda b: b.emit(Slice((3,), (999,)), lit(b, 2, WIDE)), ""),
    (
        "padding a splat with itself",
        [],
        lambda b: b.emit(
            Pad((5000,), (0,)), lit(b, 2, TensorType((1,), F32)), lit(b, 2, TensorType((), F32))
        ),
        "",
    ),
    (
        "padding a splat with another",
        [],
        lambda b: b.emit(
            Pad((5000,), (0,)),
            lit(b, 0.0, TensorType((1,), F32)),
            lit(b, -0.0, TensorType((), F32)),
        ),
        "pad",
    ),
    (
        "concatenating equal splats",
        [],
        lambda b: b.emit(Concatenate(0), lit(b, 2, WIDE), lit(b, 2, WIDE)),
        "",
    ),
    ("a transpose", [], lambda b: b.emit(Transpose(), b.emit(NUMBERS)), ""),
    ("a sum", [], lambda b: b.emit(Reduce(Combinator.ADD, (0,)), b.emit(NUMBERS)), ""),
    (
        "a product",
        [],
        lambda b: b.emit(Dot(), b.emit(NUMBERS), b.emit(Transpose(), b.emit(NUMBERS))),
        "",
    ),
    (
        "a large product stays",
        [],
        lambda b: b.emit(
            Dot(), lit(b, 0.1, TensorType((1, 300), F32)), lit(b, 0.1, TensorType((300, 300), F32))
        ),
        "dot",
    ),
    ("a parameter", [MATRIX], lambda b, x: b.emit(Add(), x, lit(b, 1)), "add"),
    ("no operands", [], lambda b: b.emit(Iota((3,), 0, I64)), "iota"),
    ("a tuple", [], lambda b: b.emit(Aggregate(TupleType((MATRIX,))), lit(b, 1)), "aggregate"),
)


@pytest.mark.parametrize("law", LAWS)
def test_fold(law: Law) -> None:
    check(law, Fold())


def test_the_bits_are_those_of_the_evaluator() -> None:
    def build(b: Builder) -> Value:
        x = b.emit(NUMBERS)
        return b.emit(Power(), b.emit(Multiply(), x, x), b.emit(Divide(), x, lit(b, 3)))

    module = module_of([], build)
    expected = evaluate(module, "main")
    assert apply_pass(Fold(), module)
    assert same_bits(evaluate(module, "main"), expected)
    assert module.functions["main"].entry.instructions[-2].op == dense(MATRIX, expected)


def test_equal_elements_become_a_splat() -> None:
    module = module_of([], lambda b: b.emit(Reduce(Combinator.MAX, (0,)), lit(b, 2)))
    apply_pass(Fold(), module)
    literal = module.functions["main"].entry.instructions[-2].op
    assert isinstance(literal, Literal) and literal.is_splat


def test_large_constants_are_not_made_of_small_ones() -> None:
    pair = dense(TensorType((2,), F32), np.array([1, 2]))
    for count, left in ((SMALL // 2, ""), (SMALL // 2 + 1, "broadcast")):
        module = module_of([], lambda b, n=count: b.emit(Broadcast((n, 2)), b.emit(pair)))
        apply_pass(Fold(), module)
        assert opcodes(module.functions["main"]) == left


def test_an_error_is_left_to_the_program() -> None:
    outside = dense(INDICES, np.array([0, 9]))
    law = Law("", [], lambda b: b.emit(Gather(0), b.emit(NUMBERS), b.emit(outside)), "gather")
    module = module_of(law.parameters, law.build)
    assert not apply_pass(Fold(), module)
    clipped = Law(
        "", [], lambda b: b.emit(Gather(0, Bounds.CLIP), b.emit(NUMBERS), b.emit(outside)), ""
    )
    check(clipped, Fold())


def test_calls_are_not_evaluated() -> None:
    scalar = TensorType((), F32)
    module: Module = module_of([scalar], lambda b, x: b.emit(Negate(), x))
    type = FunctionType((scalar,), scalar)
    caller = module_of([], lambda b: b.emit(Apply("main", type), lit(b, 1, scalar)))
    function = caller.functions["main"]
    function.name = "caller"
    module.add(function)
    assert not apply_pass(Fold(), module)


def test_tuples_of_literals_stay() -> None:
    pair = TupleType((MATRIX, MATRIX))
    law = Law(
        "",
        [],
        lambda b: b.emit(Extract((0,)), b.emit(Aggregate(pair), lit(b, 1), lit(b, 2))),
        "aggregate extract",
    )
    check(law, Fold())
