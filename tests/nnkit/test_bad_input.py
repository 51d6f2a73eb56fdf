"""Bad input: each kind gets its own error, or works; none crashes, hangs or gives a wrong number."""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError,
    DTypeError,
    Field,
    IndexOutOfRangeError,
    RankError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Struct,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    boolean,
    const,
    f16,
    f32,
    f64,
    gradient,
    i8,
    i32,
    spec,
    staged,
    value_and_gradient,
)  # fmt: skip

F1, F2 = Tensor1D[f32], Tensor2D[f32]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def values(result: Any) -> Any:
    return np.asarray(result).tolist()


@staged
def double(x: Rep[F2]) -> Rep[F2]:
    return x * 2.0


@staged
def scaled(x: Rep[F1], rate: Rep[Scalar[f32]]) -> Rep[F1]:
    return x * rate


# ------------------------------------------------------------------------------------------------ data


def test_ragged_data() -> None:
    with pytest.raises(ShapeError, match="ragged"):
        Tensor2D([[1.0, 2.0], [3.0]], f32)
    with pytest.raises(DTypeError, match="must be a Tensor2D"):
        double([[1.0, 2.0], [3.0]])
    ragged = np.empty(2, object)
    ragged[:] = [[1.0], [2.0, 3.0]]
    with pytest.raises(RankError):
        double(ragged)


@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 3), (1, 1, 1, 1), (1,) * 5, (1,) * 32])
def test_wrong_rank(shape: tuple[int, ...]) -> None:
    with pytest.raises(RankError, match="argument x of double must be a Tensor2D"):
        double(np.zeros(shape, np.float32))


WRONG = {
    "f64": np.zeros((2, 2)), "f16": np.zeros((2, 2), np.float16), "i32": np.zeros((2, 2), np.int32),
    "bool": np.zeros((2, 2), bool), "u8": np.zeros((2, 2), np.uint8), "i16": np.zeros((2, 2), np.int16),
    "u32": np.zeros((2, 2), np.uint32), "u64": np.zeros((2, 2), np.uint64), "complex": np.zeros((2, 2), complex),
    "object": np.zeros((2, 2), object), "text": np.array([["a", "b"]]), "bytes": np.array([[b"a"]]),
    "datetime": np.zeros((2, 2), "M8[s]"), "timedelta": np.zeros((2, 2), "m8[s]"),
    "record": np.zeros((2, 2), [("a", np.float32)]), "longdouble": np.zeros((2, 2), np.longdouble),
    "masked": np.ma.masked_array(ones(2, 2), mask=[[True, False]] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_element_type(name: str) -> None:
    with pytest.raises(DTypeError, match="argument x of double"):
        double(WRONG[name])
    if name not in ("f64", "f16", "i32", "bool"):
        with pytest.raises(DTypeError, match="argument x of <lambda>"):
            staged(lambda x: x)(WRONG[name])
        with pytest.raises(DTypeError):
            const(WRONG[name])


def test_other_things_than_arrays() -> None:
    for thing in (
        "text",
        b"bytes",
        None,
        object(),
        {1: 2},
        {1.0},
        [1.0],
        1j,
        range(3),
        print,
        np.float32,
    ):
        with pytest.raises(DTypeError, match="argument x of double must be a Tensor2D"):
            double(thing)


def test_wrong_number_of_arguments() -> None:
    for arguments in ((), (ones(1, 1),) * 2, (ones(1, 1),) * 9):
        with pytest.raises(
            StagingError, match=rf"double takes 1 argument \(x\), not {len(arguments)}"
        ):
            double(*arguments)


def test_keyword_arguments() -> None:
    double(ones(1, 1))
    with pytest.raises(StagingError, match=r"by position, not by name \(x\)"):
        double(x=ones(1, 1))
    with pytest.raises(StagingError, match="by position"):
        staged(lambda x: double(x=x))(ones(1, 1))


def test_shapes_of_nan_and_of_the_impossible() -> None:
    for shape in ((math.nan,), (math.inf, 2), (-1,), (2**63,), (2**40, 2**40), (None,)):
        with pytest.raises(ShapeError):
            spec(shape, f32)
    with pytest.raises(ShapeError, match="larger than the address space"):
        double.ir(spec((2**62, 2**62), f32))


def test_results_too_large_for_memory_fail_before_they_are_filled() -> None:
    huge = staged(lambda x: nk.broadcast_to(x, (1 << 44,)))
    with pytest.raises((MemoryError, ShapeError)):
        huge(ones(1))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_tensors(shape: tuple[int, int]) -> None:
    result = double(ones(*shape))
    assert result.shape == shape
    d = gradient(of=double, wrt=0)(ones(*shape))
    assert d.shape == shape
    product = staged(lambda x, y: x @ y)(ones(2, 0), ones(0, 3))
    assert values(product) == [[0.0] * 3] * 2
    dx, dy = gradient(of=staged(lambda x, y: x @ y), wrt=(0, 1))(ones(2, 0), ones(0, 3))
    assert dx.shape == (2, 0) and dy.shape == (0, 3)


def test_empty_axes_in_every_kind_of_function() -> None:
    @staged
    def many(x: Any) -> Any:
        return (
            nk.softmax(x), nk.cumsum(x, 1), nk.concat([x, x], axis=0), nk.pad(x, [(1, 0), (0, 0)]), x.T, x[:, :0],
            nk.flip(x, 0), nk.stack([x, x]), x.reshape(0), nk.one_hot(x.cast(i32), 2, f32), nk.layer_norm(x.T),
        )  # fmt: skip

    shapes = [tuple(result.shape) for result in many(ones(0, 3))]
    assert shapes == [
        (0, 3),
        (0, 3),
        (0, 3),
        (1, 3),
        (3, 0),
        (0, 0),
        (0, 3),
        (2, 0, 3),
        (0,),
        (0, 3, 2),
        (3, 0),
    ]
    taken = staged(nk.take)(ones(3), np.zeros(0, np.int64))
    assert taken.shape == (0,)


def test_arrays_of_every_layout() -> None:
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    misaligned = np.zeros(base.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(3, 4)
    misaligned[...] = base
    read_only = base.copy()
    read_only.setflags(write=False)
    layouts = {
        "transposed": np.ascontiguousarray(base.T).T, "strided": np.repeat(base, 2, 1)[:, ::2],
        "negative": base[::-1].copy()[::-1],
        "Fortran": np.asfortranarray(base), "read-only": read_only, "byte-swapped": base.astype(">f4"),
        "misaligned": misaligned, "broadcast": np.broadcast_to(base, (3, 4)), "view": base.view(),
    }  # fmt: skip
    for name, array in layouts.items():
        np.testing.assert_array_equal(np.asarray(double(array)), base * 2, err_msg=name)
    row = np.broadcast_to(base[0], (3, 4))
    np.testing.assert_array_equal(np.asarray(double(row)), row * 2)


def test_arrays_of_rank_zero() -> None:
    f = staged(lambda x: x + 1.0)
    for zero in (
        np.array(1.0, np.float32),
        np.float32(1.0),
        f32(1.0),
        Tensor0D(np.array(1.0, np.float32)),
    ):
        assert float(f(zero)) == 2.0
    assert float(f(np.array(1.0, ">f4"))) == 2.0


def test_python_scalars_out_of_range() -> None:
    for number, dtype in ((300, np.int8), (-129, np.int8), (2**31, np.int32), (2**63, np.int64), (1e39, np.float32),
                          (-1e5, np.float16), (10**400, np.float64)):  # fmt: skip
        with pytest.raises(DTypeError, match="out of range"):
            staged(lambda x, n=number: x + n)(np.zeros(2, dtype))
    for dtype, number in ((i8, 128), (i32, -(2**31) - 1), (f16, 1e6), (f32, 1e300)):
        with pytest.raises(DTypeError, match="out of range"):
            dtype(number)
    with pytest.raises(
        DTypeError, match=r"argument rate of scaled: 1e\+300 is out of range of f32"
    ):
        scaled(ones(2), 1e300)
    with pytest.raises(DTypeError, match="argument rate of scaled"):
        scaled(ones(2), 10**400)
    assert values(scaled(ones(1), math.inf)) == [math.inf]
    assert math.isnan(values(scaled(ones(1), math.nan))[0])
    largest = staged(lambda x: x + 3.4028234e38)(np.zeros(1, np.float32))
    assert values(largest) == [float(np.finfo(np.float32).max)]


def test_subclasses_of_arrays(tmp_path: Any) -> None:
    class Mine(np.ndarray):
        pass

    assert values(double(ones(1, 2).view(Mine))) == [[2.0, 2.0]]
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(ones(1, 2))
    assert values(double(matrix)) == [[2.0, 2.0]]
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(1, 2))
    assert values(double(mapped)) == [[0.0, 0.0]]
    assert type(double(mapped)) is Tensor2D


# ------------------------------------------------------------------------------------------- gradients


@staged
def count(n: Rep[Tensor1D[i32]]) -> Rep[Scalar[i32]]:
    return n.sum()


def test_wrt_out_of_range_or_duplicated() -> None:
    for wrt in (1, -1, (0, 1), (0, 0), ()):
        with pytest.raises(DifferentiationError):
            gradient(of=double, wrt=wrt)


def test_the_gradient_of_a_function_of_integers() -> None:
    with pytest.raises(DifferentiationError, match="only floats have derivatives"):
        gradient(of=count, wrt=0)
    with pytest.raises(DifferentiationError, match="only floats have derivatives"):
        gradient(of=staged(lambda n: n.sum()), wrt=0)(np.arange(3))
    with pytest.raises(DifferentiationError, match="only floats have derivatives"):
        gradient(of=staged(lambda b: nk.select(b, 1.0, nk.zeros((2,), f32))), wrt=0)(
            np.array([True, False])
        )


def test_what_has_no_derivative_has_none_silently_only_where_it_is_zero() -> None:
    steps = staged(lambda x: nk.floor(x) + nk.sign(x) + (x > 0.0).cast(f32))
    assert values(gradient(of=steps, wrt=0)(ones(2))) == [0.0, 0.0]


def test_a_seed_of_another_shape_is_refused() -> None:
    seeded = gradient(of=double, wrt=0, seedable=True)
    for shape in ((2, 2), (3, 2), (2, 4), (0, 3)):
        with pytest.raises(
            ShapeError, match=r"the seed of double_grad is f32\[2, 3\], like the result"
        ):
            seeded(ones(2, 3), ones(*shape))
    with pytest.raises(ShapeError, match="the seed of double_grad") as caught:
        staged(lambda x, s: seeded(x, s))(ones(2, 3), ones(2, 2))
    assert "seeded(x, s)" in str(caught.value)


# ---------------------------------------------------------------------------------------------- staging


def test_what_is_returned_must_be_staged() -> None:
    for thing in (None, 3, 1.0, "text", ones(2), Tensor1D(ones(2)), [], (), {}, object(), print):
        with pytest.raises(StagingError, match="not a Rep or a tuple of Reps"):
            staged(lambda x, thing=thing: thing)(ones(2))


def test_reps_of_two_traces() -> None:
    kept: list[Any] = []

    @staged
    def first(x: Any) -> Any:
        kept.append(x + 1.0)
        return x

    first(ones(2))
    for use in (
        lambda x: x + kept[0],
        lambda x: kept[0],
        lambda x: (x, kept[0]),
        lambda x: first(kept[0]),
    ):
        with pytest.raises(StagingError, match="a Rep of first is used outside of it"):
            staged(use)(ones(2))
    with pytest.raises(StagingError, match="a Rep of first is used outside of it"):
        first(kept[0])
    with pytest.raises(StagingError, match="has no value"):
        kept[0].eval()


def test_reps_of_another_thread() -> None:
    kept: list[Any] = []
    failures: list[Any] = []

    @staged
    def first(x: Any) -> Any:
        def other() -> None:
            try:
                kept.append(x + 1.0)
            except StagingError as error:
                failures.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        return x

    first(ones(2))
    assert not kept and "a Rep of first is used outside of it" in str(failures[0])


def test_recursion_at_staging() -> None:
    @staged
    def endless(x: Any) -> Any:
        return endless(x)

    @staged
    def ping(x: Any) -> Any:
        return pong(x) + 1.0

    @staged
    def pong(x: Any) -> Any:
        return ping(x) + 1.0

    @staged
    def growing(x: Any) -> Any:
        return growing(nk.tup(x, x))

    for function in (endless, ping, pong):
        with pytest.raises(StagingError, match="calls itself while it is staged"):
            function(ones(2))
    with pytest.raises(StagingError, match="recursion of growing is too deep: 5,000 calls"):
        growing(ones(2))
    with pytest.raises(StagingError, match="functions are nested more than 5,000 deep") as caught:
        anew(ones(2))
    assert "5,000 of them are made here; if each makes the next one" in caught.value.__notes__[-1]


def anew(x: Any) -> Any:
    """A recursion that makes a new staged function at every step."""
    return staged(lambda y: anew(y))(x)


def test_recursion_that_a_python_condition_ends_is_unrolled() -> None:
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * staged(lambda y: power(y, n - 1))(x)

    assert values(staged(lambda x: power(x, 5))(ones(1) * 2)) == [32.0]


CONTROL = {
    "if": lambda x: x if x else -x, "while": lambda x: [None for _ in iter(lambda: bool(x), False)],
    "and": lambda x: x and x,
    "or": lambda x: x or x, "not": lambda x: not x, "for": lambda x: [-y for y in x], "unpacking": lambda x: [*x],
    "len": lambda x: len(x), "float": lambda x: float(x), "int": lambda x: int(x), "in": lambda x: 1.0 in x,
    "range": lambda x: range(x), "sorted": lambda x: sorted(x), "max": lambda x: max(x), "sum": lambda x: sum(x),
    "min of two": lambda x: min(x, x * 2.0), "all": lambda x: all(x), "np.exp": lambda x: np.exp(x),
    "np.dot": lambda x: np.dot(x, x),
    "np.array": lambda x: np.array(x), "np.mean": lambda x: np.mean(x), "np.where": lambda x: np.where(x > 0.0, x, x),
    "np.maximum": lambda x: np.maximum(x, x), "np.zeros_like": lambda x: np.zeros_like(x),
    "math.sin": lambda x: math.sin(x),
    "list index": lambda x: [1, 2][x], "chained comparison": lambda x: 0.0 < x < 1.0,
    "np.add": lambda x: np.add(x, 1.0),
    "np.add out": lambda x: np.add(ones(2), x, out=ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROL)
def test_a_rep_where_python_needs_a_value(name: str) -> None:
    with pytest.raises(StagingError) as caught:
        staged(CONTROL[name])(ones(2))
    assert "test_bad_input.py" in str(caught.value)
    assert "help: " in "".join(caught.value.__notes__)


def test_calling_with_a_rep_outside_of_a_trace() -> None:
    result = double(const(ones(1, 1)))
    assert isinstance(result, Rep) and values(result.eval()) == [[2.0]]


def test_reps_and_concrete_values_in_one_call() -> None:
    assert values(scaled(const(ones(1)), f32(2.0)).eval()) == [2.0]
    assert values(staged(lambda x: scaled(x, np.float32(3.0)))(ones(1))) == [3.0]
    with pytest.raises(DTypeError, match="argument rate"):
        staged(lambda x: scaled(x, [1.0]))(ones(1))


def test_an_index_out_of_range_at_run_time() -> None:
    take = staged(lambda x, i: nk.take(x, i))
    for index in (3, -4, 2**31 - 1, -(2**31)):
        with pytest.raises(
            IndexOutOfRangeError, match=f"index {index} is out of range for an axis of extent 3"
        ):
            take(ones(3), np.array([0, index], np.int32))
    with pytest.raises(IndexError):
        take(ones(3), np.array([3], np.int32))
    assert values(take(ones(3), np.array([0, -1], np.int32))) == [1.0, 1.0]
    with pytest.raises(IndexOutOfRangeError):
        gradient(of=take, wrt=0)(ones(3), np.array([7], np.int32))


def test_structs_with_changed_arrays() -> None:
    class Params(Struct):
        w: Field[Tensor1D[f32]]

    array = np.ones(4, np.float32)
    p = Params(array)
    step = nk.fn(Params)(lambda p: p[Params.w] * 2.0)
    step(p)
    reshape(array)
    assert values(step(p)) == [2.0] * 4
    reshape(p.w._array)  # what nobody but the tensor has
    with pytest.raises(
        DTypeError, match="argument p of <lambda> must be a Params, and is a Params"
    ):
        step(p)


def test_tensors_whose_array_was_changed_in_place() -> None:
    array = np.ones(4, np.float32)
    tensor = Tensor1D(array)
    f = staged(lambda x: x * 2.0)
    f(tensor)
    reshape(array)
    assert values(f(tensor)) == [2.0] * 4
    reshape(tensor._array)
    assert values(f(tensor)) == [[2.0, 2.0], [2.0, 2.0]]


def reshape(array: Any) -> None:
    """In place, which NumPy will not allow for ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape = (2, 2)


def test_logic_of_numbers_and_arithmetic_of_truth_values() -> None:
    for body in (lambda x: x & x, lambda x: ~x, lambda x: x ^ x, lambda x: x.any()):
        with pytest.raises(DTypeError):
            staged(body)(ones(2))
    for body in (
        lambda b: b + b,
        lambda b: -b,
        lambda b: b.sum(),
        lambda b: b < b,
        lambda b: nk.exp(b),
        lambda b: b @ b,
    ):
        with pytest.raises(DTypeError):
            staged(body)(np.array([True]))
    assert staged(lambda b: b == b)(np.array([True])).dtype is boolean


def test_value_and_gradient_needs_a_scalar() -> None:
    with pytest.raises(DifferentiationError, match="needs a scalar result"):
        value_and_gradient(of=double, wrt=0)
    with pytest.raises(DifferentiationError, match="needs a scalar result"):
        value_and_gradient(of=staged(lambda x: (x.sum(), x.sum())), wrt=0)(np.ones(2))


def test_nan_and_infinity_pass_through() -> None:
    x = np.array([[math.nan, math.inf, -math.inf]], np.float32)
    np.testing.assert_array_equal(np.asarray(double(x)), x * 2)
    assert math.isnan(float(staged(lambda x: x.sum())(x)))
    assert staged(lambda x: x.cast(f64))(x).dtype is f64
