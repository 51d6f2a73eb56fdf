"""Policies what to save: the same bits by all of them, and no more bytes between the halves than they allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core import ops
from nnkit.core.autodiff.save_policies import choose_by_policy
from nnkit.core.errors import DifferentiationError, ParseError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Block, Builder, Function, GradientOf, Module, SavePolicy, Value
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import tensor_bytes
from tests.programs import same_bits

from .building import Term, call, count, define, differentiate, tensor
from .building import declare as declare_gradient
from .program_generator import DifferentiableProgram, differentiable_programs
from .test_reverse_control_flow import call as run
from .test_reverse_control_flow import copied, declare, directions

X = tensor(100)


def with_policies(program: DifferentiableProgram, *policies: SavePolicy | None) -> Module:
    module = copied(program.module)
    for number, save in enumerate(policies):
        declaration = GradientOf(
            "main", program.sources, program.wrt, program.keeping, seedable=True, save=save
        )
        declare(module, f"reverse_{number}", declaration)
    return module


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(differentiable_programs(), st.integers(0, 400))
def test_all_policies_give_the_same_bits(program: DifferentiableProgram, budget: int) -> None:
    policies: list[SavePolicy | None] = [None, "auto", "all", "none", budget]
    module = with_policies(program, *policies)
    differentiate(module)
    u, _ = directions(program)
    expected = run(module, "reverse_0", *program.arguments, *u)
    for number in range(1, len(policies)):
        found = run(module, f"reverse_{number}", *program.arguments, *u)
        for one, other in zip(expected, found, strict=True):
            assert same_bits(one, other), policies[number]


def halves(body: Callable[[Term], Term], save: SavePolicy) -> tuple[Module, Function, int]:
    """The gradient of a function of x, its backward half, and the bytes saved besides arguments and results."""
    module = Module()
    define(module, "f", [X], body)
    declare_gradient(module, "df", "f", keeping=(0,), seedable=True, save=save)
    differentiate(module)
    backward = module.functions["f_bwd"]
    forward = module.functions.get("f_fwd")
    saved = forward.type.results[1:] if forward else ()
    return module, backward, sum(tensor_bytes(type) for type in saved)


def sines(x: Term, times: int = 10) -> Term:
    for _ in range(times):
        x = x.apply(ops.Sin())
    return x


@pytest.mark.parametrize(
    ("save", "bytes", "again"),
    [("auto", 0, 9), ("all", 7200, 0), ("none", 0, 9), (7200, 7200, 0), (1700, 1600, 7), (0, 0, 9)],
)
def test_ten_sines(save: SavePolicy, bytes: int, again: int) -> None:
    """Of x and the sines between, x is at hand: the policy says how many others are saved."""
    module, backward, saved = halves(sines, save)
    assert saved == bytes
    assert count(backward)["sin"] == again
    assert ("noinline" in backward.attributes) == bool(again)
    x, seed = np.linspace(-1, 1, 100), np.linspace(1, 2, 100)
    plain = Module()
    define(plain, "f", [X], sines)
    declare_gradient(plain, "df", "f", keeping=(0,), seedable=True)
    differentiate(plain)
    for one, other in zip(
        evaluate(module, "df", x, seed), evaluate(plain, "df", x, seed), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_product_of_matrices_is_saved_and_what_is_cheap_is_not() -> None:
    module = Module()
    square = tensor(64, 64)
    define(module, "f", [square], lambda x: sines(sines(x, 3) @ x, 3))
    declare_gradient(module, "df", "f", seedable=True, save="auto")
    differentiate(module)
    assert module.functions["f_fwd"].type.results == (square, square)
    assert (
        count(module.functions["f_bwd"])["sin"] == 5
    )  # of three, the last is needed by the product's rule


def test_what_callees_save_is_chosen_too() -> None:
    """A function that is called twice: its backward half computes its sines again from the arguments."""
    module = Module()
    inner = define(module, "inner", [X], lambda x: sines(x, 3))
    define(module, "f", [X], lambda x: call(inner, call(inner, x)))
    for save in ("auto", "all", "none"):
        declare_gradient(module, f"df_{save}", "f", seedable=True, save=save)
    differentiate(module)
    saving = {
        name: len(f.type.results) - 1 for name, f in module.functions.items() if "fwd" in name
    }
    assert saving == {
        "f_fwd": 1,
        "inner_fwd": 2,
        "f_fwd_1": 5,
    }  # the value between; of "all" also both sines, twice
    x, seed = np.linspace(-1, 1, 100), np.linspace(1, 2, 100)
    expected = evaluate(module, "df_all", x, seed)
    for save in ("auto", "none"):
        np.testing.assert_array_equal(evaluate(module, f"df_{save}", x, seed), expected)


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_a_budget_is_kept(budget: int) -> None:
    _, _, saved = halves(lambda x: sines(sines(x, 4) * x, 5), budget)
    assert saved <= budget
    assert saved > budget - tensor_bytes(X) or saved == 9 * tensor_bytes(X)  # those of "all"


def effectful_block() -> tuple[Module, Block, list[Value]]:
    """A call of a function that does more than compute, and a sine of what it gives."""
    module = Module()
    g = define(module, "g", [X], lambda x: x)
    b = Builder(Block())
    y = b.emit(ops.Apply("g", g.type), b.argument(X))
    return module, b.block, [b.emit(ops.Sin(), y), y]


def test_what_has_an_effect_is_always_saved() -> None:
    module, block, needed = effectful_block()
    found = choose_by_policy(module, block, needed, {*block.arguments}, "none", {"g"})
    assert found.saved == needed[1:]
    assert [i.op for i in found.computed] == [ops.Sin()]
    assert choose_by_policy(module, block, needed, {*block.arguments}, "none", set()).saved == []


def test_a_budget_below_the_least_is_an_error_that_names_it() -> None:
    module, block, needed = effectful_block()
    for budget in (800, 1599):
        assert choose_by_policy(module, block, needed, set(), budget, {"g"}).saved == needed[1:]
    with pytest.raises(DifferentiationError, match="save=799 bytes are too few: at least 800 have"):
        choose_by_policy(module, block, needed, set(), 799, {"g"})


def test_policies_are_written_and_read() -> None:
    for save in ("auto", "all", "none", "4096"):
        text = f"[gradient @f wrt 0 seedable save {save}]"
        assert text in print_module(parse_module(SQUARE.replace("[gradient @f]", text)))
    for wrong, found in (("-1", "not negative"), ("some", "'auto', 'all' or 'none' was expected")):
        with pytest.raises(ParseError, match=found):
            parse_module(SQUARE.replace("[gradient @f]", f"[gradient @f save {wrong}]"))


SQUARE = """module "m"
stage raw

func @f: (f64) -> f64 {
'entry(%x: f64):
    %y = square %x: f64
    return %y: f64
}

[gradient @f]
func @df: (f64, f64) -> f64
"""
