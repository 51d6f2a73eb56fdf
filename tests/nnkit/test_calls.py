"""Calls: the forms of data they take, what they give back, how programs are shown, threads, copies and cost."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnkit as nk
from nnkit import (
    Rep,
    Scalar,
    Tensor1D,
    Tensor2D,
    const,
    f32,
    i32,
    spec,
    staged,
)
from nnkit.callables import StagedFunction
from nnkit.tensors import RANKED
from tests.patience import PATIENCE
from tests.values import same_bits

from .called_functions import F1, F2, Layer, importable, layer, ones, values

# ------------------------------------------------------------------------------------------- what is accepted


def test_every_form_of_an_array_is_accepted() -> None:
    f = staged(lambda x: x * 2.0 + 1.0)
    base = np.arange(6, dtype=np.float32)
    want = (base * 2 + 1).tolist()
    read_only = base.copy()
    read_only.setflags(write=False)
    misaligned = np.zeros(25, np.uint8)[1:].view(np.float32)
    misaligned[:] = base
    strided = np.zeros(12, np.float32)[::2]
    strided[:] = base
    forms = {
        "array": base, "tensor": Tensor1D(base), "read-only": read_only, "misaligned": misaligned, "strided": strided,
        "byte-swapped": base.astype(">f4"), "reversed": base[::-1].copy()[::-1],
        "memoryview": np.asarray(memoryview(base)),
    }  # fmt: skip
    for name, array in forms.items():
        for _ in range(2):
            assert values(f(array)) == want, name
    assert len(f._programs) == 1
    square = np.arange(6, dtype=np.float32).reshape(2, 3)
    matrix = staged(lambda x: x * 2.0)
    with pytest.warns(PendingDeprecationWarning):
        deprecated = np.matrix(square)
    for other in (np.asfortranarray(square), square.T.copy().T, deprecated):
        np.testing.assert_array_equal(np.asarray(matrix(other)), square * 2)
    assert len(matrix._programs) == 1


def test_a_mapped_file_is_accepted(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(3,))
    mapped[:] = [1, 2, 3]
    assert values(importable(mapped)) == [2.0, 3.0, 4.0]


def test_scalars_of_python_and_numpy() -> None:
    @staged
    def f(x: Rep[F1], rate: Rep[Scalar[f32]], n: Rep[Scalar[i32]]) -> Rep[F1]:
        return x * rate + n.cast(f32)

    want = values(f(ones(1), f32(0.5), i32(2)))
    assert want == [2.5]
    for rate, n in [
        (0.5, 2),
        (np.float32(0.5), np.int32(2)),
        (np.array(0.5, np.float32), 2),
        (np.float64(0.5), 2),
    ]:
        assert values(f(ones(1), rate, n)) == want
    assert len(f._programs) == 1
    assert values(f(ones(1), 1, 2)) == [3.0]
    assert np.isinf(values(f(ones(1), float("inf"), 0)))
    inside = staged(lambda x: f(x, 0.25, 1))
    assert values(inside(ones(1))) == [1.25]


def test_tensors_of_a_user_s_subclass_and_arrays_changed_in_place() -> None:
    class Mine(Tensor1D):
        pass

    assert values(importable(Mine(ones(2)))) == [2.0, 2.0]
    array = np.arange(4, dtype=np.float32)
    tensor = Tensor1D(array)
    with pytest.warns(DeprecationWarning) if sys.version_info >= (3, 14) else nullcontext():
        array.resize((2, 2), refcheck=False)
    assert values(importable(tensor)) == [1.0, 2.0, 3.0, 4.0]


SHAPES = [
    (),
    (6,),
    (4,),
    (2, 3),
    (1, 4),
    (2, 1, 2),
    (3, 2),
    (2, 1, 1, 2),
    (1, 1, 1, 2, 2),
    (1, 1, 1, 1, 2, 2),
    (0,),
    (2, 0),
]
CODES = [
    ">f4",
    "<f4",
    "<i4",
    ">i4",
    "f8",
    "f2",
    ">f2",
    "i8",
    "u4",
    "?",
    "i1",
    "c8",
    "V4",
    "S4",
    "m8[s]",
]
"""Not uint16: those are the bits of bf16, where a program for bf16 has been compiled."""
MUTATIONS = st.one_of(
    st.tuples(st.just("dtype"), st.sampled_from(CODES)),
    st.tuples(st.just("shape"), st.sampled_from(SHAPES)),
    st.tuples(st.just("strides"), st.lists(st.sampled_from([-4, 0, 4, 8, 12, 1, 24]), max_size=3)),
    st.tuples(st.just("writeable"), st.booleans()),
    st.tuples(st.just("aligned"), st.booleans()),
    st.tuples(st.just("byteswap"), st.none()),
    st.tuples(st.just("resize"), st.sampled_from(SHAPES)),
    st.tuples(st.just("fill"), st.integers(0, 100)),
)
VICTIMS = ["array", "tensor", "as array", "result", "owner of the result"]


def mutate(array: Any, kind: str, value: Any) -> None:
    """In place, where NumPy allows it."""
    with warnings.catch_warnings(), suppress(ValueError, TypeError, AttributeError):
        warnings.simplefilter("ignore")
        match kind:
            case "dtype" | "shape" | "strides":
                setattr(array, kind, value)
            case "writeable":
                array.flags.writeable = value
            case "aligned":
                array.setflags(align=value)
            case "byteswap":
                array.byteswap(inplace=True)
            case "resize":
                array.resize(value)
            case _:
                array.fill(value)


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(array.dtype.newbyteorder("="))


@given(
    st.sampled_from([shape for shape in SHAPES if len(shape) < len(RANKED)]),
    st.sampled_from(["f4", "i4", "f8", "f2", "?", ">f4"]),
    st.lists(st.tuples(st.sampled_from(VICTIMS), MUTATIONS), max_size=6),
)
def test_arrays_that_are_changed_between_calls(
    shape: tuple[int, ...], code: str, steps: list[tuple[str, tuple[str, Any]]]
) -> None:
    """A tensor stays what it is, and an array is taken for what it is now, or refused in words."""
    array = np.ones(shape, code)
    tensor = RANKED[len(shape)](array)
    dtype = tensor.dtype
    result = unchanged(tensor)
    views = {"tensor": tensor.numpy(), "as array": np.asarray(tensor), "result": result.numpy()}
    arrays = {"array": array, **views, "owner of the result": views["result"].base}
    for victim, (kind, value) in steps:
        mutate(arrays[victim], kind, value)
        assert (tensor.shape, tensor.dtype) == (shape, dtype)
        assert same_bits(unchanged(tensor).numpy(), np.asarray(tensor))
        for given_array in arrays.values():
            expected = native(given_array)
            if given_array.ndim < len(RANKED) and expected.dtype.char in "f?ldelbiq":
                assert same_bits(unchanged(given_array).numpy(), expected)
            else:
                with pytest.raises((nk.DTypeError, nk.RankError)):
                    unchanged(given_array)
        try:  # its own array may have been changed, by whoever looked for it
            assert same_bits(unchanged(result).numpy(), native(views["result"].base))
        except (nk.DTypeError, nk.RankError):
            assert result._array.ndim > 4 or result._array.dtype.char not in "f?ldelbiq"


unchanged = staged(lambda x: x)


def test_assigning_to_what_a_tensor_gives_changes_no_tensor() -> None:
    tensor = Tensor1D(ones(4))
    for look in (tensor.numpy, lambda: np.asarray(tensor), lambda: np.asarray(tensor, copy=None)):
        for name, value in (("dtype", ">f4"), ("shape", (2, 2))):
            with warnings.catch_warnings():  # NumPy 2.5 would rather have views
                warnings.simplefilter("ignore", DeprecationWarning)
                setattr(look(), name, value)
            assert values(importable(tensor)) == [2.0] * 4
            assert (tensor.shape, tensor.dtype) == ((4,), f32)


def test_values_that_are_never_as_they_should_be_are_dispatched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with a conversion, a call ends: as this one, which is never done."""
    f = staged(lambda x: x * 2.0)
    real = StagedFunction._values

    def endless(self: StagedFunction, arguments: Any, *, specs: bool = False) -> list[Any]:
        found = real(self, arguments, specs=specs)
        return [Odd(value.numpy()) for value in found]

    class Odd(Tensor1D):
        """A class of the user's, which native code does not take."""

    assert values(f(ones(3))) == [2.0] * 3
    monkeypatch.setattr(StagedFunction, "_values", endless)
    for _ in range(2):
        with pytest.raises(nk.InternalError, match="types and shapes it was compiled for"):
            f(ones(3)[::-1])
    monkeypatch.undo()
    assert values(f(ones(3)[::-1])) == [2.0] * 3


def test_results_are_not_overwritten_by_later_calls() -> None:
    kept = [importable(ones(3) * k) for k in range(6)]
    assert [values(result)[0] for result in kept] == [1, 2, 3, 4, 5, 6]


def test_an_argument_can_be_returned_and_stays_apart() -> None:
    f = staged(lambda x: (x, x))
    array = ones(2)
    first, second = f(array)
    array[:] = 5.0
    assert values(first) == values(second) == [1.0, 1.0]


def test_mixed_calls_make_constants() -> None:
    f = staged(lambda x, y: x + y)
    g = staged(lambda x: f(x, np.array([10.0], np.float32)) + f(Tensor1D(ones(1)), x))
    assert values(g(ones(1))) == [13.0]


# -------------------------------------------------------------------------------------- looking at the program


def test_every_stage_can_be_printed() -> None:
    @staged
    def f(x: Rep[F2], p: Rep[Layer]) -> Rep[F2]:
        return nk.tanh(x @ p[Layer.w] + p[Layer.b])

    arguments = (spec((4, 2), f32), layer())
    stages = {
        stage: f.ir(*arguments, stage=stage)
        for stage in ("raw", "optimizable", "optimized", "compute", "schedule")
    }
    assert len(set(stages.values())) == 5
    assert "tanh" in stages["raw"] and "$Layer" in stages["raw"]
    assert stages["optimized"].count("$Layer") <= 1 and "nest" in stages["compute"]
    assert "define" in f.llvm(*arguments)
    assert "ret" in f.asm(*arguments)
    assert f.ir(*arguments) == f.ir(*arguments)
    assert f.ir(ones(4, 2), layer()) == stages["raw"]


def test_tuples_of_specs_stand_for_tuples_of_arrays() -> None:
    f = staged(lambda pair: pair[0] + pair[1])
    text = f.ir((spec((3,), f32), spec((3,), f32)))
    assert "<3 x f32>" in text


def test_a_staged_function_shows_its_name() -> None:
    assert repr(importable) == "<staged function importable(x)>"
    assert repr(const(ones(1))) == "<Rep of Tensor1D[f32] of shape (1,)>"


# --------------------------------------------------------------------------------- threads, copies, pickles


def test_eight_threads_call_a_new_function_at_once() -> None:
    runs: list[int] = []

    @staged
    def inner(x: Any) -> Any:
        runs.append(1)
        time.sleep(0.02)
        return x * 2.0

    @staged
    def outer(x: Any) -> Any:
        runs.append(2)
        return inner(x) + inner(x)

    barrier = threading.Barrier(8)
    found: list[Any] = []

    def work(k: int) -> None:
        barrier.wait()
        called = outer if k % 2 else inner
        found.append((k, values(called(ones(3) * k))))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(runs) == [1, 2]
    assert sorted(found) == [(k, [k * (4.0 if k % 2 else 2.0)] * 3) for k in range(8)]


def test_threads_with_different_shapes() -> None:
    f = staged(lambda x: nk.exp(x).sum() * x)
    failures: list[Any] = []

    def work(extent: int) -> None:
        for _ in range(200):
            got = values(f(np.zeros(extent, np.float32) + 1))
            if not np.allclose(got, extent * np.e):
                failures.append(got)

    threads = [threading.Thread(target=work, args=(extent,)) for extent in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures


def test_copies_are_the_function_itself() -> None:
    assert copy.copy(importable) is importable and copy.deepcopy(importable) is importable
    x = const(ones(1))
    assert copy.deepcopy(x) is x


def test_pickling_goes_by_name() -> None:
    assert pickle.loads(pickle.dumps(importable)) is importable
    with pytest.raises(nk.StagingError, match="<lambda> cannot be pickled"):
        pickle.dumps(staged(lambda x: x))
    with pytest.raises(nk.StagingError, match="a Rep cannot be pickled"):
        pickle.dumps(const(ones(1)))


# --------------------------------------------------------------------------------------------- cost of a call


def microseconds(call: Callable[[], Any], count: int = 2000) -> float:
    """The best of a few rounds, per call, of this thread's time: others may have the cores."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        for _ in range(count):
            call()
        best = min(best, time.thread_time() - start)
    return best / count * 1e6


def test_a_call_is_cheap_in_every_form() -> None:
    @staged
    def f(p: Rep[Layer], x: Rep[F2], rate: Rep[Scalar[f32]]) -> Rep[Layer]:
        return p.set(Layer.b, p[Layer.b] - (x @ p[Layer.w])[0] * rate)

    p, x, rate = layer(), Tensor2D(ones(1, 2)), f32(0.5)
    wide = Tensor2D(ones(2, 2))
    f(p, wide, rate)
    f(p, x, rate)
    array = ones(1, 2)

    def alternating() -> None:
        f(p, x, rate)
        f(p, wide, rate)

    assert microseconds(lambda: f(p, x, rate)) < 5 * PATIENCE
    assert microseconds(lambda: f(p, array, rate)) < 5 * PATIENCE
    assert microseconds(alternating) / 2 < 5 * PATIENCE
    assert microseconds(lambda: f(p, x, 0.5)) < 20 * PATIENCE


def test_more_shapes_than_are_chained_stay_cheap() -> None:
    f = staged(lambda x: x + 1.0)
    tensors = [Tensor1D(ones(extent)) for extent in range(1, 15)]
    for tensor in tensors:
        f(tensor)

    def all_of_them() -> None:
        for tensor in tensors:
            f(tensor)

    assert microseconds(all_of_them, 200) / len(tensors) < 10 * PATIENCE
