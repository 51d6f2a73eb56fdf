"""What is saved for the backward half: exactly what its rules use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnkit.core import ops
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, finish_function, start_function
from nnkit.core.types import TensorType, TupleType, Type

from .building import Term, call, count, declare, define, differentiate, tensor

X = tensor(4)


def backward_of(
    body: Callable[..., Term], *types: Type, wrt: Sequence[int] = (0,)
) -> tuple[Module, tuple[Type, ...]]:
    """The module with `@f` called from a differentiated `@g`, and the parameters of `@f_bwd`."""
    module = Module()
    f = define(module, "f", types, body)
    define(module, "g", types, lambda *xs: call(f, *xs).apply(ops.Sin()))
    declare(module, "dg", "g", wrt=tuple(wrt))
    differentiate(module)
    return module, module.functions["f_bwd"].type.parameters


def test_a_sum_of_sums_saves_nothing() -> None:
    module, parameters = backward_of(lambda x: (x + x).sum(), X)
    assert parameters == (tensor(),)
    assert "f_fwd" not in module.functions


def test_a_square_uses_its_operand_once_and_saves_nothing_more() -> None:
    module, parameters = backward_of(lambda x: (x * x).sum(), X)
    assert parameters == (X, tensor())
    assert "f_fwd" not in module.functions


def test_an_intermediate_is_saved_once() -> None:
    module, parameters = backward_of(lambda x: (lambda y: y * y)(x.apply(ops.Floor()) + x), X)
    assert parameters == (X, X)
    assert module.functions["f_fwd"].type.result == TupleType((X, X))


def test_a_result_is_not_saved_again() -> None:
    module, parameters = backward_of(lambda x: (x + x).apply(ops.Exp()), X)
    assert parameters == (X, X)
    assert "f_fwd" not in module.functions


def test_constants_are_made_anew() -> None:
    module, parameters = backward_of(lambda x: x * 3.0 + 1.0, X)
    assert parameters == (X,)
    assert count(module.functions["f_bwd"]) == {"literal": 1, "multiply": 1, "return": 1}


def test_a_call_without_arguments_is_run_once() -> None:
    module = Module()
    b = start_function([])
    value = b.emit(ops.Sin(), ops.constant(b, tensor(), 0.5))
    b.emit_many(ops.Return(), [value])
    half = module.add(finish_function("half", b, tensor()))
    f = define(
        module, "f", [tensor()], lambda x: x * Term(x.b, x.b.emit(ops.Apply("half", half.type)))
    )
    define(module, "g", [tensor()], lambda x: call(f, x) * 2.0)
    declare(module, "dg", "g")
    differentiate(module)
    assert "apply" not in count(module.functions["f_bwd"])
    assert evaluate(module, "dg", 1.0) == 2 * np.sin(0.5)


def test_only_the_fields_that_are_used_are_handed_over() -> None:
    pair = TupleType((X, tensor(5), tensor(6)))
    _, parameters = backward_of(lambda p: p[0].sum() * p[1].sum() + p[2].sum(), pair)
    assert parameters == (tensor(), tensor(), tensor())


def test_a_field_taken_out_twice_is_one_residual() -> None:
    pair = TupleType((X, X))
    _, parameters = backward_of(lambda p: p[0] * p[1] + p[0] * p[1], pair)
    assert parameters == (X, X, X)  # both fields and the cotangent


def test_what_only_the_cotangent_of_another_parameter_needs_is_not_saved() -> None:
    _, parameters = backward_of(lambda x, w: x @ w, tensor(3, 4), tensor(4, 5), wrt=(1,))
    assert parameters == (tensor(3, 4), tensor(3, 5))


def test_the_values_saved_are_those_of_the_forward_half() -> None:
    module, _ = backward_of(lambda x: x.apply(ops.Sin()).apply(ops.Exp()) * 2.0, X)
    x = np.linspace(-1, 1, 4)
    y = np.exp(np.sin(x))
    found = evaluate(module, "f_fwd", x)
    np.testing.assert_array_equal(found[0], 2 * y)
    np.testing.assert_array_equal(found[1], y)
    assert isinstance(module.functions["dg"].type.result, TensorType)
    np.testing.assert_allclose(
        evaluate(module, "dg", x), np.cos(2 * y) * 2 * y * np.cos(x), rtol=1e-14
    )


def test_a_call_whose_residuals_end_up_unused_stays_plain() -> None:
    """The gradient of `f` flows into a rounded value only, so its backward call is dead."""
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()).apply(ops.Exp()) * 2.0)
    define(module, "g", [tensor()], lambda x: call(f, x.apply(ops.Floor())) * x)
    declare(module, "dg", "g")
    differentiate(module)
    assert set(module.functions) == {"f", "g", "dg"}
    assert evaluate(module, "dg", 0.5) == 2.0
