"""`f(x, out=y)`: results in arrays of the caller, with nothing allocated for them."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, bf16, f32, f64, i64
from nnkit.calls_with_out import arrays_in

F = Tensor2D[f32]


class Pair(Struct):
    w: Field[Tensor2D[f32]]
    b: Field[Tensor1D[f32]]


@nk.staged
def f(x: Rep[F], y: Rep[F]) -> Rep[F]:
    return x @ y + x


@nk.staged
def pair(p: Rep[Pair], x: Rep[F]) -> tuple[Rep[Pair], Rep[Scalar[f32]]]:
    return p.set(Pair.w, p[Pair.w] @ x).set(Pair.b, p[Pair.b] * 2.0), x.sum()


def matrix(seed: int = 0, n: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=(n, n)).astype(np.float32)


def test_results_lie_in_the_tensor_that_is_given_and_that_is_returned() -> None:
    x, y, out = Tensor2D(matrix(0)), Tensor2D(matrix(1)), Tensor2D(np.zeros((3, 3), np.float32))
    memory = out._array
    for _ in range(3):
        assert f(x, y, out=out) is out
        assert np.array_equal(memory, np.asarray(f(x, y)))
        memory[...] = 0


RATE = 3.0


def test_native_code_takes_what_fits_without_python() -> None:
    """In turns with calls without `out=`, of other shapes, of derivatives; where a constant is watched, and changes."""
    watching = nk.fn(F, F)(lambda x, y: x @ y * RATE)
    slopes = nk.gradient(of=f, wrt=(0, 1))
    constant = nk.staged(lambda: nk.ones((2,), f32))
    made: list[tuple[Any, tuple[Any, ...], Any]] = [
        (constant, (), Tensor1D(np.zeros(2, np.float32)))
    ]
    for n in (2, 3):
        x, y = Tensor2D(matrix(0, n)), Tensor2D(matrix(1, n))
        p, total = Pair(x, Tensor1D(np.ones(n, np.float32))), nk.Tensor0D(np.zeros((), np.float32))
        empty = Pair(Tensor2D(matrix(2, n)), Tensor1D(np.zeros(n, np.float32)))
        made += [(one, (x, y), Tensor2D(matrix(2, n))) for one in (f, watching)]
        made += [
            (pair, (p, y), (empty, total)),
            (slopes, (x, y), (Tensor2D(matrix(3, n)), Tensor2D(matrix(4, n)))),
        ]
    for function, arguments, out in made:
        function(*arguments), function(*arguments, out=out)
    with mock.patch.object(type(f), "_write_to", side_effect=AssertionError):
        for _ in range(2):
            for function, arguments, out in made:
                assert function(*arguments, out=out) is out
                assert leaves(out) == leaves(function(*arguments))
        with mock.patch.dict(globals(), RATE=5.0), pytest.raises(AssertionError):
            watching(x, y, out=made[-3][2])
    with mock.patch.dict(globals(), RATE=5.0):
        out = watching(x, y, out=made[-3][2])
        np.testing.assert_allclose(out.numpy(), x.numpy() @ y.numpy() * 5.0, rtol=1e-6)


def test_a_keyword_of_another_name_or_object_is_python_s() -> None:
    """Native code knows the name by its address; one that is equal is made while the program runs."""
    x, y, out = matrix(0), matrix(1), Tensor2D(np.zeros((3, 3), np.float32))
    call: Any = f
    for _ in range(2):
        assert call(x, y, **{"".join(["o", "ut"]): out}) is out
        assert np.array_equal(out.numpy(), f(x, y).numpy())
        with pytest.raises(nk.StagingError, match="2"):
            call(x, y, out)


def test_they_are_specialisations_of_the_function() -> None:
    g = nk.fn(F)(lambda x: x + 1.0)
    x, out = Tensor2D(matrix()), Tensor2D(matrix(1))
    for _ in range(3):
        g(x, out=out), g(x)
    assert g.cache_size() == 2
    g.clear_cache()
    assert g.cache_size() == 0 and g(x, out=out) is out and g.cache_size() == 1
    limit = nk.set_cache_limit(1)
    try:
        for n in (1, 2, 3):
            out = Tensor2D(matrix(1, n))
            assert leaves(g(Tensor2D(matrix(0, n)), out=out)) == leaves(g(Tensor2D(matrix(0, n))))
            assert g.cache_size() == 1
    finally:
        nk.set_cache_limit(limit)


def leaves(value: Any) -> list[Any]:
    return [array.tolist() for array in arrays_in(value)]


def test_an_array_is_written_to_and_becomes_a_tensor() -> None:
    x, y, out = matrix(0), matrix(1), np.zeros((3, 3), np.float32)
    made = f(x, y, out=out)
    assert isinstance(made, Tensor2D) and np.shares_memory(made.numpy(), out)
    assert np.array_equal(out, np.asarray(f(x, y)))


def test_structs_and_tuples_as_the_result_is() -> None:
    p, x = Pair(Tensor2D(matrix(0)), Tensor1D(np.ones(3, np.float32))), Tensor2D(matrix(1))
    target = Pair(Tensor2D(matrix(2)), Tensor1D(np.zeros(3, np.float32)))
    total = np.zeros((), np.float32)
    made, sum_ = pair(p, x, out=(target, total))
    assert made is target and np.shares_memory(sum_.numpy(), total)
    wanted, wanted_sum = pair(p, x)
    assert np.array_equal(target.w.numpy(), wanted.w.numpy()) and float(sum_) == float(wanted_sum)
    assert np.array_equal(target.b.numpy(), wanted.b.numpy())
    again = (target, nk.Tensor0D(total))
    assert pair(p, x, out=again) is again


def test_views_that_are_as_results_are() -> None:
    """Rows of a larger array, Fortran order of a vector, C's long long, subclasses, bits of bf16, nothing at all."""
    x, y, many = matrix(0), matrix(1), np.zeros((6, 3), np.float32)
    f(x, y, out=many[3:])
    assert np.array_equal(many[3:], np.asarray(f(x, y))) and not many[:3].any()
    count = nk.fn(Tensor1D[i64])(lambda n: n + 1)
    longs = np.zeros(2, "q")
    assert np.array_equal(count(np.array([1, 2]), out=longs), [2, 3]) and longs[1] == 3
    recorded = np.zeros((3, 3), np.float32).view(np.matrix)
    f(x, y, out=recorded)
    assert np.array_equal(recorded, np.asarray(f(x, y)))
    halves = nk.fn(Tensor1D[bf16])(lambda v: v + v)
    bits = np.zeros(1, np.uint16)
    halves(Tensor1D([1.5], bf16), out=bits)
    assert np.asarray(Tensor1D(bits, bf16))[0] == 3.0
    empty = nk.fn(Tensor1D[f32])(lambda v: v + v)
    nothing = np.zeros(0, np.float32)
    assert empty(nothing, out=nothing).shape == (0,)


def test_an_argument_that_out_overlaps_is_read_as_it_was() -> None:
    x, y = matrix(0), matrix(1)
    wanted = np.asarray(f(x, y))
    same = x.copy()
    f(same, y, out=same)
    assert np.array_equal(same, wanted)
    tensor = Tensor2D(x.copy())
    assert f(tensor, y, out=tensor) is tensor and np.array_equal(tensor.numpy(), wanted)
    shifted = np.zeros((4, 3), np.float32)
    shifted[1:] = x
    f(shifted[1:], y, out=shifted[:3])
    assert np.array_equal(shifted[:3], wanted)
    p = Pair(Tensor2D(x.copy()), Tensor1D(np.ones(3, np.float32)))
    wanted_pair, _ = pair(p, y)
    made, _ = pair(p, y, out=(p, np.zeros((), np.float32)))
    assert made is p and np.array_equal(p.w.numpy(), wanted_pair.w.numpy())


READ_ONLY = np.frombuffer(bytes(36), np.float32).reshape(3, 3)
BYTES = np.frombuffer(bytearray(40), np.uint8)
ODD = BYTES[1:37].view(np.float32).reshape(3, 3)
BAD: list[tuple[Any, type[Exception], str]] = [
    (np.zeros((3, 3)), nk.DTypeError, "out must have elements of f32, and has float64"),
    (np.zeros((3, 3), np.int32), nk.DTypeError, "out must have elements of f32, and has int32"),
    (np.zeros((3, 4), np.float32), nk.ShapeError, r"shape \[3, 3\], and has \[3, 4\]"),
    (np.zeros(3, np.float32), nk.RankError, r"shape \[3, 3\], and has \[3\]"),
    (np.zeros((3, 6), np.float32)[:, ::2], nk.OutputError, "not contiguous"),
    (matrix().T, nk.OutputError, "not contiguous"),
    (matrix()[::-1], nk.OutputError, "not contiguous"),
    (np.broadcast_to(np.float32(0), (3, 3)), nk.OutputError, "read-only"),
    (READ_ONLY, nk.OutputError, "read-only"),
    (Tensor2D(READ_ONLY), nk.OutputError, "read-only"),
    (ODD, nk.OutputError, "not aligned"),
    (np.zeros((3, 3), ">f4"), nk.OutputError, "swapped bytes"),
    (np.ma.masked_array(np.zeros((3, 3), np.float32)), nk.DTypeError, "must be a tensor"),
    ([[0.0] * 3] * 3, nk.DTypeError, "must be a tensor or a NumPy array, and is a list"),
    (None, nk.DTypeError, "must be a tensor or a NumPy array"),
    ((matrix(),), nk.DTypeError, "is a tuple of 1"),
    (Pair(Tensor2D(matrix()), Tensor1D(matrix()[0].copy())), nk.DTypeError, "must be a tensor"),
]


@pytest.mark.parametrize(("out", "error", "message"), BAD)
def test_what_cannot_be_written_to(out: Any, error: type[Exception], message: str) -> None:
    x, y = Tensor2D(matrix(0)), Tensor2D(matrix(1))
    call: Any = f
    with pytest.raises(error, match=message) as caught:
        call(x, y, out=out)
    assert str(caught.value).startswith("f: out ")
    call(x, y, out=Tensor2D(matrix()))
    with pytest.raises(error, match=message):  # and when native code is asked first
        call(x, y, out=out)


def test_parts_that_do_not_fit_are_named() -> None:
    p, x = Pair(Tensor2D(matrix()), Tensor1D(np.ones(3, np.float32))), Tensor2D(matrix())
    total = np.zeros((), np.float32)
    call: Any = pair
    for out, message in (
        ((Pair(Tensor2D(matrix(0, 2)), p.b), total), r"out\[0\].w must have the shape"),
        ((p, np.zeros(1, np.float32)), r"out\[1\] must have the shape \[\], and has \[1\]"),
        ((p,), "out must be a tuple of 2 values, and is a tuple of 1"),
        ([p, total], "out must be a tuple of 2 values"),
        ((total, p), r"out\[0\] must be a struct Pair|out\[0\] must be"),
    ):
        with pytest.raises(nk.NNKitError, match=message):
            call(p, x, out=out)


def test_two_results_share_no_memory() -> None:
    twice = nk.fn(F)(lambda x: nk.tup(x + 1.0, x * 2.0))
    x, room = Tensor2D(matrix()), np.zeros((6, 3), np.float32)
    one = Tensor2D(np.zeros((3, 3), np.float32))
    for out in ((room[:3], room[2:5]), (one, one)):
        with pytest.raises(nk.OutputError, match="two arrays in out share memory"):
            twice(x, out=out)
    made = twice(x, out=(room[:3], room[3:]))
    assert np.array_equal(room, np.concatenate([np.asarray(part) for part in made]))


def test_keywords_reps_and_functions() -> None:
    x = Tensor2D(matrix())
    call: Any = f
    with pytest.raises(nk.StagingError, match="by position, not by name"):
        call(x, x, into=x)
    with pytest.raises(nk.StagingError, match="by position, not by name"):
        call(x, x, out=x, into=x)
    with pytest.raises(nk.StagingError, match="takes out= where it runs"):
        nk.fn(F)(lambda v: call(v, v, out=v))(x)
    with pytest.raises(nk.StagingError, match="takes out= where it runs"):
        nk.fn(F)(lambda v: v + call(x, x, out=x))(x)
    with pytest.raises(nk.StagingError, match="2"):
        call(x, out=x)
    curried = nk.staged(lambda a: lambda b: a + b)
    out = Tensor2D(np.zeros((3, 3), np.float32))
    with pytest.raises(nk.StagingError, match="returns a staged function"):
        curried(x, out=out)
    applied: Any = curried(x)
    assert applied(x, out=out) is out and np.array_equal(out.numpy(), 2 * x.numpy())
    constant = nk.staged(lambda: nk.ones((2,), f32))
    target = np.zeros(2, np.float32)
    assert np.array_equal(constant(out=target), [1, 1]) and target[0] == 1  # type: ignore[call-overload]


def test_gradients_and_shapes_that_change() -> None:
    dg = nk.gradient(of=f, wrt=(0, 1))
    for n in (2, 3, 2, 5):
        x, y = Tensor2D(matrix(0, n)), Tensor2D(matrix(1, n))
        out = Tensor2D(matrix(2, n)), Tensor2D(matrix(3, n))
        assert dg(x, y, out=out) is out
        for found, wanted in zip(out, dg(x, y), strict=True):
            assert np.array_equal(found.numpy(), wanted.numpy())


def test_nothing_is_allocated() -> None:
    n = 1 << 18
    x, out = Tensor1D(np.ones(n)), Tensor1D(np.zeros(n))
    g = nk.fn(Tensor1D[f64])(lambda v: nk.exp(v) * v)
    g(x, out=out)
    tracemalloc.start()
    for _ in range(5):
        g(x, out=out)
    assert tracemalloc.get_traced_memory()[1] < n
    tracemalloc.stop()


def test_errors_leave_no_trace() -> None:
    """A failing check is raised, and the next call works; references are as before."""
    checked = nk.fn(Tensor1D[f32])(lambda v: (nk.check((v > 0.0).all(), "positive"), v + v)[1])
    good, bad, out = np.ones(3, np.float32), np.zeros(3, np.float32), Tensor1D(matrix()[0].copy())
    for _ in range(3):
        with pytest.raises(nk.CheckError, match="positive"):
            checked(bad, out=out)
        assert checked(good, out=out) is out and out.numpy()[0] == 2


def test_where_nans_are_looked_for() -> None:
    root = nk.fn(Tensor1D[f64])(nk.sqrt)
    out = np.zeros(2)
    with nk.debug_nans():
        assert np.array_equal(root(np.array([4.0, 9.0]), out=out), [2, 3])
        with pytest.raises(nk.NonFiniteError, match="sqrt"):
            root(np.array([4.0, -1.0]), out=out)
        with pytest.raises(nk.ShapeError, match="out must have the shape"):
            root(np.array([4.0]), out=out)
    assert np.array_equal(out, [2, 3])


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_from_several_threads() -> None:
    x, y = Tensor2D(matrix(0)), Tensor2D(matrix(1))
    wanted = np.asarray(f(x, y))

    def work(_: int) -> None:
        out = Tensor2D(np.zeros((3, 3), np.float32))
        for _ in range(300):
            f(x, y, out=out)
            assert np.array_equal(out.numpy(), wanted)

    in_threads(work)
