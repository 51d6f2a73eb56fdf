"""Staged functions that call themselves, `fix`, and functions as arguments and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import (
    Rep,
    Scalar,
    Tensor1D,
    Tensor2D,
    boolean,
    cond,
    const,
    f32,
    fix,
    fn,
    fori,
    i32,
    spec,
    staged,
)

from .running import plain, run

F1, F2 = Tensor1D[f32], Tensor2D[f32]
Int, Number = Scalar[i32], Scalar[f32]


def one() -> Rep:
    return const(i32(1))


def number(n: int) -> Any:
    return np.int32(n)


def vector(*values: float) -> Any:
    return np.array(values, np.float32)


# ----------------------------------------------------------------------------------- as NNKit's tests have it


@staged
def factorial(n: Rep[Int]) -> Rep[Int]:
    return cond(n == 0, one, lambda: n * factorial(n - 1))


def test_factorial_by_recursion() -> None:
    by_lambda = staged(lambda n: cond(n == 0, one, lambda: n * by_lambda(n - 1)))
    for function in (factorial, by_lambda):
        assert [run(function, number(n)) for n in range(6)] == [1, 1, 2, 6, 24, 120]


@staged
def fibonacci(n: Rep[Int]) -> Rep[Int]:
    """`cond` with several clauses is a `cond` inside another one."""
    return cond(
        n == 0,
        lambda: n,
        lambda: cond(n == 1, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2)),
    )


def test_fibonacci_with_several_clauses() -> None:
    assert [run(fibonacci, number(n)) for n in range(11)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_currying_with_partial_applications_shared_and_reused() -> None:
    add = fn(Int, Int)(lambda x, y: fn(Int)(lambda z: (x + y + z) * 10))
    partial = add(number(1), number(2))
    assert [int(partial(number(z))) for z in (3, 4)] == [60, 70]
    assert int(partial(number(3))) + int(partial(number(3))) == 120
    assert int(add[number(5), number(6)][number(7)]) == 180

    def shared(x: Rep, y: Rep) -> Rep:
        inner = add(x, y)
        return inner(x) + inner(y) * inner(x)

    assert run(staged(shared), number(1), number(2)) == 40 + 50 * 40


def test_a_staged_function_that_takes_a_staged_function_and_curries_it() -> None:
    @staged
    def curry(f: Rep[Callable[[Int, Int], Int]]) -> Rep[Callable[[Int], Callable[[Int], Int]]]:
        return fn(Int)(lambda x: fn(Int)(lambda y: f(x, y)))

    subtract = fn(Int, Int)(lambda x, y: x - y)
    curried = curry(subtract)
    assert int(curried(number(7))(number(3))) == 4
    use = staged(lambda x, y: curry(subtract)(x)(y) * curried(y)(x))
    assert run(use, number(7), number(3)) == -16


def test_fix_for_factorial_and_fibonacci() -> None:
    @fix
    def named(rec: Rep[Callable[[Int], Int]]) -> Rep[Callable[[Int], Int]]:
        return fn(Int)(lambda n: cond(n == 0, one, lambda: n * rec[n - 1]))

    by_lambda = fix(lambda self: lambda n: cond(n <= 1, one, lambda: n * self(n - 1)))
    by_fn = fix(lambda self: fn(Int)(lambda n: cond(n <= 1, one, lambda: n * self[n - 1])))
    for function in (named, by_lambda, by_fn):
        assert run(function, number(5)) == 120
    doubly = fix(lambda f: lambda n: cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))
    assert run(doubly, number(12)) == 144
    assert repr(named) == "<staged function named(n)>"
    with pytest.raises(nk.RankError, match="argument n of named must be a Tensor0D"):
        named(np.zeros(2, np.int32))


# -------------------------------------------------------------------------------------------------- recursion


@staged
def even(n: Rep[Int]) -> Rep[Scalar[boolean]]:
    return cond(n == 0, lambda: n == 0, lambda: odd(n - 1))


@staged
def odd(n: Rep[Int]) -> Rep[Scalar[boolean]]:
    return cond(n == 0, lambda: n != 0, lambda: even(n - 1))


def test_mutual_recursion() -> None:
    assert [run(even, number(n)) for n in range(5)] == [True, False, True, False, True]
    assert [run(odd, number(n)) for n in range(5)] == [False, True, False, True, False]
    assert even.ir(spec((), i32)).count("func @") == 2


def test_a_cycle_of_functions_of_which_one_has_no_end_of_its_own() -> None:
    a = staged(lambda n: cond(n <= 0, lambda: n * 0, lambda: b(n - 1) + 1))
    b = staged(lambda n: c(n))
    c = staged(
        lambda n: cond(
            n <= 0, lambda: a(n - 1), lambda: cond(n > 3, lambda: b(n - 2) + 2, lambda: a(n - 1))
        )
    )

    def at(n: int) -> int:
        return 0 if n <= 0 else ct(n - 1) + 1

    def ct(n: int) -> int:
        return at(n - 1) if n <= 0 else ct(n - 2) + 2 if n > 3 else at(n - 1)

    assert [run(a, number(n)) for n in range(9)] == [at(n) for n in range(9)]
    assert [run(b, number(n)) for n in range(9)] == [ct(n) for n in range(9)]


def test_recursion_in_two_arguments_and_inside_of_its_own_argument() -> None:
    ackermann = staged(
        lambda m, n: cond(
            m == 0,
            lambda: n + 1,
            lambda: cond(
                n == 0,
                lambda: ackermann(m - 1, one()),
                lambda: ackermann(m - 1, ackermann(m, n - 1)),
            ),
        )
    )
    assert run(ackermann, number(2), number(3)) == 9


def test_what_a_recursive_function_closes_over() -> None:
    @staged
    def outer(x: Rep[F1], y: Rep[F1], n: Rep[Int]) -> Rep[F1]:
        z = y * 2.0
        inner = staged(lambda k: cond(k == 0, lambda: x, lambda: z + inner(k - 1)))
        return inner(n)

    assert run(outer, vector(1, 2), vector(3, 4), number(4)) == [25, 34]


def test_what_mutually_recursive_functions_close_over() -> None:
    @staged
    def outer(x: Rep[F1], y: Rep[F1], n: Rep[Int]) -> Rep[F1]:
        z = y * 2.0
        first = staged(lambda k: cond(k == 0, lambda: x, lambda: other(k - 1) * 2.0))
        other = staged(
            lambda k: cond(
                k == 0,
                lambda: z,
                lambda: cond(k > 1, lambda: first(k - 1) - y, lambda: first(k - 1)),
            )
        )
        return other(n) + first(n)

    def first(k: int) -> float:
        return 1.0 if k == 0 else 2 * other(k - 1)

    def other(k: int) -> float:
        return 6.0 if k == 0 else first(k - 1) - 3.0 if k > 1 else first(k - 1)

    for n in range(6):
        assert run(outer, vector(1), vector(3), number(n)) == [first(n) + other(n)]


def test_recursion_with_ever_smaller_shapes() -> None:
    @staged
    def total(x: Rep[F1], n: Rep[Int]) -> Rep[Number]:
        return cond(n <= 1, lambda: x.sum(), lambda: total(x[::2], n // 2) + total(x[1::2], n // 2))

    for extent in (0, 1, 5, 8):
        values = np.arange(extent, dtype=np.float32)
        assert run(total, values, number(extent)) == values.sum()
    assert total.ir(spec((8,), f32), spec((), i32)).count("func @") == 5


def test_recursion_to_a_lower_rank() -> None:
    f = staged(lambda x, n: cond(n == 0, lambda: x.sum(), lambda: f(x, n - 1) + f(x[0], n - 1)))
    with pytest.raises(nk.RankError, match="1 subscripts are too many"):
        f(np.ones((2, 2), np.float32), number(1))

    def nested(x: Rep, n: Rep) -> Rep:
        if x.spec.rank == 0:  # Python's if, on what is known while staging
            return x
        return cond(n == 0, lambda: x.sum(), lambda: g(x, n - 1) + g(x[0], n - 1))

    g = staged(nested)
    assert run(g, np.ones((2, 3), np.float32), number(1)) == 6 + 3
    assert run(g, np.ones((2, 3), np.float32), number(2)) == (6 + 3) + (3 + 1)


def test_recursion_inside_a_loop() -> None:
    f = staged(
        lambda n: cond(
            n <= 0, lambda: n * 0, lambda: fori(0, n, lambda i, a: a + f(n - 1) + 1, n * 0)
        )
    )

    def expected(n: int) -> int:
        return sum(expected(n - 1) + 1 for _ in range(n))

    assert [run(f, number(n)) for n in range(5)] == [expected(n) for n in range(5)]


def test_a_recursive_function_is_staged_for_other_types_anew() -> None:
    @staged
    def power(x: Any, n: Rep[Int]) -> Any:
        return cond(n == 0, lambda: nk.ones_like(x), lambda: x * power(x, n - 1))

    assert run(power, vector(2, 3), number(3)) == [8, 27]
    assert run(power, np.float64(2), number(10)) == 1024
    assert run(power, number(3), number(3)) == 27


def test_what_a_recursion_returns_is_found_without_annotations_of_tuples_too() -> None:
    pell = staged(
        lambda n: cond(
            n == 0,
            lambda: (n, n + 1),
            lambda: (pell(n - 1)[1], pell(n - 1)[0] + 2 * pell(n - 1)[1]),
        )
    )
    assert run(pell, number(5)) == (29, 70)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 4))
def test_random_systems_of_functions(calls: list[int], n: int) -> None:
    """Function k calls function `calls[k]`, and itself; each ends at 0."""
    functions: list[Any] = []

    def make(k: int) -> Any:
        other = calls[k] % len(calls)
        return staged(
            lambda m: cond(
                m <= 0, lambda: m * 0 + k, lambda: functions[other](m - 1) * 2 + functions[k](m - 2)
            )
        )

    functions += [make(k) for k in range(len(calls))]

    def expected(k: int, m: int) -> int:
        if m <= 0:
            return k
        return expected(calls[k] % len(calls), m - 1) * 2 + expected(k, m - 2)

    for k in range(len(calls)):
        assert run(functions[k], number(n)) == expected(k, n)


# --------------------------------------------------------------------------- functions as arguments and results


@staged
def iterate(f: Rep[Callable[[Number], Number]], n: Rep[Int], x: Rep[Number]) -> Rep[Number]:
    return cond(n == 0, lambda: x, lambda: iterate(f, n - 1, f(x)))


def test_a_recursive_function_of_functions() -> None:
    @staged
    def use(n: Rep[Int], x: Rep[Number], k: Rep[Number]) -> Rep[Number]:
        grow = fn(Number)(lambda y: y * 2.0 + k)
        return (
            iterate(grow, n, x)
            + iterate(grow, n + 1, x)
            + iterate(fn(Number)(lambda y: y - k), n, x)
        )

    assert run(use, number(3), np.float32(1), np.float32(1)) == 15 + 31 + (1 - 3)
    assert use.ir(spec((), i32), spec((), f32), spec((), f32)).count("func @iterate") == 2


def test_a_function_of_functions_runs_on_data() -> None:
    double = fn(Number)(lambda x: x * 2.0)
    assert float(iterate(double, number(5), np.float32(1))) == 32
    assert float(iterate(double, number(3), f32(1.0))) == 8
    assert len(iterate._bound) == 1

    @staged
    def inside(x: Rep[Number]) -> Rep[Number]:
        return iterate(double, const(i32(2)), x)

    assert run(inside, np.float32(3)) == 12


def test_a_function_of_functions_can_be_looked_at() -> None:
    double = fn(Number)(lambda x: x * 2.0)
    text = iterate.ir(double, spec((), i32), spec((), f32))
    assert text.count("apply @iterate") == 2 and text.count("apply @lambda") == 1
    iterate.compile(double, spec((), i32), spec((), f32))
    with pytest.raises(nk.StagingError, match="iterate takes 3 arguments"):
        iterate.ir(double, spec((), i32))


def test_functions_of_functions_know_them_by_themselves() -> None:
    apply = staged(lambda f, x: f(x))
    functions = [fn(Number)(lambda x, k=k: x + float(k)) for k in range(80)]
    for _ in range(2):
        assert [float(apply(f, np.float32(0))) for f in functions] == list(range(80))


def test_composition() -> None:
    compose = staged(lambda f, g: staged(lambda x: f(g(x))))
    rows, length = fn(F2)(lambda m: m.sum(axis=1)), fn(F1)(lambda v: nk.sqrt((v * v).sum()))
    both = compose(length, rows)
    assert float(both(np.ones((4, 3), np.float32))) == 6
    many = compose(compose(length, rows), fn(F2)(lambda m: m.T))
    assert float(many(np.ones((9, 4), np.float32))) == pytest.approx(18)
    assert plain(nk.gradient(of=both, wrt=0)(np.ones((1, 2), np.float32))) == [[1, 1]]


def test_a_partial_application_is_compiled_once_for_all_its_values() -> None:
    runs: list[str] = []

    @staged
    def scale(x: Rep[F1]) -> Rep[Callable[[F1], F1]]:
        runs.append("scale")
        return fn(F1)(lambda y: x * y)

    for factor in range(5):
        assert plain(scale(vector(factor))(vector(1, 2)[:1])) == [factor]
    assert len(runs) <= 3
    (whole,) = scale._wholes.values()
    assert len(whole._programs) == 1
    partial = scale(vector(2, 3))
    assert (
        "multiply" in partial.ir(spec((2,), f32)) and repr(partial) == "<staged function scale(y)>"
    )
    partial.compile(spec((2,), f32))
    assert plain(partial[vector(5, 7)]) == [10, 21]
    assert run(staged(lambda y: partial(y) + y), vector(1, 1)) == [3, 4]
    assert plain(nk.gradient(of=partial, wrt=0)(vector(1, 1))) == [2, 3]


def test_three_stages_of_currying() -> None:
    three = staged(lambda x: staged(lambda y: staged(lambda z: x + y * z)))
    first = three(np.float32(1))
    second = first(np.float32(2))
    assert [float(second(np.float32(k))) for k in (3, 4)] == [7, 9]
    assert float(first(np.float32(10))(np.float32(1))) == 11


def test_lambdas_that_return_plain_lambdas() -> None:
    curried = staged(lambda x: lambda y: x - y)
    assert float(curried(np.float32(5))(np.float32(2))) == 3
    assert run(staged(lambda x: curried(x)(x * 3.0)), np.float32(1)) == -2


def test_a_recursion_by_way_of_a_function_that_is_returned() -> None:
    power = staged(
        lambda x: staged(lambda n: cond(n == 0, lambda: x * 0.0 + 1.0, lambda: x * power(x)(n - 1)))
    )
    assert run(staged(lambda x, n: power(x)(n)), np.float32(3), number(4)) == 81
    assert float(power(np.float32(2))(number(10))) == 1024


def test_a_function_is_an_argument_of_what_has_a_gradient() -> None:
    apply = staged(lambda f, x: f(x))
    square = fn(Number)(lambda x: x * x)

    @staged
    def use(x: Rep[Number], k: Rep[Number]) -> Rep[Number]:
        return nk.gradient(of=apply, wrt=1)(fn(Number)(lambda y: square(y) * k), x)

    assert run(staged(lambda x: apply(square, x)), np.float32(3)) == 9
    assert float(use(np.float32(3), np.float32(5))) == 30


def test_after_an_error_in_a_recursion_everything_is_as_before() -> None:
    wrong = staged(lambda n: cond(n == 0, lambda: n, lambda: wrong(n - 1).cast(f32)))
    for _ in range(2):
        with pytest.raises(nk.DTypeError):
            wrong(number(3))
    assert run(factorial, number(5)) == 120
