"""Mutable arrays in staged functions: what NumPy's do, in and around choices and loops, with derivatives."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i32, i64
from nnkit.core.types import Array
from tests.rows import each

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number = Scalar[f64]
Count = Scalar[i64]
Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]
RANDOM = np.random.default_rng(3)


@nk.staged
def two_steps(x: Rep[Vector]) -> Rep[Vector]:
    r = nk.ref(x)
    r[0] += r[1] ** 2.0
    r[1] = -r[1]
    return r.value


def test_a_row_of_the_table_of_features() -> None:
    assert two_steps(np.array([1.2, 3.4])).numpy() == pytest.approx([12.76, -3.4], rel=1e-15)
    slope = nk.gradient(of=two_steps, wrt=0, seedable=True)
    assert slope(np.array([1.2, 3.4]), np.array([5.6, 7.8])).numpy() == pytest.approx(
        [5.6, 30.28], rel=1e-15
    )


# One program in the language and in NumPy.


@nk.staged
def prefix_sums(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(x)

    def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
        r[i] = r[i] * nk.sin(c) + r[i - 1]
        return c + r[i]

    c = nk.fori(1, n, body, x[0])
    return r[...] + c


def numpy_prefix_sums(x: Array, n: int) -> Array:
    r, c = x.copy(), x[0]
    for i in range(1, n):
        r[i] = r[i] * np.sin(c) + r[i - 1]
        c = c + r[i]
    return r + c


@nk.staged
def branches(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(x)

    def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
        def up() -> Rep[Number]:
            r[i] *= c
            r[0] += 1.5 * r[i]
            return c + 1.0

        def down() -> Rep[Number]:
            return c * r[i - 1]

        return nk.cond(r[i] > 0.0, up, down)

    c = nk.fori(1, n, body, x[0])
    r[-1] = c
    return r.value


def numpy_branches(x: Array, n: int) -> Array:
    r, c = x.copy(), x[0]
    for i in range(1, n):
        if r[i] > 0:
            r[i] *= c
            r[0] += 1.5 * r[i]
            c = c + 1
        else:
            c = c * r[i - 1]
    r[-1] = c
    return r


@nk.staged
def both_branches(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r, s = nk.ref(x), nk.ref(x[:3] * 2.0)

    def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
        def up() -> Rep[Number]:
            r[i] = c * s[0]
            s[1] += r[i]
            return c

        def down() -> Rep[Number]:
            r[i] += 2.0 * c
            return c + 0.5 * r[0]

        return nk.cond(r[i] > 0.0, up, down)

    c = nk.fori(0, n, body, x[1])
    return r.value * c + s.value.sum()


def numpy_both_branches(x: Array, n: int) -> Array:
    r, s, c = x.copy(), x[:3] * 2, x[1]
    for i in range(n):
        if r[i] > 0:
            r[i] = c * s[0]
            s[1] += r[i]
        else:
            r[i] += 2 * c
            c = c + 0.5 * r[0]
    return r * c + s.sum()


@nk.staged
def sorting(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(nk.exp(x))

    def outer(i: Rep[Scalar[i32]], c: Rep[Count]) -> Rep[Count]:
        def inner(k: Rep[Scalar[i32]], c: Rep[Count]) -> Rep[Count]:
            a, b = r[k], r[k + 1]
            r[k] = nk.minimum(a, b)
            r[k + 1] = nk.maximum(a, b)
            return c + 1

        return nk.fori(0, n - 1, inner, c)

    count = nk.fori(0, n, outer, n)
    return r.value * nk.arange(6, f64) + count.cast(f64)


def numpy_sorting(x: Array, n: int) -> Array:
    r = np.exp(x)
    r[:n].sort()
    return r * np.arange(6) + n + n * (n - 1)


@nk.staged
def until(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(x)

    def test(k: Rep[Count]) -> Rep[Any]:
        return (k < n) & (r[k] < 100.0)

    def body(k: Rep[Count]) -> Rep[Count]:
        r[k + 1] += r[k] * r[k]
        return k + 1

    last = nk.while_loop(test, body, nk.const(np.int64(0)))
    return r.value + last.cast(f64)


def numpy_until(x: Array, n: int) -> Array:
    r, k = x.copy(), 0
    while k < n and r[k] < 100:
        r[k + 1] += r[k] * r[k]
        k += 1
    return r + k


@nk.staged
def scanned(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(x * 2.0)

    def step(c: Rep[Number], e: Rep[Number]) -> tuple[Rep[Number], Rep[Number]]:
        r[n] += c * e
        return c + r[n], r[0] * e

    c, ys = x.scan(x[0], step)
    return ys.tensor() + c * r[n]


def numpy_scanned(x: Array, n: int) -> Array:
    r, c, ys = x * 2, x[0], []
    for e in x:
        r[n] += c * e
        c = c + r[n]
        ys.append(r[0] * e)
    return np.array(ys) + c * r[n]


@nk.staged
def rows(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r = nk.ref(x.reshape(2, 3))

    def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
        r[1, i % 3] += r[0].sum() * c
        r[0] = r[1] * 0.5
        r[:, 1] *= c
        return c + r[1, 2]

    c = nk.fori(0, n, body, x[0])
    return r.value.reshape(6) + c


def numpy_rows(x: Array, n: int) -> Array:
    r, c = x.reshape(2, 3).copy(), x[0]
    for i in range(n):
        r[1, i % 3] += r[0].sum() * c
        r[0] = r[1] * 0.5
        r[:, 1] *= c
        c = c + r[1, 2]
    return r.reshape(6) + c


@nk.staged
def counted(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    r, m = nk.ref(x), x.reshape(2, 3)

    def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
        def choice() -> Rep[Number]:
            r[i] += m[n % 2, i % 3] * c
            return c * m[0, n % 3]

        d = nk.cond(r[i] > -0.5, choice, lambda: c + m[1, 2])
        return d + m[n % 2, i % 3] * r[0]

    c = nk.fori(0, 6, body, x[0])
    return r.value + c


def numpy_counted(x: Array, n: int) -> Array:
    r, m, c = x.copy(), x.reshape(2, 3), x[0]
    for i in range(6):
        if r[i] > -0.5:
            r[i] += m[n % 2, i % 3] * c
            d = c * m[0, n % 3]
        else:
            d = c + m[1, 2]
        c = d + m[n % 2, i % 3] * r[0]
    return r + c


PROGRAMS: list[tuple[Any, Callable[[Array, int], Array]]] = [
    (prefix_sums, numpy_prefix_sums),
    (branches, numpy_branches),
    (both_branches, numpy_both_branches),
    (sorting, numpy_sorting),
    (until, numpy_until),
    (scanned, numpy_scanned),
    (rows, numpy_rows),
    (counted, numpy_counted),
]


@pytest.mark.parametrize(("program", "reference"), PROGRAMS, ids=lambda p: p.__name__)
def test_values_and_derivatives(program: Any, reference: Callable[[Array, int], Array]) -> None:
    slope, step = nk.gradient(of=program, wrt=0), 1e-6
    push, pull = nk.jvp(of=program, wrt=0), nk.vjp(of=program, wrt=0)
    curved = nk.hvp(of=nk.fn(Vector, Count)(lambda x, n: nk.square(program(x, n)).sum()), wrt=0)

    @each("n", [0, 1, 3, 5])
    def agree(n: int) -> None:
        x, v, w = (RANDOM.normal(size=6) for _ in range(3))
        count = np.int64(n)
        np.testing.assert_allclose(program(x, count).numpy(), reference(x, n), rtol=1e-12)
        differences = [
            (reference(x + step * e, n) - reference(x - step * e, n)).sum() / (2 * step)
            for e in np.eye(6)
        ]
        np.testing.assert_allclose(slope(x, count).numpy(), differences, rtol=1e-6, atol=1e-7)
        tangent, pulled = push(x, count, v)[1].numpy(), pull(x, count, w).numpy()
        assert float(tangent @ w) == pytest.approx(float(v @ pulled), rel=1e-11, abs=1e-11)

        def first(y: Array) -> Array:
            return np.asarray(pull(y, count, 2 * reference(y, n)).numpy())

        expected = (first(x + step * v) - first(x - step * v)) / (2 * step)
        np.testing.assert_allclose(curved(x, count, v).numpy(), expected, rtol=1e-5, atol=1e-5)

    agree()


@pytest.mark.parametrize(("program", "_"), PROGRAMS, ids=lambda p: getattr(p, "__name__", "p"))
def test_batches(program: Any, _: Any) -> None:
    """Of values and of gradients, along the array alone and along the bounds of loops as well."""
    for function in (program, nk.gradient(of=program, wrt=0)):
        for counts in (3, (1, 4, 3)):
            xs, ns = RANDOM.normal(size=(3, 6)), np.asarray(counts)
            axes = (0, 0 if ns.ndim else None)
            found = nk.vmap(function, in_axes=axes)(xs, ns if ns.ndim else np.int64(3))
            pairs = zip(xs, np.broadcast_to(ns, 3), strict=True)
            expected = np.stack([function(x, np.int64(n)).numpy() for x, n in pairs])
            np.testing.assert_allclose(
                found.numpy(), expected, rtol=1e-11, atol=1e-12, err_msg=str(counts)
            )


def test_a_ref_made_in_a_body_is_made_anew_in_each_iteration() -> None:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Number]:
        def body(i: Rep[Scalar[i32]], c: Rep[Number]) -> Rep[Number]:
            r = nk.ref(x)
            r[i] += 1.0
            return c + r.value.sum()

        return nk.fori(0, 3, body, x[0] * 0.0)

    assert float(f(np.arange(3.0))) == 12.0


def test_loops_that_carry_refs_alone() -> None:
    @nk.staged
    def f(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
        r, k = nk.ref(x), nk.ref(n)

        def body(i: Rep[Scalar[i32]]) -> None:
            r[i] += 2.0 * r[i - 1]

        def halve() -> None:
            r[k.value] *= 0.5
            k[...] -= 1

        nk.fori(1, n, body)
        nk.while_loop(lambda: k.value > 0, halve)
        return r.value

    x, n = np.arange(1.0, 5.0), np.int64(3)
    assert f(x, n).numpy().tolist() == [1.0, 2.0, 5.5, 2.0]
    assert nk.gradient(of=f, wrt=0)(x, n).numpy().tolist() == [4.0, 1.5, 0.5, 0.5]


def test_choices_for_what_they_do_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """To refs, or for an effect."""

    @nk.staged
    def f(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
        r = nk.ref(x)

        def first() -> None:
            r[0] = r[1] * r[2]

        def second() -> None:
            r[1] += nk.sin(r[0])

        nk.cond(n > 1, first, second)
        nk.cond(n > 3, second, lambda: None)
        nk.cond(n > 5, lambda: nk.print("n is", n), lambda: None)
        nk.fori(5, n, lambda i: nk.print("i is", i))
        return r.value

    x = np.array([1.0, 2.0, 3.0])
    expected = {
        0: [1.0, 2.0 + np.sin(1.0), 3.0],
        2: [6.0, 2.0, 3.0],
        6: [6.0, 2.0 + np.sin(6.0), 3.0],
    }
    for n, value in expected.items():
        np.testing.assert_allclose(f(x, np.int64(n)), value, rtol=1e-14)
    assert capfd.readouterr().out == "n is 6\ni is 5\n"
    for n in expected:
        nk.check_gradients(f, x, np.int64(n))
    several = nk.vmap(f, in_axes=(None, 0))(x, np.array([*expected]))
    np.testing.assert_allclose(several, [*expected.values()], rtol=1e-14)


def test_what_is_read_before_stays() -> None:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Vector]:
        r = nk.ref(x)
        before = r.value
        r[...] = 0.0
        r[0] = 5.0
        return before + r.value

    assert f(np.arange(3.0)).numpy().tolist() == [5.0, 1.0, 2.0]


# Refs where they mean nothing.

KEPT: list[nk.Ref[Vector]] = []


def _leaves(x: Rep[Vector]) -> Rep[Vector]:
    KEPT.append(nk.ref(x))
    return x


def _from_a_body(x: Rep[Vector]) -> Rep[Vector]:
    made: list[nk.Ref[Vector]] = []

    def body(i: Rep[Scalar[i32]], c: Rep[Vector]) -> Rep[Vector]:
        made.append(nk.ref(c))
        return c

    nk.fori(0, 3, body, x)
    return made[0].value


def _in_another_function(x: Rep[Vector]) -> Rep[Vector]:
    r = nk.ref(x)

    @nk.staged
    def other(y: Rep[Vector]) -> Rep[Vector]:
        r[0] = 1.0
        return y

    return other(x)


def _in_a_scheduled_loop(x: Rep[Vector]) -> Rep[Vector]:
    r = nk.ref(x)

    def body(i: Rep[Scalar[i32]], c: Rep[Vector]) -> Rep[Vector]:
        return c + r[i]

    return nk.fori(0, 3, body, x, checkpoint=nk.every_sqrt())


def _in_a_map(x: Rep[Vector]) -> Rep[Vector]:
    r = nk.ref(x)

    def each(e: Rep[Number]) -> Rep[Number]:
        r[0] += e
        return e

    return x.map(each)


def _in_a_condition(x: Rep[Vector]) -> Rep[Number]:
    r = nk.ref(x)

    def test(c: Rep[Number]) -> Rep[Any]:
        r[0] = 0.0
        return c < 1.0

    return nk.while_loop(test, lambda c: c + 1.0, x[0])


def _as_a_number(x: Rep[Vector]) -> Rep[Vector]:
    r: Any = nk.ref(x)
    r += 1.0
    return x


MISUSE: list[tuple[Any, str]] = [
    (lambda x: nk.ref(x), "returns a ref"),
    (lambda x: nk.cond(x[0] > 0.0, lambda: nk.ref(x), lambda: x), "a ref is no value"),
    (lambda x: nk.fori(0, 3, lambda i, c: c, nk.ref(x)), "a ref is no value"),
    (_from_a_body, "a ref of the body of fori is used outside of it"),
    (_in_another_function, "which is a function of its own"),
    (_in_a_map, "the function of map changes a ref: elements have no order there"),
    (_in_a_condition, "the condition of while_loop changes a ref"),
    (_in_a_scheduled_loop, "a ref of _in_a_scheduled_loop is used in a fori with checkpoint="),
    (lambda x: nk.fori(0, 3, lambda i: None), "a loop that carries nothing changes no ref"),
    (
        lambda x: nk.cond(x[0] > 0.0, lambda: None, lambda: None),
        "a choice that gives nothing changes no ref",
    ),
    (lambda x: nk.fori(0, 3, lambda i: x), "there is nothing that fori carries"),
    (_as_a_number, "`ref[...] += x` changes what it holds"),
    (lambda x: nk.ref(nk.ref(x)).value, "a ref of a ref"),
    (lambda x: bool(nk.ref(x)), "a ref has no truth value"),
]


@pytest.mark.parametrize(("function", "message"), MISUSE)
def test_misuse_is_explained(function: Any, message: str) -> None:
    with pytest.raises(nk.StagingError, match=re.escape(message)) as caught:
        nk.fn(Vector)(function)(np.ones(3))
    shown = "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "test_refs.py" in shown
    assert "help: " in shown


def test_a_ref_after_its_function() -> None:
    nk.fn(Vector)(_leaves)(np.ones(3))
    with pytest.raises(nk.StagingError, match="used outside of it"):
        _ = KEPT[-1].value
    with pytest.raises(nk.StagingError, match="inside of a staged function"):
        nk.ref(nk.const(np.ones(3)))


def test_an_index_outside_names_index_extent_and_line() -> None:
    @nk.staged
    def f(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
        r = nk.ref(x)
        r[n] = 1.0  # outside
        return r.value

    with pytest.raises(
        IndexError, match=r"(?s)index 3 is out of range for an axis of extent 3.*r\[n\] = 1.0"
    ):
        f(np.ones(3), np.int64(3))


# Costs.

SMALL, LARGE = 1_500, 12_000
"""Updates, or reads: if each cost the array, the second would take 64 times as long, as each is 8 times as large."""
MOST = 25
"""How much longer it may take: 8 would be linear, and a machine that does other things as well makes it more."""


def growth(function: Any) -> float:
    """How much longer it takes for the larger array, as the best of several runs says."""
    times: list[float] = []
    for n in (SMALL, LARGE):
        x = np.abs(np.random.default_rng(0).normal(size=n)) / n
        spent: list[float] = []
        for _ in range(7):
            start = time.perf_counter()
            function(x, np.int64(n - 1))
            spent.append(time.perf_counter() - start)
        times.append(min(spent[1:]))
    return times[1] / times[0]


@pytest.mark.parametrize(
    "program", [prefix_sums, branches, both_branches], ids=lambda p: p.__name__
)
@pytest.mark.parametrize("has_gradient", [False, True], ids=["values", "gradients"])
def test_an_update_costs_a_row_and_not_the_array(program: Any, has_gradient: bool) -> None:
    assert growth(nk.gradient(of=program, wrt=0) if has_gradient else program) < MOST


def test_rows_read_in_a_while() -> None:
    @nk.staged
    def squares(x: Rep[Vector], n: Rep[Count]) -> Rep[Number]:
        def step(c: tuple[Rep[Count], Rep[Number]]) -> tuple[Rep[Count], Rep[Number]]:
            return c[0] + 1, c[1] + x[c[0]] * x[c[0]]

        zero = nk.const(np.int64(0)), nk.const(np.float64(0.0))
        return nk.while_loop(lambda c: c[0] < n, step, zero)[1]

    slope = nk.gradient(of=squares, wrt=0)
    assert slope(np.arange(4.0), np.int64(3)).numpy().tolist() == [0.0, 2.0, 4.0, 0.0]
    assert growth(slope) < MOST


def test_a_ref_that_is_returned_is_an_error_that_says_how_its_value_is() -> None:
    with pytest.raises(nk.StagingError, match="returns a Ref") as raised:
        nk.fn(nk.Tensor1D[nk.f64])(lambda x: nk.ref(x))(np.ones(3))
    assert raised.value.__notes__ == ["  help: return what it holds, `ref.value`"]
