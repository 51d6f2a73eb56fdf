"""vmap in the typed language: against Python loops and NumPy, through everything, with every kind of axes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor5D,
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
)
from nnkit.core.types import Array

from .test_interrupts import alarm, stop

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number, Vector, Matrix = Scalar[f64], Tensor1D[f64], Tensor2D[f64]
Count = Scalar[i32]
RNG = np.random.default_rng(11)


def numbers(*shape: int) -> Array:
    return np.asarray(RNG.uniform(-1, 1, shape))


def loop(f: Any, xs: Any, *rest: Any) -> Array:
    """One element after the other, in Python."""
    return np.stack([np.asarray(f(x, *rest)) for x in xs])


class Params(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


@nk.staged
def loss(x: Rep[Vector], w: Rep[Matrix]) -> Rep[Number]:
    return (nk.tanh(x @ w) ** 2.0).sum()


@nk.staged
def power(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.cond(n > 0, lambda: x * power(x, n - 1), lambda: x * 0.0 + 1.0)


def newton(a: Rep[Number]) -> Rep[Number]:
    return nk.while_loop(
        lambda x: nk.abs(x * x - a) > 1e-13 * a, lambda x: (x + a / x) * 0.5, a + 1.0
    )


def steps(x: Rep[Number]) -> Rep[Number]:
    """As many iterations as x says, of which each divides by what would be 0 after the last one."""
    n = x.cast(i32)
    return nk.fori(0, n, lambda i, y: y + 1.0 / (x - i.cast(f64)), x * 0.0)


def rows(x: Rep[Vector]) -> Rep[Number]:
    last, all = x.scan(x.sum(), lambda c, r: (nk.sin(c * r), c + r))
    return (
        last + (all.tensor() * x.map(lambda r: r * r)).sum() + x.fold(x.sum(), lambda c, r: c * r)
    )


def nested(x: Rep[Number]) -> Rep[Number]:
    """A loop that does not end for elements that do not enter the branch it is in."""
    return nk.cond(
        x > 0.5,
        lambda: nk.while_loop(lambda y: y < 4.0, lambda y: y * (x + 0.6), x),
        lambda: nk.sin(x) * x,
    )


def updated(x: Rep[Vector]) -> Rep[Vector]:
    """Rows read and written at an index that differs, through a mutable array."""
    best = x.argmax(0)
    array = nk.ref(x.at[best].set(0.25))

    def step(i: Rep[Count], c: Rep[Number]) -> Rep[Number]:
        array[i] += c * x[best]
        return c * 1.5

    nk.fori(0, 2, step, x.sum())
    return array[...] * 2.0


def guarded(x: Rep[Vector]) -> Rep[Number]:
    """What one side is for the elements of the other is not finite, in matrix products and functions of matrices."""
    m = x.reshape(2, 2)
    return nk.cond(
        nk.abs(nk.linalg.det(m)) > 0.1,
        lambda: nk.linalg.solve(m, nk.log(x[:2]) @ m).sum(),
        lambda: x.sum() ** 2.0,
    )


PROGRAMS: dict[str, tuple[Any, Array]] = {
    "elementwise": (nk.fn(Number)(lambda x: nk.exp(x) * nk.sin(x)), numbers(5)),
    "reductions": (nk.fn(Vector)(lambda x: nk.softmax(x).max() + nk.logsumexp(x)), numbers(4, 3)),
    "choice": (nk.fn(Number)(lambda x: nk.cond(x > 0.0, lambda: x * x, lambda: x)), numbers(6)),
    "until done": (nk.fn(Number)(newton), np.array([4.0, 1e-3, 2.0, 1e6])),
    "bounds": (nk.fn(Number)(steps), np.array([2.5, 0.5, 7.25, -3.5])),
    "fori": (nk.fn(Vector)(lambda x: nk.fori(0, 4, lambda i, y: nk.sin(y) + x.sum(), x)), numbers(3, 2)),
    "rows": (nk.fn(Vector)(rows), numbers(4, 5)),
    "recursion": (nk.fn(Number)(lambda x: power(x, (x * 4.0).cast(i32))), np.array([0.9, -1.0, 1.3, 2.1])),
    "nested": (nk.fn(Number)(nested), np.array([0.7, -2.0, 0.45, 3.0])),
    "updates": (nk.fn(Vector)(updated), numbers(4, 3)),
    "guarded": (nk.fn(Vector)(guarded), np.array([[2.0, 1, 1, 3], [-1, -2, 2, 4], [1, 3, 2, 1], [0, 0, 0, 0]])),
    "sorted rows": (nk.fn(Vector)(lambda x: nk.take(x, x.argmax(0)) * x), numbers(4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_is_a_loop(name: str) -> None:
    f, xs = PROGRAMS[name]
    np.testing.assert_allclose(nk.vmap(f)(xs), loop(f, xs), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_of_gradients_and_gradients_of_batches(name: str) -> None:
    f, xs = PROGRAMS[name]
    total = nk.staged(lambda x: f(x).sum())
    slope = nk.gradient(of=total, wrt=0)
    expected = loop(slope, xs)
    np.testing.assert_allclose(nk.vmap(slope)(xs), expected, rtol=1e-11, atol=1e-12)
    of_all = nk.gradient(of=nk.staged(lambda xs: nk.vmap(f)(xs).sum()), wrt=0)
    np.testing.assert_allclose(of_all(xs), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_of_batches(name: str) -> None:
    f, xs = PROGRAMS[name]
    total = nk.staged(lambda x: f(x).sum())
    product = nk.hvp(total)
    expected = np.stack([np.asarray(product(x, x)) for x in xs])
    both = nk.vmap(product, in_axes=0)(xs, xs)
    np.testing.assert_allclose(both, expected, rtol=1e-9, atol=1e-10)
    of_all = nk.hvp(nk.staged(lambda xs: nk.vmap(f)(xs).sum()))
    np.testing.assert_allclose(of_all(xs, xs), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["until done", "recursion", "bounds", "nested"])
def test_gradients_of_loops_of_unknown_length_are_one_batch(name: str) -> None:
    """They keep one tape for all elements: nothing runs for one after the other."""
    f, xs = PROGRAMS[name]
    text = nk.vmap(nk.gradient(of=f, wrt=0)).ir(xs, stage="optimizable")
    one_by_one = re.compile(rf"for %\S+: i64 upto %\S+: i64 stacking <{len(xs)} x")
    assert "$tape" in text and not one_by_one.search(text)


def test_what_is_the_same_for_all_has_no_axis() -> None:
    """The gradient of each example, by a shared matrix, is one product of the whole batch."""
    xs, w = numbers(5, 3), numbers(3, 4)
    each = nk.vmap(nk.gradient(of=loss, wrt=1))
    np.testing.assert_allclose(
        each(xs, w), [np.asarray(nk.gradient(of=loss, wrt=1)(x, w)) for x in xs], rtol=1e-12
    )
    text = each.ir(xs, w, stage="optimized")
    assert text.count("= dot") == 1 and "= dot %x: <5 x 3 x f64>, %w: <3 x 4 x f64>" in text
    assert "for %" not in text and "= broadcast" not in text


def test_axes_anywhere() -> None:
    f = nk.fn(Matrix, Vector)(lambda a, v: a @ v)
    a, v = numbers(2, 3, 4), numbers(4)
    for axis in range(-3, 3):
        given = np.moveaxis(a, 0, axis)
        np.testing.assert_allclose(nk.vmap(f, in_axes=(axis, None))(given, v), a @ v)
    for axis in (-2, -1, 0, 1):
        found = nk.vmap(f, in_axes=(0, None), out_axes=axis)(a, v)
        np.testing.assert_allclose(found, np.moveaxis(a @ v, 0, axis))
    both = nk.vmap(f, in_axes=(None, 1))(a[0], numbers(4, 5))
    assert both.shape == (5, 3)
    vs = numbers(2, 4)
    np.testing.assert_allclose(nk.vmap(f, in_axes=0)(a, vs), np.einsum("bij,bj->bi", a, vs))
    np.testing.assert_allclose(nk.vmap2(f)(a, vs), np.einsum("bij,bj->bi", a, vs))


def test_results_that_are_the_same_for_all() -> None:
    f = nk.fn(Number, Vector)(lambda x, v: (x * v, v.sum(), x))
    found = nk.vmap(f, out_axes=(1, None, 0))(np.arange(3.0), np.array([1.0, 2.0]))
    np.testing.assert_allclose(found[0], np.outer([1, 2], [0, 1, 2]))
    assert float(found[1]) == 3.0
    np.testing.assert_allclose(found[2], np.arange(3))
    # one that is asked for with an axis is repeated
    plain = nk.vmap(f)(np.arange(3.0), np.array([1.0, 2.0]))
    np.testing.assert_allclose(plain[1], [3, 3, 3])


def test_batches_of_batches() -> None:
    f = nk.fn(Number, Number)(lambda x, y: x - 2.0 * y)
    table = nk.vmap(nk.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    x, y = numbers(3), numbers(4)
    np.testing.assert_allclose(table(x, y), x[:, None] - 2 * y)
    deep = nk.vmap(nk.vmap(nk.vmap(nk.fn(Vector)(nk.sin))))
    cube = numbers(2, 2, 3, 2)
    np.testing.assert_allclose(deep(cube), np.sin(cube), rtol=1e-14)
    # inside, there is more than any tensor of the language has
    inner = nk.fn(Tensor5D[f64])(lambda t: nk.sin(t).sum())
    np.testing.assert_allclose(
        nk.staged(lambda t, s: nk.vmap(nk.fn(Number)(lambda a: inner(t * a)))(s))(cube[None], x),
        [np.sin(cube * a).sum() for a in x],
        rtol=1e-12,
    )


def test_named_axes() -> None:
    def normalized(x: Rep[Vector]) -> Rep[Vector]:
        mean = nk.axis_mean(x, "rows")
        return (x - mean) / nk.sqrt(nk.axis_mean((x - mean) ** 2.0, "rows"))

    xs = numbers(6, 3)
    batch_norm = nk.vmap(nk.fn(Vector)(normalized), axis_name="rows")
    np.testing.assert_allclose(batch_norm(xs), (xs - xs.mean(0)) / xs.std(0), rtol=1e-12)
    slope = nk.gradient(of=nk.staged(lambda xs: (batch_norm(xs) ** 3.0).sum()), wrt=0)
    step = 1e-6
    moved = np.zeros_like(xs)
    moved[2, 1] = step

    def value(x: Array) -> float:
        return float((((x - x.mean(0)) / x.std(0)) ** 3).sum())

    difference = (value(xs + moved) - value(xs - moved)) / (2 * step)
    assert np.asarray(slope(xs))[2, 1] == pytest.approx(difference, rel=1e-6)
    extremes = nk.fn(Number)(lambda x: nk.axis_max(x, "b") - nk.axis_min(x, "b"))
    np.testing.assert_allclose(nk.vmap(extremes, axis_name="b")(np.array([3.0, -1, 2])), [4, 4, 4])
    count = nk.fn(Count)(lambda n: nk.axis_sum(n * 0 + 1, "b"))
    np.testing.assert_array_equal(nk.vmap(count, axis_name="b")(np.zeros(5, np.int32)), [5] * 5)


def test_derivatives_through_named_axes() -> None:
    """Batched, the gradient of one element's function is that of the sum of all elements' results."""
    xs = np.array([1.0, 3.0, 3.0, 2.0])
    total = nk.fn(Number)(lambda x: nk.axis_sum(x * x, "b"))
    np.testing.assert_allclose(nk.vmap(nk.gradient(of=total, wrt=0), axis_name="b")(xs), 4 * 2 * xs)
    highest = nk.fn(Number)(lambda x: nk.axis_max(x, "b"))
    np.testing.assert_allclose(
        nk.vmap(nk.gradient(of=highest, wrt=0), axis_name="b")(xs), [0, 2, 2, 0]
    )
    pushed = nk.vmap(nk.jvp(highest), in_axes=0, axis_name="b")(xs, np.array([1.0, 2, 4, 8]))
    np.testing.assert_allclose(pushed[1], [3, 3, 3, 3])


def test_nested_named_axes() -> None:
    inner = nk.fn(Number, Number)(
        lambda x, y: nk.axis_sum(x, "outer") * 10.0 + nk.axis_sum(x * y, "inner")
    )
    both = nk.vmap(
        nk.vmap(inner, in_axes=(None, 0), axis_name="inner"), in_axes=(0, None), axis_name="outer"
    )
    x, y = np.array([1.0, 2.0]), np.array([1.0, 10.0, 100.0])
    expected = np.broadcast_to(30 + x[:, None] * 111, (2, 3))
    np.testing.assert_allclose(both(x, y), expected)


def test_structs_and_their_gradients() -> None:
    @nk.staged
    def error(p: Rep[Params], x: Rep[Vector]) -> Rep[Number]:
        return (nk.tanh(x @ p[Params.w] + p[Params.b]) ** 2.0).sum()

    p, xs = Params(numbers(3, 2), numbers(2)), numbers(4, 3)
    slope = nk.gradient(of=error, wrt=0)
    each = nk.vmap(slope, in_axes=(None, 0))(p, xs)
    assert isinstance(each, Params)
    for number, x in enumerate(xs):
        one = slope(p, x)
        np.testing.assert_allclose(np.asarray(each.w)[number], one.w, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(each.b)[number], one.b, rtol=1e-12)
    # what has an axis more may be batched along it
    found = nk.vmap(error, in_axes=0)(each, xs)
    expected = [
        error(Params(np.asarray(each.w)[k], np.asarray(each.b)[k]), x) for k, x in enumerate(xs)
    ]
    np.testing.assert_allclose(found, np.stack([np.asarray(x) for x in expected]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [f16, bf16, f32, f64])
def test_floats_of_every_size(dtype: Any) -> None:
    f = nk.fn(Tensor1D[dtype])(lambda x: nk.cond((x * x).sum() > 0.5, lambda: x.sum(), lambda: x.max()))  # fmt: skip
    xs = Tensor2D(numbers(4, 3).astype(np.float32), f32)
    given = nk.staged(lambda x: x.cast(dtype))(xs)
    found = nk.staged(lambda x: nk.vmap(f)(x).cast(f32))(given)
    each = nk.staged(lambda x: x.map(f).cast(f32))(given)
    np.testing.assert_array_equal(found, each)


@pytest.mark.parametrize("dtype", [i8, i32, i64])
def test_integers(dtype: Any) -> None:
    f = nk.fn(Tensor1D[dtype])(lambda n: nk.cond(n.sum() > 3, lambda: n // 2, lambda: n * n))
    xs = np.arange(-4, 8).reshape(4, 3).astype(nk.Tensor2D([[0]], dtype).numpy().dtype)
    np.testing.assert_array_equal(nk.vmap(f)(xs), loop(f, xs))


def test_truth_values() -> None:
    f = nk.fn(Tensor1D[boolean])(lambda m: nk.cond(m.all(), lambda: m, lambda: ~m))
    xs = np.array([[True, True], [True, False], [False, False]])
    np.testing.assert_array_equal(nk.vmap(f)(xs), [[True, True], [False, True], [True, True]])


def test_no_elements() -> None:
    each = nk.vmap(nk.gradient(of=loss, wrt=1))
    assert each(np.zeros((0, 3)), numbers(3, 4)).shape == (0, 3, 4)
    f, _ = PROGRAMS["until done"]
    assert nk.vmap(f)(np.zeros(0)).shape == (0,)
    assert nk.vmap(f, out_axes=-1)(np.zeros(0)).shape == (0,)


def test_one_element() -> None:
    for f, xs in PROGRAMS.values():
        np.testing.assert_allclose(nk.vmap(f)(xs[:1]), loop(f, xs[:1]), rtol=1e-12)


def test_what_fails_for_no_element_does_not_fail_for_the_batch() -> None:
    f = nk.fn(Vector, Count)(
        lambda x, i: nk.cond((i >= 0) & (i < 3), lambda: nk.take(x, i), lambda: x.sum())
    )
    x = np.array([1.0, 2.0, 4.0])
    found = nk.vmap(f, in_axes=(None, 0))(x, np.array([2, 9, -7, 0], np.int32))
    np.testing.assert_allclose(found, [4, 7, 7, 1])
    unguarded = nk.vmap(nk.fn(Vector, Count)(lambda x, i: nk.take(x, i)), in_axes=(None, 0))
    with pytest.raises(
        nk.IndexOutOfRangeError, match="index 9 is out of range for an axis of extent 3"
    ):
        unguarded(x, np.array([2, 9], np.int32))
    each = nk.vmap(nk.fn(Vector, Count)(lambda x, i: nk.take(x, i)), in_axes=0)
    with pytest.raises(
        nk.IndexOutOfRangeError, match="index 9 is out of range for an axis of extent 3"
    ):
        each(np.stack([x, x]), np.array([2, 9], np.int32))


def test_functions_as_arguments_and_captured_values() -> None:
    @nk.staged
    def twice(f: Callable[[Any], Any], x: Rep[Number]) -> Rep[Number]:
        return f(f(x))

    add = nk.fn(Number)(lambda x: x + 1.0)
    applied = nk.vmap(nk.staged(lambda x: twice(add, x)))
    np.testing.assert_allclose(applied(np.arange(3.0)), [2, 3, 4])

    @nk.staged
    def outer(xs: Rep[Vector], w: Rep[Number]) -> Rep[Number]:
        return nk.vmap(nk.fn(Number)(lambda x: x * w))(xs).sum()

    assert float(outer(np.arange(4.0), 3.0)) == 18.0
    assert float(nk.gradient(of=outer, wrt=1)(np.arange(4.0), 3.0)) == 6.0


def test_random_numbers_differ_by_their_keys() -> None:
    @nk.staged
    def draw(key: Rep[Scalar[i64]], x: Rep[Number]) -> Rep[Number]:
        return x + nk.random.uniform(key, (), dtype=f64)

    keys = np.array([int(key) for key in nk.random.split(nk.random.key(3), 4)])
    found = np.asarray(nk.vmap(draw, in_axes=(0, None))(keys, 0.0))
    np.testing.assert_array_equal(found, [float(draw(int(key), 0.0)) for key in keys])
    assert len(set(found)) == 4
    same = np.asarray(nk.vmap(draw, in_axes=(None, 0))(nk.random.key(3), np.zeros(4)))
    assert len(set(same)) == 1


def test_what_differs_in_a_recursion_is_found() -> None:
    """For ever it was not: what calls itself, and what it calls, took back in turn what they knew of each other."""

    @nk.staged
    def mixed(v: Rep[Vector], s: Rep[Number]) -> Rep[Vector]:
        return nk.tanh(v * s)

    @nk.staged
    def recursive(n: Rep[Count], v: Rep[Vector], s: Rep[Number]) -> tuple[Rep[Vector], Rep[Number]]:
        def deeper() -> tuple[Rep[Vector], Rep[Number]]:
            a, b = recursive(n - 1, v, s)
            return mixed(a, b), s * 0.5

        return nk.cond(n > 0, deeper, lambda: (v, s))

    v, ss = numbers(2), numbers(3)
    n = i32(3)
    with alarm(stop, 60):
        vectors, values = nk.vmap(recursive, in_axes=(None, None, 0))(n, v, ss)
        slopes = nk.vmap(nk.gradient(of=recursive, wrt=2), in_axes=(None, None, 0))(n, v, ss)
    for k, s in enumerate(ss):
        vector, value = recursive(n, v, f64(s))
        np.testing.assert_array_equal(vectors.numpy()[k], vector)
        np.testing.assert_array_equal(values.numpy()[k], value)
        slope = nk.gradient(of=recursive, wrt=2)(n, v, f64(s))
        np.testing.assert_allclose(slopes.numpy()[k], slope, rtol=1e-14)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no such axis": (
        lambda: nk.vmap(loss, in_axes=(2, None)),
        nk.RankError,
        "in_axes=2 for x: loss takes a tensor of rank 1",
    ),
    "no such place": (
        lambda: nk.vmap(loss, out_axes=1),
        nk.RankError,
        "out_axes=1 is no place for an axis in the result of loss",
    ),
    "too few axes": (
        lambda: nk.vmap(loss, in_axes=(0,)),
        nk.StagingError,
        "in_axes=(0,) is of 1 arguments, and loss takes 2 (x, w)",
    ),
    "too many results": (
        lambda: nk.vmap(loss, out_axes=(0, 0)),
        nk.RankError,
        "is of 2 results, and loss returns 1",
    ),
    "no argument": (
        lambda: nk.vmap(loss, in_axes=None),
        nk.StagingError,
        "vmap of loss goes along no argument",
    ),
    "no number": (
        lambda: nk.vmap(loss, in_axes=(0.5, None)),
        nk.StagingError,
        "in_axes has 0.5: an axis is an int",
    ),
    "no name": (lambda: nk.vmap(loss, axis_name=3), nk.StagingError, "axis_name is a str"),  # type: ignore[call-overload]
    "no function": (lambda: nk.vmap(len), nk.StagingError, "vmap takes a staged function"),  # type: ignore[call-overload]
    "one argument": (
        lambda: nk.vmap2(nk.fn(Number)(nk.sin)),
        nk.StagingError,
        "vmap2 goes along two arguments",
    ),  # type: ignore[call-overload]
    "extents": (
        lambda: nk.vmap(loss, in_axes=(0, 2))(numbers(5, 3), numbers(3, 4, 6)),
        nk.ShapeError,
        "x, f64[5, 3], has 5 along axis 0; w, f64[3, 4, 6], has 6 along axis 2",
    ),
    "extents, staged": (
        lambda: nk.staged(lambda x, w: nk.vmap(loss, in_axes=0)(x, w))(
            numbers(5, 3), numbers(6, 3, 4)
        ),
        nk.ShapeError,
        "x, f64[5, 3], has 5 along axis 0; w, f64[6, 3, 4], has 6 along axis 0",
    ),
    "it differs": (
        lambda: nk.vmap(loss, out_axes=None)(numbers(5, 3), numbers(3, 4)),
        nk.ShapeError,
        "differs among the elements of the batch",
    ),
    "too large": (
        lambda: nk.vmap(nk.fn(Number)(lambda x: nk.ones((1,) * 5, f64) * x))(numbers(2)),
        nk.RankError,
        "would return a tensor of rank 6",
    ),
    "a scalar": (
        lambda: nk.vmap(nk.staged(lambda x: x * 2.0))(np.float64(1.0)),
        nk.RankError,
        "from axis 0 of x, which is a Tensor0D[f64]: it has no axes",
    ),
    "unknown name": (
        lambda: nk.vmap(nk.fn(Number)(lambda x: nk.axis_sum(x, "row")), axis_name="rows")(
            numbers(2)
        ),
        nk.StagingError,
        "no batch is called 'row' here: the axes that have a name are 'rows'",
    ),
    "no names": (
        lambda: nk.vmap(nk.fn(Number)(lambda x: nk.axis_sum(x, "row")))(numbers(2)),
        nk.StagingError,
        "no batch is called 'row' here: none has a name",
    ),
    "mean of ints": (
        lambda: nk.vmap(nk.fn(Count)(lambda x: nk.axis_mean(x, "b")), axis_name="b")(
            np.arange(2, dtype=np.int32)
        ),
        nk.DTypeError,
        "axis_mean takes floats",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    make, error, message = REFUSED[name]
    with pytest.raises(error) as caught:
        make()
    notes = "".join(getattr(caught.value, "__notes__", []))
    assert message in str(caught.value)
    assert "test_vmap.py" in str(caught.value) + notes


open_types: Any = nk.staged(lambda a, b: a @ b)
EXPECTED_OF_ALL: list[Callable[[], Any]] = [
    lambda: nk.vmap(nk.fn(Vector, Vector)(nk.add))(numbers(4, 3), numbers(4, 3)),
    lambda: nk.vmap(nk.fn(Number, Number)(nk.add))(numbers(4), numbers(4)),
    lambda: nk.vmap(open_types)(numbers(4, 3), numbers(4, 3)),
    lambda: nk.fn(Matrix, Matrix)(lambda x, y: nk.vmap(nk.fn(Vector, Vector)(nk.add))(x, y))(
        numbers(4, 3), numbers(4, 3)
    ),
    lambda: nk.gradient(
        of=nk.fn(Matrix, Matrix)(lambda x, y: nk.vmap(open_types)(x, y).sum()), wrt=0
    )(numbers(4, 3), numbers(4, 3)),
]


@pytest.mark.parametrize("call", EXPECTED_OF_ALL)
def test_who_expects_the_elements_of_every_argument_is_told_of_in_axes(
    call: Callable[[], Any],
) -> None:
    """As `vmap(f)(x, y)` of JAX and PyTorch does."""
    with pytest.raises(nk.ShapeError) as caught:
        call()
    shown = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(r"help: in_axes has no axis for (y|b), the same for all elements", shown)
    assert shown.count("in_axes=0") == 1
    with pytest.raises(nk.ShapeError) as caught:
        nk.vmap(loss)(numbers(3), numbers(3, 4))
    assert "in_axes" not in "".join(getattr(caught.value, "__notes__", []))


def test_results_of_more_axes() -> None:
    f = nk.fn(Vector, Vector)(lambda a, b: a.reshape(2, 1) * b)
    a, b = numbers(3, 2), numbers(4)
    found: Tensor3D[f64] = nk.vmap(f)(a, b)
    np.testing.assert_allclose(found, a[:, :, None] * b)
