"""What the forms derive, and the work they spare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.autodiff.reverse import differentiate
from nnkit.core.autodiff.rules import jvp_of, vjp_of
from nnkit.core.errors import DifferentiationError, InternalError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import (
    Builder,
    Emitter,
    Function,
    GradientOf,
    Module,
    Op,
    Pure,
    TangentOf,
    Value,
    finish_function,
)
from nnkit.core.text import parse_module
from nnkit.core.types import BOOL, F64, I32, Array, TensorType, scalar

from .building import tensor

X = tensor(2, 3)


def start(*types: TensorType) -> tuple[Builder, list[Value]]:
    b = Builder()
    return b, [b.argument(type) for type in types]


def emitted(b: Builder) -> list[str]:
    return [instruction.op.name for instruction in b.block.instructions]


def pull(op: Op, *types: TensorType) -> tuple[list[str], Sequence[Value | None]]:
    """What the reverse rule emits for arguments of `types`, and the cotangents."""
    b, xs = start(*types)
    y = b.emit(op, *xs)
    ct = b.argument(y.type)
    b.block.instructions.clear()
    found = vjp_of(b, op, [y], xs, [ct])
    return emitted(b), found


def run(b: Builder, wanted: Value, *arguments: Array | list[int] | float) -> Array:
    """The value `wanted` for these arguments of the block."""
    b.emit_many(ops.Return(), [wanted])
    module = Module()
    module.add(finish_function("f", b, wanted.type))
    found: Array = evaluate(module, "f", *map(np.asarray, arguments))
    return found


def test_a_partial_of_one_hands_the_cotangent_on() -> None:
    names, (left, right) = pull(ops.Add(), X, X)
    assert names == []
    assert left is right


def test_a_partial_of_minus_one_is_a_negation() -> None:
    names, _ = pull(ops.Subtract(), X, X)
    assert names == ["negate"]


def test_a_partial_of_zero_is_no_cotangent() -> None:
    assert pull(ops.Floor(), X) == ([], [None]) or pull(ops.Floor(), X) == ([], (None,))


def test_operands_that_were_broadcast_get_sums() -> None:
    names, (left, right) = pull(ops.Add(), X, tensor(3))
    assert names == ["reduce"]
    assert left is not None and right is not None
    assert right.type == tensor(3)
    names, (_, right) = pull(ops.Add(), X, tensor(2, 1))
    assert names == ["reduce", "shapeCast"]
    assert right is not None and right.type == tensor(2, 1)


def test_no_work_for_operands_without_a_derivative() -> None:
    names, found = pull(ops.DataTypeCast(F64), tensor(2, dtype=I32))
    assert (names, tuple(found)) == ([], (None,))
    names, found = pull(ops.Select(), X, X, tensor(2, 3, dtype=BOOL))
    assert found[2] is None


def test_no_work_without_a_cotangent() -> None:
    b, (x,) = start(X)
    assert vjp_of(b, ops.Exp(), [x], [x], [None]) == (None,)
    assert jvp_of(b, ops.Exp(), [x], [x], [None]) == (None,)
    assert jvp_of(b, ops.LessThan(), [b.argument(scalar(BOOL))], [x, x], [x, None]) == (None,)
    assert emitted(b) == []


def test_a_cotangent_of_ones_multiplies_nothing() -> None:
    b, (x, y) = start(X, tensor(3))
    product = b.emit(ops.Multiply(), x, y)
    ones = ops.constant(b, X, 1)
    b.block.instructions.clear()
    by_x, by_y = vjp_of(b, ops.Multiply(), [product], [x, y], [ones])
    assert emitted(b) == ["broadcast", "reduce"]
    assert by_x is not None and by_y is not None


def test_the_choice_passes_its_cotangent_by_choosing() -> None:
    b, (x, condition) = start(tensor(), scalar(BOOL))
    y = b.emit(ops.Select(), x, x, condition)
    ct = b.argument(tensor())
    left, right = vjp_of(b, ops.Select(), [y], [x, x, condition], [ct])[:2]
    assert left is not None and right is not None
    both = b.emit(ops.Add(), left, right)
    assert run(b, both, 1.0, True, np.inf) == np.inf


def test_the_loser_of_a_maximum_gets_zero_from_an_infinite_cotangent() -> None:
    b, (x, y) = start(tensor(), tensor())
    z = b.emit(ops.Maximum(), x, y)
    ct = b.argument(tensor())
    by_x, _ = vjp_of(b, ops.Maximum(), [z], [x, y], [ct])
    assert by_x is not None
    assert run(b, by_x, 1.0, 2.0, np.inf) == 0.0


def test_products_by_numbers_are_plain_and_all_others_strong() -> None:
    assert pull(ops.Exp(), X)[0] == ["strongMultiply"]
    assert pull(ops.Multiply(), X, X)[0] == ["strongMultiply", "strongMultiply"]
    b, (x, ct) = start(X, X)
    half = ops.constant(b, X, 0.5)
    y = b.emit(ops.Multiply(), x, half)
    b.block.instructions.clear()
    vjp_of(b, ops.Multiply(), [y], [x, half], [ct])
    assert emitted(b).count("multiply") == 1


def test_a_strong_product_is_still_nan_for_a_cotangent_that_is_not_zero() -> None:
    b, (x, ct) = start(tensor(), tensor())
    y = b.emit(ops.Log(), x)
    (found,) = vjp_of(b, ops.Log(), [y], [x], [ct])
    assert found is not None
    table = ((0.0, 0.0, 0.0), (0.0, 1.0, np.inf), (np.nan, 1.0, np.nan), (np.nan, 0.0, 0.0))
    module = Module()
    b.emit_many(ops.Return(), [found])
    module.add(finish_function("f", b, found.type))
    for x_value, ct_value, expected in table:
        np.testing.assert_array_equal(evaluate(module, "f", x_value, ct_value), expected)


def test_forward_of_a_linear_op_is_the_op_with_zeros_where_nothing_moves() -> None:
    b, (x, y, dx) = start(tensor(2), tensor(3), tensor(2))
    op = ops.Concatenate(0)
    z = b.emit(op, x, y)
    (dz,) = jvp_of(b, op, [z], [x, y], [dx, None])
    assert dz is not None
    np.testing.assert_array_equal(run(b, dz, [1, 2], [3, 4, 5], [6, 7]), [6, 7, 0, 0, 0])


def test_forward_of_a_product_is_the_product_rule() -> None:
    b, (u, v, du, dv) = start(tensor(2, 3), tensor(3), tensor(2, 3), tensor(3))
    y = b.emit(ops.Dot(), u, v)
    assert jvp_of(b, ops.Dot(), [y], [u, v], [None, None]) == (None,)
    (dy,) = jvp_of(b, ops.Dot(), [y], [u, v], [du, dv])
    assert dy is not None
    rng = np.random.default_rng(0)
    a, w, da, dw = (rng.normal(size=shape) for shape in ((2, 3), 3, (2, 3), 3))
    np.testing.assert_allclose(run(b, dy, a, w, da, dw), da @ w + a @ dw, rtol=1e-14)


def test_forward_of_an_elementwise_op_has_the_shape_of_the_result() -> None:
    b, (x, y, dy) = start(X, tensor(3), tensor(3))
    z = b.emit(ops.Add(), x, y)
    (dz,) = jvp_of(b, ops.Add(), [z], [x, y], [None, dy])
    assert dz is not None and dz.type == X


def test_an_op_without_derivative_says_why() -> None:
    b, (x, ct) = start(tensor(), tensor())
    for rule in (vjp_of, jvp_of):
        with pytest.raises(
            DifferentiationError, match="trigamma cannot be differentiated: the higher"
        ):
            rule(b, ops.Trigamma(), [x], [x], [ct])


@dataclass(frozen=True)
class Wrong(Pure):
    """An op whose rule gives a cotangent of another type than the operand's."""

    name: ClassVar[str] = "wrong"
    syntax: ClassVar[str] = "wrong {x}"

    def infer(self, x: TensorType) -> TensorType:
        return scalar(x.dtype)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        return tuple(cts)


def test_a_rule_that_gives_another_type_is_our_bug() -> None:
    with pytest.raises(InternalError, match="the derivative of wrong has type f64"):
        pull(Wrong(), X)


class Ruleless(Pure):
    """An op that somebody has written without its derivatives."""

    name: ClassVar[str] = "ruleless"
    syntax: ClassVar[str] = "ruleless {x}"

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return types


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (GradientOf("f"), "ruleless cannot be differentiated in reverse: it has no vjp"),
        (TangentOf("f"), "ruleless cannot be differentiated forward: it has no jvp"),
    ],
)
def test_an_op_without_a_rule_is_named_with_its_line(
    declaration: GradientOf | TangentOf, message: str
) -> None:
    module = parse_module(
        """module "m"
func @f: (f64) -> f64 {
'entry(%x: f64):
    %y = sin %x: f64
    return %y: f64
}
"""
    )
    function = module.functions["f"]
    function.entry.instructions[0].op = Ruleless()
    type = derivative_type(function.type, declaration)
    module.add(Function("df", type, declaration=declaration))
    with pytest.raises(DifferentiationError, match=message) as caught:
        differentiate(module)
    assert "<text>:4  %y = sin %x: f64" in "".join(caught.value.__notes__)
