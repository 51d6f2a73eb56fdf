"""The surface of differentiation: which derivatives a declaration gives, and in which form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core import ops
from nnkit.core.errors import DifferentiationError, UnsupportedError, VerifyError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Block, Builder, Function, GradientOf, Module
from nnkit.core.location import DerivativeLocation, Location
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BOOL, F32, I32, I64, FunctionType, StructType
from nnkit.core.verify import verify

from .building import (
    Body,
    Term,
    call,
    calls,
    count,
    declare,
    define,
    differentiate,
    gradient_of,
    pack,
    size,
    tensor,
)

PARAMS = StructType("Params", (("w", tensor(3, 2)), ("b", tensor(2)), ("step", tensor(dtype=I64))))


def test_the_gradient_of_a_scalar() -> None:
    module = gradient_of([tensor()], lambda x: x * x * 4.0 + x + 4.0)
    assert evaluate(module, "df", 0.3) == pytest.approx(3.4, rel=1e-15)


@pytest.mark.parametrize("wrt", [(0,), (2,), (1, 0), (2, 0, 1), (0, 1, 2)])
def test_any_subset_of_parameters_in_any_order(wrt: tuple[int, ...]) -> None:
    module = gradient_of([tensor()] * 3, lambda x, y, z: x * y + z * z, wrt=wrt)
    expected = [(3.0, 2.0, 10.0)[index] for index in wrt]
    found = evaluate(module, "df", 2.0, 3.0, 5.0)
    assert list(found if len(wrt) > 1 else [found]) == expected


def test_from_chooses_the_result() -> None:
    for source, expected in ((0, 4.0), (1, 12.0)):
        module = gradient_of([tensor()], lambda x: (x * x, x * x * x), sources=(source,))
        assert evaluate(module, "df", 2.0) == expected


def test_kept_results_come_from_the_same_forward_half() -> None:
    module = gradient_of(
        [tensor(4, 5), tensor(5, 6)],
        lambda x, w: ((x @ w).apply(ops.Tanh()), x.sum()),
        wrt=(1,),
        keeping=(1, 0),
    )
    x, w = np.ones((4, 5)), np.full((5, 6), 0.1)
    slope, total, y = evaluate(module, "df", x, w)
    assert total == 20.0
    np.testing.assert_array_equal(y, np.tanh(x @ w))
    np.testing.assert_allclose(slope, x.T @ (1 - y**2), rtol=1e-14)
    assert count(module.functions["df"])["dot"] == 2


def test_the_seed_scales_the_gradient_exactly() -> None:
    def body(x: Term) -> Term:
        return x.apply(ops.Sin()) * x

    plain = gradient_of([tensor(3)], body)
    seeded = gradient_of([tensor(3)], body, seedable=True)
    x = np.array([0.1, 0.7, -3.0])
    once = evaluate(plain, "df", x)
    np.testing.assert_array_equal(evaluate(seeded, "df", x, np.full(3, 1024.0)), 1024 * once)
    np.testing.assert_array_equal(evaluate(seeded, "df", x, np.zeros(3)), np.zeros(3))


def test_an_unused_parameter_has_a_typed_zero_and_costs_nothing() -> None:
    module = gradient_of(
        [tensor(2), tensor(3, 4, dtype=F32), tensor(dtype=I32), tensor(2, dtype=BOOL)],
        lambda x, unused, n, flag: x * 2.0,
        wrt=(1, 0),
    )
    zero, slope = evaluate(module, "df", np.ones(2), np.ones((3, 4)), 1, np.array([True, False]))
    assert zero.dtype == np.float32
    np.testing.assert_array_equal(zero, np.zeros((3, 4)))
    np.testing.assert_array_equal(slope, [2.0, 2.0])
    assert size(module.functions["df"]) <= 6


def test_a_parameter_of_integers_is_named_in_the_error() -> None:
    module = Module()
    define(module, "f", [tensor(), tensor(3, dtype=I32)], lambda x, n: x * x)
    with pytest.raises(DifferentiationError, match=r"parameter 1 of @f is i32\[3\]"):
        declare(module, "df", "f", wrt=(0, 1))


def test_the_gradient_of_a_struct_is_a_struct_with_zeros_for_integers() -> None:
    module = gradient_of(
        [PARAMS, tensor(4, 3)], lambda p, x: (x @ p["w"] + p["b"]).apply(ops.Tanh()), wrt=(0,)
    )
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    w, b = np.linspace(-0.5, 0.5, 6).reshape(3, 2), np.array([0.1, -0.2])
    found_w, found_b, found_step = evaluate(module, "df", w, b, 7, x)
    factor = 1 - np.tanh(x @ w + b) ** 2
    np.testing.assert_allclose(found_w, x.T @ factor, rtol=1e-14)
    np.testing.assert_allclose(found_b, factor.sum(0), rtol=1e-14)
    assert found_step == 0
    assert found_step.dtype == np.int64


def test_a_struct_as_the_result() -> None:
    module = gradient_of(
        [PARAMS],
        lambda p: pack(p["w"] * 2.0, p["b"] * p["b"], p["step"], type=PARAMS),
        seedable=True,
    )
    w, b, seed = np.ones((3, 2)), np.array([3.0, 4.0]), (np.full((3, 2), 5.0), np.ones(2), 9)
    found_w, found_b, found_step = evaluate(module, "df", w, b, 7, *seed)
    np.testing.assert_array_equal(found_w, np.full((3, 2), 10.0))
    np.testing.assert_array_equal(found_b, [6.0, 8.0])
    assert found_step == 0


def test_a_struct_result_without_seed_is_the_sum_of_its_floats() -> None:
    pair = StructType("Pair", (("x", tensor(2)), ("y", tensor())))
    module = gradient_of(
        [tensor(2)],
        lambda x: (x, pack(x * x, x.sum() * 3.0, type=pair)),
        sources=(1,),
        keeping=(1, 0),
    )
    slope, squares, total, same = evaluate(module, "df", np.array([2.0, 5.0]))
    np.testing.assert_array_equal(slope, [7.0, 13.0])
    np.testing.assert_array_equal(squares, [4.0, 25.0])
    np.testing.assert_array_equal(same, [2.0, 5.0])
    assert total == 21.0


def test_several_gradients_of_one_function_in_one_module() -> None:
    module = Module()
    define(module, "f", [tensor(), tensor()], lambda a, b: a * a * b)
    declare(module, "by_a", "f", wrt=(0,))
    declare(module, "by_b", "f", wrt=(1,))
    differentiate(module)
    assert evaluate(module, "by_a", 2.0, 3.0) == 12.0
    assert evaluate(module, "by_b", 2.0, 3.0) == 4.0


def test_the_gradient_of_several_results_is_that_of_their_sum_weighted_by_seeds() -> None:
    parameters = [tensor(2), tensor()]
    results: Body = lambda x, y: (x * y, y.apply(ops.Floor()), x.sum() * y)  # noqa: E731
    x, y = np.array([2.0, 3.0]), 5.0
    ones = gradient_of(parameters, results, sources=(2, 0), keeping=(1,))
    by_x, by_y, kept = evaluate(ones, "df", x, y)
    np.testing.assert_array_equal(by_x, [10.0, 10.0])
    assert (by_y, kept) == (10.0, 5.0)
    seeded = gradient_of(parameters, results, sources=(2, 0), seedable=True)
    by_x, by_y = evaluate(seeded, "df", x, y, 0.5, np.array([1.0, -1.0]))
    np.testing.assert_array_equal(by_x, [7.5, -2.5])
    assert by_y == 0.5 * 5.0 - 1.0


def test_a_gradient_is_called_like_any_function_and_differentiated_again() -> None:
    module = Module()
    define(module, "f", [tensor()], lambda x: x * x * x)
    gradient = declare(module, "df", "f")
    define(module, "g", [tensor()], lambda x: call(gradient, x) * x)
    declare(module, "dg", "g")
    differentiate(module)
    assert evaluate(module, "g", 2.0) == 24.0
    assert evaluate(module, "dg", 2.0) == 36.0


def test_the_third_derivative_of_the_sine() -> None:
    module = Module()
    define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()))
    for order, name in enumerate(("f", "d1", "d2")):
        declare(module, f"d{order + 1}", name)
    differentiate(module)
    assert evaluate(module, "d3", 1.0) == pytest.approx(-math.cos(1.0), rel=1e-15)


def test_a_hessian_times_a_vector() -> None:
    module = Module()
    define(module, "f", [tensor(3)], lambda x: (x * x * x).sum())
    declare(module, "df", "f")
    declare(module, "hvp", "df", seedable=True)
    differentiate(module)
    found = evaluate(module, "hvp", np.array([1.0, 2.0, 3.0]), np.ones(3))
    np.testing.assert_array_equal(found, [6.0, 12.0, 18.0])


def test_the_identity_hands_the_seed_back() -> None:
    module = gradient_of([tensor(2)], lambda x: x, seedable=True)
    np.testing.assert_array_equal(
        evaluate(module, "df", np.zeros(2), np.array([3.0, 4.0])), [3.0, 4.0]
    )


def test_a_parameter_returned_twice_gets_both_seeds() -> None:
    module = Module()
    pair = define(module, "pair", [tensor()], lambda x: (x, x))
    define(module, "f", [tensor()], lambda x: call(pair, x)[0] + call(pair, x)[1] * 2.0)
    declare(module, "df", "f")
    differentiate(module)
    assert evaluate(module, "df", 1.0) == 3.0


def test_the_primal_keeps_its_instructions() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()) * x)
    before = list(f.entry.instructions)
    operands = [instruction.operands for instruction in before]
    declare(module, "df", "f")
    differentiate(module)
    assert f.entry.instructions == before
    assert [instruction.operands for instruction in before] == operands


def test_nothing_is_declared_any_more() -> None:
    module = gradient_of([tensor()], lambda x: x * x)
    assert all(f.declaration is None and f.body for f in module.functions.values())


def test_a_forward_half_that_the_gradient_does_not_need_is_gone() -> None:
    module = gradient_of([tensor(1, 784), tensor(784, 10), tensor(1, 10)], lambda x, w, b: x @ w + b,
                         wrt=(1, 2))  # fmt: skip
    found = count(module.functions["df"])
    assert found == {"literal": 1, "transpose": 1, "dot": 1, "return": 1}


@pytest.mark.parametrize("n", [10, 1_000, 10_000])
def test_a_product_of_n_factors_costs_no_more_than_five_instructions_each(n: int) -> None:
    def body(x: Term) -> Term:
        y = x
        for _ in range(n - 1):
            y = x * y
        return y

    module = gradient_of([tensor()], body)
    assert size(module.functions["df"]) <= 5 * n
    assert evaluate(module, "df", 1.0) == n


def test_ten_thousand_additions() -> None:
    def body(x: Term) -> Term:
        y = x
        for _ in range(10_000):
            y = y + x
        return y

    module = gradient_of([tensor()], body)
    assert evaluate(module, "df", 1.0) == 10_001.0


def test_an_op_without_derivative_is_named_with_its_reason_and_the_line() -> None:
    class At:
        def resolve(self) -> Location:
            return Location("model.py", 12)

    def body(x: Term) -> Term:
        x.b.location = At()
        return x.apply(ops.Trigamma())

    with pytest.raises(
        DifferentiationError, match="trigamma cannot be differentiated: the higher"
    ) as raised:
        gradient_of([tensor()], body)
    assert raised.value.__notes__ == ["  model.py:12"]


def test_an_op_without_derivative_does_no_harm_off_the_way() -> None:
    module = gradient_of([tensor(), tensor()], lambda x, y: x * y.apply(ops.Trigamma()), wrt=(0,))
    assert evaluate(module, "df", 1.0, 1.0) == pytest.approx(math.pi**2 / 6)


def test_new_instructions_have_the_place_of_what_they_differentiate() -> None:
    class At:
        def resolve(self) -> Location:
            return Location("model.py", 12)

    place = At()

    def body(x: Term) -> Term:
        x.b.location = place
        y = x.apply(ops.Sin())
        x.b.location = None
        return y * 2.0

    module = gradient_of([tensor()], body)
    placed = {
        i.op.name
        for i in module.functions["df"].entry.instructions
        if isinstance(i.location, DerivativeLocation) and i.location.primal is place
    }
    assert placed == {"cos", "literal", "multiply"}


def test_a_declaration_of_another_type_is_refused() -> None:
    module = Module()
    define(module, "f", [tensor(2)], lambda x: x.sum())
    wrong = FunctionType((tensor(2),), tensor())
    module.add(Function("df", wrong, declaration=GradientOf("f")))
    with pytest.raises(
        DifferentiationError, match=r"@df is declared as .*, but the gradient of @f is"
    ):
        differentiate(module)


ONE_IN_A_TUPLE = """
    func @f: (f64) -> f64 { 'entry(%x: f64): %y = square %x: f64 return %y: f64 }
    [gradient @f] func @df: (f64) -> (f64)
    [gradient @df] func @ddf: (f64) -> f64
    [gradient @df from 0 keeping 0 seedable] func @both: (f64, f64) -> (f64, f64)
    [tangent @f] func @tf: (f64, f64) -> (f64)
    [tangent @df] func @tdf: (f64, f64) -> (f64)
    [tangent @tf wrt 0] func @ttf: (f64, f64, f64) -> f64
"""


def test_one_derivative_in_a_tuple() -> None:
    module = parse_module(f'module "m" stage raw {ONE_IN_A_TUPLE}')
    verify(module)
    text = print_module(module)
    assert "func @df: (f64) -> (f64)\n" in text
    assert print_module(parse_module(text)) == text
    differentiate(module)
    for name, arguments, expected in (
        ("df", (3.0,), (6.0,)),
        ("ddf", (3.0,), 2.0),
        ("both", (3.0, 5.0), (10.0, 6.0)),
        ("tf", (3.0, 5.0), (30.0,)),
        ("tdf", (3.0, 5.0), (10.0,)),
        ("ttf", (3.0, 5.0, 7.0), 70.0),
    ):
        assert evaluate(module, name, *arguments) == expected


def test_several_derivatives_are_no_tuple_in_a_tuple() -> None:
    text = ONE_IN_A_TUPLE + "[gradient @f keeping 0] func @wrong: (f64) -> ((f64, f64))"
    module = parse_module(f'module "m" stage raw {text}')
    message = r"is declared as \(f64\) -> \(\(f64, f64\)\)"
    with pytest.raises(VerifyError, match=f"{message}; the gradient is .* -> \\(f64, f64\\)"):
        verify(module)
    with pytest.raises(DifferentiationError, match=f"@wrong {message}, but the gradient of @f is"):
        differentiate(module)


def test_a_gradient_of_several_results_names_one() -> None:
    text = """
    func @f: (f64) -> (f64, f64) {
    'entry(%x: f64): %p = literal (%x: f64, %x: f64): (f64, f64) return %p: (f64, f64) }
    [gradient @f] func @df: (f64) -> f64"""
    module = parse_module(f'module "m" stage raw {text}')
    message = "names no result: @f has 2 results, say from 0 or from 1"
    with pytest.raises(VerifyError, match=message):
        verify(module)
    with pytest.raises(DifferentiationError, match=message):
        differentiate(module)


def test_branches_between_blocks_are_refused() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x * x)
    assert f.body is not None
    f.body.blocks.append(Block(name="other"))
    declare(module, "df", "f")
    with pytest.raises(UnsupportedError, match="@f branches between blocks"):
        differentiate(module)


def test_loop_nests_are_refused() -> None:
    module = Module()

    def body(x: Term) -> Term:
        nested = ops.Negate().nest(x.b, x.value)
        return Term(x.b, nested)

    define(module, "f", [tensor(3)], body)
    declare(module, "df", "f")
    with pytest.raises(UnsupportedError, match=r"nest has regions.*before loop nests"):
        differentiate(module)


def test_a_module_without_declarations_is_not_changed() -> None:
    module = Module()
    define(module, "f", [tensor()], lambda x: x * x)
    assert not differentiate(module)
    assert list(module.functions) == ["f"]


def test_names_that_are_taken_are_left_alone() -> None:
    module = Module()
    f = define(module, "f", [tensor()], lambda x: x.apply(ops.Sin()).apply(ops.Sin()))
    define(module, "f_fwd", [tensor()], lambda x: x)
    define(module, "f_bwd", [tensor()], lambda x: x)
    define(module, "g", [tensor()], lambda x: call(f, x) * 2.0)
    declare(module, "dg", "g")
    differentiate(module)
    assert calls(module.functions["dg"]) == {"f_fwd_1": 1, "f_bwd_1": 1}


def test_every_generated_instruction_follows_its_type_rule() -> None:
    module = gradient_of(
        [PARAMS, tensor(4, 3)],
        lambda p, x: (x @ p["w"] + p["b"]).max(1).apply(ops.Exp()).sum(),
        wrt=(0, 1),
    )
    for function in module.functions.values():
        known = set(function.parameters)
        for instruction in function.entry.instructions:
            assert known.issuperset(instruction.operands)
            again = Builder().emit_many(instruction.op, instruction.operands)
            assert [v.type for v in again] == [v.type for v in instruction.results]
            known.update(instruction.results)
