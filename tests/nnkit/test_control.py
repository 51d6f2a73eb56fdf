"""cond, while_loop and fori: what they compute, carry and capture, and that what is not taken is not run."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import (
    DifferentiationError,
    Field,
    IndexOutOfRangeError,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    Tensor2D,
    UnsupportedError,
    boolean,
    cond,
    const,
    f32,
    f64,
    fn,
    fori,
    i32,
    i64,
    spec,
    staged,
    tup,
    while_loop,
)

from .running import run

pytestmark = pytest.mark.usefixtures("unoptimized_code")

F1, F2 = Tensor1D[f32], Tensor2D[f32]
Int, Number = Scalar[i32], Scalar[f32]


class State(Struct):
    x: Field[Tensor1D[f32]]
    n: Field[Scalar[i32]]


class Outer(Struct):
    inner: Field[State]
    s: Field[Scalar[f64]]


def number(n: int) -> Any:
    return np.int32(n)


def vector(*values: float) -> Any:
    return np.array(values, np.float32)


def shown(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error))


YES, NO = np.bool_(True), np.bool_(False)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)

# ---------------------------------------------------------------------------------- as NNKit's tests have it


def test_arithmetic_on_staged_integers() -> None:
    assert run(staged(lambda x, y: (x + y) * 2 - x // y + x % y), number(7), number(3)) == 19


def test_a_staged_function_of_no_arguments() -> None:
    f = staged(lambda: const(i32(5)) * 2)
    assert int(f()) == int(f.eval()) == 10
    assert run(staged(lambda x: x + f()), number(1)) == 11


def test_a_perceptron_of_three_floats() -> None:
    perceptron = fn(Number, Number, Number)(lambda w, x, b: w * x + b)
    assert run(perceptron, *map(np.float32, (0.8, 1.0, 0.4))) == pytest.approx(1.2)


# ------------------------------------------------------------------------------------------------------- cond


def test_a_choice_of_one_and_of_several_values() -> None:
    f = staged(lambda p, x: cond(p, lambda: x, lambda: -x))
    assert (run(f, YES, vector(1, 2)), run(f, NO, vector(1, 2))) == ([1, 2], [-1, -2])
    g = staged(lambda p, x: cond(p, lambda: (x, x.sum()), lambda: (x * 2.0, x[0])))
    assert run(g, YES, vector(1, 2)) == ([1, 2], 3)
    assert run(g, NO, vector(1, 2)) == ([2, 4], 1)
    h = staged(lambda p, x: cond(p, lambda: (x, (x[0], x[1])), lambda: (x, (x[1], x[0]))))
    assert staged(lambda p, x: h(p, x)[1][0])(NO, vector(1, 2)).numpy() == 2


def test_only_the_branch_taken_is_run() -> None:
    f = staged(lambda i, x: cond(i < 2, lambda: x[i], lambda: x[0]))
    assert [run(f, number(i), vector(5, 6)) for i in (0, 1, 2, 100)] == [5, 6, 5, 5]
    with pytest.raises(IndexOutOfRangeError, match="index 9"):
        staged(lambda i, x: cond(i > 2, lambda: x[i], lambda: x[0]))(number(9), vector(5, 6))
    collatz = staged(
        lambda p, n: cond(p, lambda: n, lambda: while_loop(lambda k: k == k, lambda k: k, n))
    )
    assert int(collatz(YES, number(3))) == 3  # the other branch never ends


def test_a_choice_of_a_struct_and_of_a_tuple_as_one_rep() -> None:
    f = staged(lambda p, s: cond(p, lambda: s, lambda: s.set(State.x, s[State.x] * 2.0)))
    assert run(f, NO, State(vector(1, 2), i32(3))) == ([2, 4], 3)
    g = staged(lambda p, x: cond(p, lambda: tup(x, x.sum()), lambda: tup(-x, x[0])))
    assert run(g, NO, vector(1, 2)) == ([-1, -2], 1)


def test_nested_choices_and_what_they_capture() -> None:
    @staged
    def f(a: Rep[Int], b: Rep[Int], x: Rep[F1]) -> Rep[F1]:
        y = x * 10.0
        return cond(
            a > 0,
            lambda: cond(b > 0, lambda: x + y, lambda: y),
            lambda: cond(b > 0, lambda: x, lambda: cond(a == b, lambda: -y, lambda: -x)),
        )

    cases = {(1, 1): 11, (1, 0): 10, (0, 1): 1, (0, 0): -10, (-1, 0): -1}
    for (a, b), want in cases.items():
        assert run(f, number(a), number(b), vector(1)) == [want]


def test_a_choice_of_concrete_values_and_outside_of_staged_functions() -> None:
    f = staged(lambda p: cond(p, lambda: f32(1.0), lambda: np.float32(2.0)))
    assert (run(f, YES), run(f, NO)) == (1, 2)
    assert (
        int(cond(const(boolean(False)), lambda: const(i32(1)), lambda: const(i32(2))).eval()) == 2
    )
    assert run(staged(lambda x: cond(boolean(True), lambda: x, lambda: -x)), vector(1)) == [1]


def test_branches_may_be_staged_functions_and_call_others() -> None:
    half = fn(F1)(lambda x: x / 2.0)
    value = staged(lambda: const(vector(7)))
    f = staged(lambda p, x: cond(p, lambda: half(half(x)), value))
    assert (run(f, YES, vector(8)), run(f, NO, vector(8))) == ([2], [7])
    assert f.ir(spec((), boolean), spec((1,), f32)).count("func @") == 3


def test_many_choices_in_a_row() -> None:
    def body(p: Rep, x: Rep) -> Rep:
        for k in range(60):
            x = cond(p, lambda x=x, k=k: x + float(k), lambda x=x: x * 1.0)
        return x

    assert run(staged(body), YES, vector(0)) == [sum(range(60))]


# ------------------------------------------------------------------------------------------------------ loops


def test_a_loop_of_no_rounds_reads_nothing() -> None:
    """As NumPy's: of an empty axis, x[i] is no error where no i is."""

    @nk.staged
    def total(x: Rep[Tensor1D[f32]]) -> Rep[nk.Scalar[f32]]:
        return nk.fori(0, x.shape[0], lambda i, s: s + x[i] * x[i], nk.zeros((), f32))

    for x in (np.zeros(0, np.float32), np.ones(2, np.float32)):
        value, slope = nk.value_and_gradient(of=total, wrt=0)(Tensor1D(x))
        assert value.item() == x.sum() and np.array_equal(slope.numpy(), 2 * x)
    assert nk.vmap(total)(nk.Tensor2D(np.zeros((3, 0), np.float32))).tolist() == [0.0] * 3


def test_while_carries_a_tensor_a_tuple_and_a_struct() -> None:
    double = staged(lambda x: while_loop(lambda a: a.sum() < 10.0, lambda a: a * 2.0, x))
    assert run(double, vector(1, 1)) == [8, 8]
    assert run(double, vector(9, 9)) == [9, 9]
    pair = staged(
        lambda n, x: while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ x), (n, x))
    )
    assert run(pair, number(0), np.eye(2, dtype=np.float32) * 2) == (3, [[16, 0], [0, 16]])
    four = staged(
        lambda n, x: while_loop(
            lambda c: c[3] < n,
            lambda c: (c[1], c[2], c[0], c[3] + 1),
            (x, x * 2.0, x * 3.0, n * 0),
        )
    )
    assert run(four, number(4), vector(1)) == ([2], [3], [1], 4)
    state = staged(
        lambda s, n: while_loop(
            lambda q: q[State.n] < n,
            lambda q: q.set(State.n, q[State.n] + 1).set(State.x, q[State.x] + q[State.x][0]),
            s,
        )
    )
    assert run(state, State(vector(1, 5), i32(0)), number(2)) == ([4, 8], 2)


def test_a_struct_in_a_struct_and_a_tuple_in_a_tuple_are_carried() -> None:
    def step(i: Rep, c: Any) -> Any:
        o, (a, b) = c
        inner = o[Outer.inner]
        return o.set(Outer.inner, inner.set(State.n, inner[State.n] + i)), (b, a + b)

    f = staged(lambda o, x: fori(0, 4, step, (o, (x, x)))[0])
    outer = Outer(State(vector(1), i32(10)), f64(0.5))
    assert run(f, outer, number(1)) == (([1], 16), 0.5)


def test_newton_s_method() -> None:
    root = staged(
        lambda s: while_loop(lambda y: abs(y * y - s) > 1e-12, lambda y: (y + s / y) / 2.0, s)
    )
    assert run(root, np.float64(2)) == pytest.approx(np.sqrt(2))


def test_fori_counts_from_ints_and_from_what_is_known_when_it_runs() -> None:
    total = staged(lambda n, m, a: fori(n, m, lambda i, c: c + i, a))
    for low, high in ((0, 5), (2, 4), (3, 3), (5, 1), (-3, 2)):
        want = sum(range(low, high))
        assert run(total, number(low), number(high), number(0)) == want
        assert run(total, np.int64(low), np.int64(high), number(0)) == want
        fixed = staged(lambda a, low=low, high=high: fori(low, high, lambda i, c: c + i, a))
        assert run(fixed, number(0)) == want
    assert run(staged(lambda a: fori(np.int64(0), i64(3), lambda i, c: c + i, a)), number(0)) == 3


def test_the_index_is_an_i32_that_subscripts() -> None:
    f = staged(lambda x, n: fori(0, n, lambda i, c: c + x[i] * i.cast(f32), x[0]))
    assert run(f, MATRIX, number(2)) == [3, 5, 7]
    with pytest.raises(
        IndexOutOfRangeError, match="index 2 is out of range for an axis of extent 2"
    ):
        f(MATRIX, number(3))


def test_loops_in_loops_and_choices_in_loops() -> None:
    @staged
    def f(x: Rep[F2], n: Rep[Int]) -> Rep[Number]:
        def row(i: Rep, c: Rep) -> Rep:
            return fori(0, 3, lambda j, d: cond(i == j, lambda: d, lambda: d + x[i, j]), c)

        return fori(0, n, row, x[0, 0])

    assert run(f, MATRIX, number(2)) == 1 + 2 + 3 + 5
    collatz = staged(
        lambda n: while_loop(
            lambda c: c[0] != 1,
            lambda c: (cond(c[0] % 2 == 0, lambda: c[0] // 2, lambda: c[0] * 3 + 1), c[1] + 1),
            (n, n * 0),
        )[1]
    )
    assert [run(collatz, number(n)) for n in (1, 6, 27)] == [0, 8, 111]


def test_what_bodies_use_from_outside() -> None:
    @staged
    def f(x: Rep[F1], n: Rep[Int]) -> Rep[F1]:
        y = x * 2.0
        add = staged(lambda z: z + y)  # closes over y, and is called in a body
        return fori(0, n, lambda i, c: add(c) + x, x) + y

    assert run(f, vector(1, 2), number(3)) == [1 + 9 + 2, 2 + 18 + 4]


def test_a_staged_function_as_the_body() -> None:
    @staged
    def step(c: Rep[tuple[Int, F1]]) -> tuple[Rep[Int], Rep[F1]]:
        return c[0] + 1, c[1] * 2.0

    @staged
    def grow(i: Rep[Int], x: Rep[F1]) -> Rep[F1]:
        return x + i.cast(f32)

    f = staged(lambda x: fori(0, 4, grow, x))
    assert run(f, vector(1)) == [7]
    g = staged(lambda n, x: while_loop(lambda c: c[0] < 3, step, tup(n, x)))
    assert run(g, number(0), vector(1)) == (3, [8])


def test_a_function_is_not_run_more_often_in_a_loop() -> None:
    runs: list[str] = []

    def body(i: Rep, c: Rep) -> Rep:
        runs.append("body")
        return c + 1.0

    f = staged(lambda x: fori(0, 1000, body, x))
    assert run(f, vector(0)) == [1000]
    assert run(f, vector(0, 0)) == [1000, 1000]
    assert len(runs) == 1


def test_python_s_own_if_and_for_choose_while_staging() -> None:
    def body(x: Rep) -> Rep:
        for k in range(3):
            x = cond(x.sum() > float(k), lambda x=x: x * 2.0, lambda x=x: x) if k % 2 else x + 1.0
        return x

    assert run(staged(body), vector(1)) == [5]


def test_each_type_that_can_be_carried() -> None:
    f = staged(lambda x: fori(0, 3, lambda i, c: c + c, x))
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.int32, np.int64):
        assert run(f, np.ones(2, dtype)) == [8, 8]
    flip = staged(lambda p: fori(0, 3, lambda i, c: ~c, p))
    assert run(flip, np.array([True, False])) == [False, True]
    empty = staged(lambda x: fori(0, 3, lambda i, c: c + 1.0, x))
    assert run(empty, np.zeros((0, 2), np.float32)) == []


@settings(max_examples=10, deadline=None)
@given(st.integers(-2, 6), st.integers(-2, 6), st.lists(st.integers(-9, 9), min_size=1, max_size=4))
def test_a_loop_is_what_python_s_loop_is(low: int, high: int, values: list[int]) -> None:
    f = staged(
        lambda lo, hi, x: fori(
            lo, hi, lambda i, c: cond((c * i).sum() > 3, lambda: c - i, lambda: c * 2), x
        )
    )
    x = np.array(values, np.int32)
    for i in range(low, high):
        x = x - np.int32(i) if (x * i).sum() > 3 else x * 2
    assert run(f, number(low), number(high), np.array(values, np.int32)) == x.tolist()


# -------------------------------------------------------------------------------------------------- gradients


def test_a_gradient_through_control_flow_is_right_or_refused_with_its_place() -> None:
    """Whoever differentiates control flow makes the first half true of more programs."""
    programs = [
        (staged(lambda x: cond(x.sum() > 0.0, lambda: x * x, lambda: -x)), [4.0]),
        (staged(lambda x: fori(0, 3, lambda i, c: c * x, x)), [32.0]),
        (staged(lambda x: while_loop(lambda c: c.sum() < 9.0, lambda c: c * 2.0, x)), [8.0]),
        (staged(lambda x: x.map(lambda e: e * e)), [4.0]),
    ]
    for program, want in programs:
        try:
            found = nk.gradient(of=program, wrt=0)(vector(2))
        except (DifferentiationError, UnsupportedError) as error:
            assert shown(error).count("test_control.py") == 1 and "^^^" in shown(error)
        else:
            assert found.numpy().tolist() == want


def test_the_gradient_of_a_recursion_is_right_or_refused() -> None:
    power = staged(lambda x, n: cond(n == 0, lambda: x * 0.0 + 1.0, lambda: x * power(x, n - 1)))
    try:
        found = nk.gradient(of=power, wrt=0)(np.float32(2), number(3))
    except (DifferentiationError, UnsupportedError) as error:
        assert "test_control.py" in shown(error)
    else:
        assert float(found) == 12.0


def test_a_loop_beside_what_is_differentiated_does_not_matter() -> None:
    f = staged(lambda x, n: x * fori(0, n, lambda i, c: c + i, n * 0).cast(f32))
    assert nk.gradient(of=f, wrt=0)(vector(5), number(4)).numpy().tolist() == [6.0]
