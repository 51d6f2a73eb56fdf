"""Donated arguments: updates in place, and nothing that anybody can still see changes."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64, i32
from tests.nnkit.test_calls_with_out import in_threads
from tests.nnkit.test_training_steps import Params, loss, step

V = Tensor1D[f64]

in_place = nk.donate(step, 0)


def params(inputs: int = 5, outputs: int = 3) -> Params:
    rng = np.random.default_rng(0)
    return Params(nk.Tensor2D(rng.normal(size=(inputs, outputs))), nk.Tensor1D(np.zeros(outputs)))


def batch(inputs: int = 5, outputs: int = 3, rows: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return nk.Tensor2D(rng.normal(size=(rows, inputs))), nk.Tensor2D(
        rng.normal(size=(rows, outputs))
    )


def addresses(p: Params) -> tuple[int, int]:
    """Without a view, which would be somebody who can see the memory."""
    return p.w.__array__(copy=None).ctypes.data, p.b.__array__(copy=None).ctypes.data


def test_a_training_step_updates_its_parameters_in_place() -> None:
    (x, y), p = batch(), in_place(params(), *batch())
    where, wanted = addresses(p), step(params(), x, y)
    for _ in range(20):
        p, wanted = in_place(p, x, y), step(wanted, x, y)
        assert addresses(p) == where
        assert np.array_equal(np.asarray(p.w), np.asarray(wanted.w))
        assert np.array_equal(np.asarray(p.b), np.asarray(wanted.b))


def test_nothing_of_the_size_of_the_parameters_is_allocated() -> None:
    p, (x, y) = params(500, 300), batch(500, 300)
    p = in_place(in_place(p, x, y), x, y)
    tracemalloc.start()
    for _ in range(5):
        p = in_place(p, x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    kept = [step(p, x, y) for _ in range(3)]  # where each result is new
    plain = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert peak < 100_000 and plain > 500 * 300 * 8 and kept


READ: dict[str, Any] = {
    "numpy": lambda t: t.numpy(),
    "array": np.asarray,
    "shape": lambda t: t.shape,
    "dtype": lambda t: t.dtype,
    "size": lambda t: t.size,
    "ndim": lambda t: t.ndim,
    "dlpack": np.from_dlpack,
    "copy": copy.deepcopy,
    "pickle": pickle.dumps,
    "tensor": Tensor1D,
    "constant": nk.const,
    "call": lambda t: nk.fn(V)(lambda v: v + v)(t),
    "donate again": lambda t: nk.donate(nk.fn(V)(lambda v: v + v), 0)(t),
    "out": lambda t: nk.fn(V)(lambda v: v + v)(np.zeros(3), out=t),
    "argument and out": lambda t: nk.fn(V)(lambda v: v + v)(t, out=np.zeros(3)),
    "closure": lambda t: nk.fn(V)(lambda v: v + nk.const(t))(np.zeros(3)),
    "ir": lambda t: nk.fn(V)(lambda v: v + v).ir(t),
    "struct": lambda t: nk.fn(Params)(lambda p: p[Params.b])(Params(Tensor2D(np.zeros((1, 1))), t)),
    "tuple": lambda t: nk.staged(lambda a: a[0] + a[0])((t, t)),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_what_was_donated_is_not_read(read: Any) -> None:
    double = nk.fn(V)(lambda v: v + v)
    first = double(np.arange(3.0))
    nk.donate(double, 0)(first)
    for _ in range(2):  # compiled, and not
        with pytest.raises(nk.DonationError, match="donated to <lambda>, as its argument v"):
            read(first)
    assert repr(first) == "Tensor1D(donated to <lambda> as v)"
    assert copy.copy(first) is first and hash(first)
    with pytest.raises(nk.DonationError):
        assert first == first


def test_the_error_names_function_and_argument() -> None:
    p, (x, y) = params(), batch()
    in_place(p, x, y)
    with pytest.raises(nk.DonationError, match="donated to step, as its argument p") as caught:
        in_place(p, x, y)
    assert "copy.deepcopy" in "".join([str(caught.value), *caught.value.__notes__])
    assert isinstance(caught.value, RuntimeError)


def view_of_it(t: Any) -> Any:
    return t.numpy()


def tensor_of_it(t: Any) -> Any:
    return Tensor1D(t)


def row_of_it(t: Any) -> Any:
    return t.numpy()[1:2]


def buffer_of_it(t: Any) -> Any:
    return np.frombuffer(memoryview(t.numpy()))


def capsule_of_it(t: Any) -> Any:
    return np.from_dlpack(t)


@pytest.mark.parametrize("seen", [view_of_it, tensor_of_it, row_of_it, buffer_of_it, capsule_of_it])
def test_what_somebody_else_can_see_stays_as_it_is(seen: Any) -> None:
    double = nk.fn(V)(lambda v: v + v)
    donating = nk.donate(double, 0)
    t = donating(donating(np.arange(3.0)))
    other = seen(t)
    before = np.array(other)
    made = donating(t)
    assert np.array_equal(made.numpy(), np.arange(3.0) * 8)
    assert np.array_equal(np.asarray(other), before)
    with pytest.raises(nk.DonationError):
        t.numpy()
    del made
    gc.collect()
    for _ in range(3):
        donating(np.arange(3.0) + 100)
    assert np.array_equal(np.asarray(other), before)


def test_arrays_of_the_user_are_left_alone() -> None:
    """Given as they are or wrapped, and where a tensor was made of numbers."""
    donating = nk.donate(nk.fn(V)(lambda v: v + v), 0)
    array = np.arange(3.0)
    assert np.array_equal(donating(array), [0, 2, 4]) and np.array_equal(array, [0, 1, 2])
    wrapped = Tensor1D(array)
    assert np.array_equal(donating(wrapped), [0, 2, 4]) and np.array_equal(array, [0, 1, 2])
    with pytest.raises(nk.DonationError):
        wrapped.numpy()
    strided = np.arange(6.0)[::2]
    assert np.array_equal(donating(strided), [0, 4, 8]) and np.array_equal(strided, [0, 2, 4])
    numbers = Tensor1D([1.0, 2.0, 3.0], f64)
    assert np.array_equal(donating(numbers), [2, 4, 6])
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert np.array_equal(donating(Tensor1D(frozen)), [0, 2, 4])


def test_results_that_another_function_keeps_for_its_next_calls() -> None:
    """They are no one's alone, so they are copied once."""
    double = nk.fn(V)(lambda v: v + v)
    donating = nk.donate(double, 0)
    for n in range(5):
        made = double(np.arange(3.0) + n)
        found = donating(made)
        later = double(np.zeros(3))
        assert np.array_equal(found.numpy(), (np.arange(3.0) + n) * 4) and not later.numpy().any()


@nk.staged
def late(p: Rep[V], q: Rep[V]) -> tuple[Rep[V], Rep[V]]:
    """Each result would lie where something is that is read for the other."""
    return nk.cumsum(q, axis=0) + p.sum(), nk.cumsum(p, axis=0) * q


@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1), (1, 0, 1)])
def test_results_are_right_though_arguments_are_read_late(donated: tuple[int, ...]) -> None:
    donating = nk.donate(late, *donated)
    p, q = (nk.fn(V)(lambda v: v * 1.0)(np.arange(5.0) + n) for n in (1, 3))
    for _ in range(4):
        wanted = [np.asarray(part).copy() for part in late(p, q)]
        p, q = donating(copy.deepcopy(p), copy.deepcopy(q))
        p, q = (copy.deepcopy(one) for one in (p, q))
        assert all(np.array_equal(x, y) for x, y in zip((p, q), wanted, strict=True))


def test_an_update_of_one_row_copies_nothing() -> None:
    """One element of 2²⁰ takes as long as one of few."""
    put = nk.fn(V, Scalar[i32])(lambda v, i: v.at[i].add(1.0))
    donating = nk.donate(put, 0)
    v = donating(donating(np.zeros(1 << 20), i32(0)), i32(1))
    where = v.__array__(copy=None).ctypes.data
    for n in range(10):
        v = donating(v, i32(n))
    assert v.__array__(copy=None).ctypes.data == where
    assert np.array_equal(v.numpy()[:12], [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    text = donating.ir(np.zeros(1 << 20), i32(0), stage="schedule")
    assert "!donated_0_0" in text


def test_arguments_that_no_result_is_like_are_freed() -> None:
    total = nk.donate(nk.fn(V)(lambda v: v.sum()), 0)
    fill = nk.donate(nk.fn(V)(lambda v: v + 1.0), 0)  # which keeps no memory for its next results
    total(np.zeros(1 << 20))
    fill(np.zeros(1 << 20))
    gc.collect()
    tracemalloc.start()
    t = fill(np.zeros(1 << 20))
    held = tracemalloc.get_traced_memory()[0]
    assert float(total(t)) == 1 << 20
    freed = held - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert freed > 8 << 19
    with pytest.raises(nk.DonationError):
        t.numpy()


@nk.staged
def both(p: Rep[V], q: Rep[V]) -> Rep[V]:
    return p + q


def test_a_tensor_is_donated_once() -> None:
    t = nk.fn(V)(lambda v: v + 1.0)(np.zeros(3))
    call: Any = nk.donate(both, 0)
    for _ in range(2):
        with pytest.raises(nk.DonationError, match="argument p of both, which is donated, is arg"):
            call(t, t)
        call(np.zeros(3), np.zeros(3))
    twice: Any = nk.donate(both, 0, 1)
    for _ in range(2):
        with pytest.raises(nk.DonationError, match="is argument q, too"):
            twice(t, t)
        twice(np.zeros(3), np.zeros(3))
    pair: Any = nk.donate(nk.staged(lambda a: (a[0] + a[1], a[1])), 0)
    for _ in range(2):
        with pytest.raises(nk.DonationError, match="in that argument twice"):
            pair((t, t))
        pair((np.zeros(3), np.zeros(3)))
    assert np.array_equal(t.numpy(), [1, 1, 1]), "a call that is refused donates nothing"
    assert np.array_equal(both(t, t).numpy(), [2, 2, 2])
    assert np.array_equal(call(np.ones(3), np.ones(3)), [2, 2, 2])


def test_different_tensors_of_one_array() -> None:
    array = np.arange(3.0)
    call = nk.donate(both, 0, 1)
    assert np.array_equal(call(Tensor1D(array), Tensor1D(array)), [0, 2, 4])
    t = nk.fn(V)(lambda v: v + 1.0)(np.zeros(3))
    assert np.array_equal(call(Tensor1D(t), t), [2, 2, 2])
    assert np.array_equal(nk.donate(both, 0)(array, array), [0, 2, 4])


def test_what_cannot_be_donated() -> None:
    for numbers in ((2,), (-1,), (0, 5), (1.0,), ("p",), ()):
        with pytest.raises(nk.StagingError, match="donate takes"):
            nk.donate(both, *numbers)  # type: ignore[arg-type]
    with pytest.raises(nk.StagingError, match="donate takes a staged function"):
        nk.donate(np.add, 0)  # type: ignore[arg-type]
    call: Any = nk.donate(both, 0)
    with pytest.raises(nk.StagingError, match="takes no out="):
        call(np.zeros(3), np.zeros(3), out=np.zeros(3))
    curried: Any = nk.donate(nk.staged(lambda a: lambda b: a + b), 0)
    with pytest.raises(nk.StagingError, match="returns functions"):
        curried(np.zeros(3))
    mapped: Any = nk.donate(nk.staged(lambda g, a: g(a)), 1)
    with pytest.raises(nk.StagingError, match="takes functions"):
        mapped(nk.fn(V)(lambda v: v + v), np.zeros(3))


def test_donations_add_up_and_stay_out_of_staged_code() -> None:
    call = nk.donate(nk.donate(both, 0), 1)
    p, q = (nk.fn(V)(lambda v: v + 1.0)(np.zeros(3)) for _ in range(2))
    call(p, q)
    for one in (p, q):
        with pytest.raises(nk.DonationError):
            one.numpy()
    inside = nk.fn(V)(lambda v: call(v, v) * v)
    assert np.array_equal(inside(np.arange(3.0)), [0, 2, 8])
    slope = nk.gradient(of=call, wrt=(0, 1))
    t = Tensor1D(np.ones(3))
    slope(t, t)
    assert t.shape == (3,)


def test_references_are_as_before() -> None:
    donating = nk.donate(both, 0)
    q, p = Tensor1D(np.ones(3)), donating(np.ones(3), np.ones(3))
    watched = (q, None, np.ndarray, Tensor1D, both, donating, donating._markers[0])
    for _ in range(10):
        p = donating(p, q)
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(1000):
        p = donating(p, q)
    after = [sys.getrefcount(one) for one in watched]
    assert all(abs(x - y) < 10 for x, y in zip(before, after, strict=True)), (before, after)
    tracemalloc.start()
    for _ in range(100):
        with pytest.raises(nk.DonationError):
            donating(p, p)
    before_bytes = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        with pytest.raises(nk.DonationError):
            donating(p, p)
    assert tracemalloc.get_traced_memory()[0] - before_bytes < 10_000
    tracemalloc.stop()


def test_a_call_that_fails_has_taken_what_was_donated() -> None:
    checked = nk.fn(V)(lambda v: (nk.check((v > 0.0).all(), "positive"), v + v)[1])
    donating = nk.donate(checked, 0)
    t = nk.fn(V)(lambda v: v + 0.0)(np.zeros(3))
    with pytest.raises(nk.CheckError, match="positive"):
        donating(t)
    with pytest.raises(nk.DonationError):
        t.numpy()
    assert np.array_equal(donating(np.ones(3)), [2, 2, 2])


def test_of_several_threads_one_has_it() -> None:
    donating = nk.donate(both, 0)
    q = Tensor1D(np.ones(100))
    donating(np.ones(100), q)
    for _ in range(20):
        t, won = nk.fn(V)(lambda v: v + 0.0)(np.zeros(100)), list[Any]()
        gate = threading.Barrier(4)

        def work(_: int, t: Any = t, won: list[Any] = won, gate: Any = gate) -> None:
            gate.wait()
            try:
                won.append(donating(t, q))
            except nk.DonationError:
                return

        in_threads(work)
        assert len(won) == 1 and np.array_equal(won[0].numpy(), np.ones(100))


def test_what_a_long_call_reads_stays_while_another_thread_donates_it() -> None:
    """A call that gives up the GIL holds what it reads, so that nothing writes over it meanwhile."""

    @nk.staged
    def long(v: Rep[V], n: Rep[Scalar[i32]]) -> Rep[V]:
        return nk.fori(0, n, lambda i, c: nk.sin(c) + v, v)

    n, many = i32(3_000), np.arange(1000.0)
    wanted = np.asarray(long(many, n))
    donating = nk.donate(nk.fn(V)(lambda v: v * 0.0 + 7.0), 0)
    donating(many)
    for _ in range(3):
        t = nk.fn(V)(lambda v: v + 0.0)(many)
        t = nk.donate(nk.fn(V)(lambda v: v + 0.0), 0)(t)  # nobody keeps it for its next results
        started, found = threading.Event(), list[Any]()

        def read(_: int, t: Any = t, started: Any = started, found: list[Any] = found) -> None:
            started.set()
            found.append(long(t, n))

        reader = threading.Thread(target=read, args=(0,))
        reader.start()
        started.wait()
        spoiled = donating_or_none(donating, t)
        reader.join()
        if found:
            assert np.array_equal(found[0].numpy(), wanted)
        assert spoiled is None or np.array_equal(spoiled.numpy(), np.full(1000, 7.0))


def donating_or_none(donating: Any, t: Any) -> Any:
    try:
        return donating(t)
    except nk.DonationError:
        return None


def test_a_callback_that_donates_what_the_program_reads() -> None:
    """Python runs in the middle of a call: what the call reads is held."""
    donating = nk.donate(nk.fn(V)(lambda v: v * 0.0 + 7.0), 0)
    donating(np.ones(3))
    held: list[Any] = []
    spoiled: list[Any] = []

    def spoil(x: Any) -> Any:
        spoiled.extend(donating(one) for one in held)
        return np.array(x)

    called = nk.callback(spoil, nk.fn(V)(lambda x: x))
    reads = nk.fn(V)(lambda v: called(v) + v)
    reads(np.ones(3))
    t = nk.donate(nk.fn(V)(lambda v: v + 0.0), 0)(np.ones(3))
    held.append(t)
    assert np.array_equal(reads(t).numpy(), [2, 2, 2])
    assert np.array_equal(spoiled[0].numpy(), [7, 7, 7])


def test_f32_and_empty_tensors() -> None:
    donating = nk.donate(nk.fn(Tensor1D[f32])(lambda v: v + v), 0)
    t = donating(np.zeros(0, np.float32))
    assert donating(t).shape == (0,)
    scalar = nk.donate(nk.fn(Scalar[f64])(lambda v: v + v), 0)
    s = scalar(f64(1.5))
    for _ in range(3):
        s = scalar(s)
    assert float(s) == 24.0


@nk.staged
def add_slope(
    total: Rep[Params], p: Rep[Params], x: Rep[Tensor2D[f64]], y: Rep[Tensor2D[f64]]
) -> Rep[Params]:
    share = nk.staged(lambda q: nk.square(nk.tanh(x @ q[Params.w] + q[Params.b]) - y).sum() / 24.0)
    part = nk.gradient(of=share, wrt=0)(p)
    for field in nk.fields(Params):
        total = total.set(field, total[field] + part[field])
    return total


@pytest.mark.parametrize("way", ["donated", "out"])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_gradients_of_parts_add_up_to_that_of_the_whole_in_one_buffer(way: str, size: int) -> None:
    p, (x, y) = params(), batch()
    whole = nk.gradient(of=loss, wrt=0)(p, x, y)
    total = Params(nk.Tensor2D(np.zeros((5, 3))), nk.Tensor1D(np.zeros(3)))
    add = nk.donate(add_slope, 0)
    where: list[tuple[int, int]] = []
    for k in range(0, 8, size):
        rows = nk.Tensor2D(np.asarray(x)[k : k + size]), nk.Tensor2D(np.asarray(y)[k : k + size])
        if way == "donated":
            total = add(total, p, *rows)
        else:
            total = add_slope(total, p, *rows, out=total)
        where.append(addresses(total))
    assert len(set(where)) == 1
    np.testing.assert_allclose(total.w, whole.w, rtol=1e-12)
    np.testing.assert_allclose(total.b, whole.b, rtol=1e-12, atol=1e-15)


Several = Rep[tuple[Tensor2D[f32], Tensor2D[f32], Tensor2D[f32]]]


@pytest.mark.parametrize("of_product", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_results_of_one_kernel_may_lie_in_the_places_of_any_donated_operands(
    of_product: bool, order: tuple[int, ...]
) -> None:
    """Whichever is written first: what another result reads there is loaded before."""

    @nk.staged
    def f(
        x: Rep[Tensor2D[f32]],
        a: Rep[Tensor2D[f32]],
        b: Rep[Tensor2D[f32]],
        c: Rep[Tensor2D[f32]],
    ) -> Several:
        p = nk.exp(x @ x) if of_product else nk.exp(x + x)
        made = p + a, p * b, a - p * c
        return nk.tup(*(made[n] for n in order))

    rng = np.random.default_rng(2)
    arrays = [(rng.normal(size=(48, 48)) / 4).astype(np.float32) for _ in range(4)]
    wanted = [np.asarray(one) for one in f(*map(Tensor2D, arrays))]
    for donated in ((1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)):
        found = nk.donate(f, *donated)(*(Tensor2D(array.copy()) for array in arrays))
        for one, other in zip(found, wanted, strict=True):
            assert np.array_equal(np.asarray(one), other), donated


def test_moments_and_weights_are_updated_in_place_in_any_order() -> None:
    """Steps of Adam, whose gradient is a product: results before or behind those that read what they replace."""
    Matrix = Rep[Tensor2D[f32]]

    def step(x: Matrix, d: Matrix, m: Matrix, v: Matrix, w: Matrix) -> tuple[Matrix, ...]:
        g = x.T @ d
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return m, v, w - 0.01 * m / (nk.sqrt(v) + 1e-6)

    rng = np.random.default_rng(3)
    x, d = (rng.normal(size=(40, n)).astype(np.float32) for n in (96, 64))
    given = [rng.random((96, 64)).astype(np.float32) for _ in range(3)]
    for order in itertools.permutations(range(3)):
        staged = nk.staged(
            lambda x, d, m, v, w, order=order: nk.tup(*(step(x, d, m, v, w)[n] for n in order))
        )
        tensors = [Tensor2D(array) for array in (x, d, *given)]
        wanted = [np.asarray(one) for one in staged(*tensors)]
        for donated in ((2,), (3,), (4,), (2, 4), (2, 3, 4)):
            copies = [Tensor2D(array.copy()) for array in (x, d, *given)]
            for one, other in zip(nk.donate(staged, *donated)(*copies), wanted, strict=True):
                assert np.array_equal(np.asarray(one), other), (order, donated)


def test_temporaries_that_lie_in_each_others_places_are_read_first() -> None:
    """The tangent of a network whose hidden layer is multiplied."""

    @nk.staged
    def loss(
        x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]], b: Rep[Tensor2D[f32]]
    ) -> Rep[Scalar[f32]]:
        y = nk.erf(nk.relu((x @ w) * b) @ w)
        return ((y - y.mean(axis=-1).expand_dims(1)) * y).sum()

    rng = np.random.default_rng(0)
    x, w, b, dx = (
        (rng.normal(size=shape) / 4).astype(np.float32)
        for shape in ((32, 64), (64, 64), (32, 64), (32, 64))
    )
    tensors = [Tensor2D(array) for array in (x, w, b)]
    _, tangent = nk.jvp(of=loss, wrt=(0,))(*tensors, Tensor2D(dx))
    slope = nk.gradient(of=loss, wrt=0)(*tensors)
    assert float(tangent) == pytest.approx(float((np.asarray(slope) * dx).sum()), rel=1e-4)
