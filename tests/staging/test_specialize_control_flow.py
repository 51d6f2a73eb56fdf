"""Choices and loops as IR: what stands in a body and what outside, captures, and what is shared."""

from __future__ import annotations

from typing import Any

import pytest

import nnkit as nk
from nnkit import Rep, ShapeError, boolean, cond, f32, fori, i32, spec, staged, while_loop

P, V, N = spec((), boolean), spec((3,), f32), spec((), i32)


def lines(text: str, word: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if word in line]


def test_what_a_branch_makes_stands_in_it_and_what_is_shared_before_it() -> None:
    def body(p: Rep, x: Rep) -> Rep:
        shared = nk.exp(x)
        return cond(p, lambda: shared + nk.sin(x), lambda: shared * shared)

    text = staged(body).ir(P, V)
    before, _, rest = text.partition("if %")
    first, _, second = rest.partition("else")
    assert "exp" in before and "exp" not in rest
    assert "sin" in first and "multiply" in second and "sin" not in before + second


def test_what_is_made_in_two_bodies_is_made_in_each() -> None:
    text = staged(lambda p, x: cond(p, lambda: nk.exp(x), lambda: nk.exp(x) + 1.0)).ir(P, V)
    assert text.count("exp %") == 2


def test_a_constant_from_outside_of_all_functions_may_be_used_in_bodies() -> None:
    c = nk.const(nk.Tensor1D([1.0, 2.0, 3.0], f32)) * 2.0
    f = staged(lambda p, x: cond(p, lambda: x + c, lambda: x) + c)
    assert "multiply" in f.ir(P, V)
    nested = staged(lambda p, x: cond(p, lambda: cond(p, lambda: x * c, lambda: c), lambda: c - x))
    assert nested.ir(P, V).count("if %") == 2


def test_an_unused_choice_is_not_there() -> None:
    def body(p: Rep, x: Rep) -> Rep:
        cond(p, lambda: nk.exp(x), lambda: x)
        return x

    assert "if" not in staged(body).ir(P, V)


def test_one_instruction_has_all_results() -> None:
    def body(n: Rep, x: Rep) -> Any:
        k, y, z = while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1]), (n, x, x * 2.0))
        return k, y, z, y + z

    assert len(lines(staged(body).ir(N, V), "while carrying")) == 1


def test_errors_in_bodies_name_arguments_of_bodies() -> None:
    with pytest.raises(ShapeError) as caught:
        staged(lambda x: fori(0, 3, lambda i, c: c + c[1:], x)).ir(V)
    notes = "\n".join(caught.value.__notes__)
    assert "is argument 1 of the body of fori: f32[3]" in notes


def test_bodies_many_levels_deep() -> None:
    def nest(p: Rep, x: Rep, depth: int) -> Rep:
        return cond(p, lambda: x, lambda: nest(p, x + 1.0, depth - 1)) if depth else x

    assert staged(lambda p, x: nest(p, x, 50)).ir(P, V).count("if %") == 50
