"""What a call gives back: values, dtypes, shapes, wrappers, records and tuples."""

from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, Node, RecordNode, Signature, TupleNode
from nnkit.jit.entry.signature import STORAGE
from tests.rows import each

from .programs import (
    Array,
    Compiler,
    Layer,
    Model,
    Tensor0D,
    Tensor2D,
    copying,
    example,
    filling,
    struct,
    tensor,
)

SHAPES = ((), (3,), (1, 10), (4, 5), (2, 1, 3), (2, 3, 4, 5), (0,), (3, 0), (1, 0, 2, 1))
MATRIX = ArrayNode("f32", (2, 3), Tensor2D)
NUMBER = ArrayNode("f64", (), Tensor0D)


@each("shape", SHAPES, ids=str)
@each("dtype", STORAGE)
def test_every_dtype_and_shape(compiler: Compiler, dtype: str, shape: tuple[int, ...]) -> None:
    leaf = ArrayNode(dtype, shape)
    program = compiler(signature := Signature((leaf,), leaf), copying(signature, [0]))
    x = example(leaf)
    for _ in range(3):
        y = program(x)
        assert type(y) is np.ndarray
        assert (y.dtype, y.shape, y.strides) == (x.dtype, x.shape, np.empty(shape, y.dtype).strides)
        assert y.flags.num == np.empty(shape, y.dtype).flags.num
        np.testing.assert_array_equal(y, x)
        assert not np.shares_memory(x, y)


def test_a_result_is_wrapped(compiler: Compiler) -> None:
    program = compiler(signature := Signature((MATRIX,), MATRIX), copying(signature, [0]))
    x = example(MATRIX)
    for argument in (x, tensor(Tensor2D, x)):
        y = program(argument)
        assert type(y) is Tensor2D
        np.testing.assert_array_equal(y.array, x)


def test_a_bare_result_of_wrapped_arguments(compiler: Compiler) -> None:
    signature = Signature((MATRIX,), ArrayNode("f32", (2, 3)))
    x = example(MATRIX)
    program = compiler(signature, copying(signature, [0]))
    np.testing.assert_array_equal(program(tensor(Tensor2D, x)), x)


def test_several_results_are_a_tuple(compiler: Compiler) -> None:
    signature = Signature((MATRIX, NUMBER), TupleNode((NUMBER, MATRIX, NUMBER)))
    program = compiler(signature, copying(signature, [1, 0, 1]))
    result: Any = program(example(MATRIX), tensor(Tensor0D, example(NUMBER)))
    first, second, third = result
    assert type(result) is tuple
    assert [type(first), type(second), type(third)] == [Tensor0D, Tensor2D, Tensor0D]
    np.testing.assert_array_equal(second.array, example(MATRIX))
    assert float(first.array) == float(third.array) == 1.0


def test_no_results_and_no_arguments(compiler: Compiler) -> None:
    signature = Signature((), TupleNode(()))
    assert compiler(signature, copying(signature, []))() == ()


def test_nested_records_and_tuples(compiler: Compiler) -> None:
    layer = RecordNode(Layer, (MATRIX, NUMBER))
    model: Node = RecordNode(Model, (layer, TupleNode((NUMBER, TupleNode(()))), layer))
    signature = Signature((model,), TupleNode((model, MATRIX, RecordNode(Layer, ()))))
    program = compiler(signature, copying(signature, [3, 4, 2, 0, 1, 3]))
    arrays = [example(leaf, seed) for seed, leaf in enumerate(signature.inputs)]
    first = struct(Layer, tensor(Tensor2D, arrays[0]), arrays[1])
    second = struct(Layer, arrays[3], tensor(Tensor0D, arrays[4]))
    given = struct(Model, first, (arrays[2], ()), second)
    result: Any = program(given)
    copied, matrix, empty = result
    assert (type(copied), type(empty), empty.fields) == (Model, Layer, ())
    front, (number, nothing), back = copied.fields
    assert (type(front), type(back), nothing) == (Layer, Layer, ())
    found: list[Any] = [*front.fields, number, *back.fields, matrix]
    classes = [Tensor2D, Tensor0D, Tensor0D, Tensor2D, Tensor0D, Tensor2D]
    assert [type(item) for item in found] == classes
    for item, source in zip(found, [3, 4, 2, 0, 1, 3], strict=True):
        np.testing.assert_array_equal(item.array, arrays[source])
    front.note = "an ordinary object"


@pytest.mark.parametrize("count", [4, 5, 40])
def test_many_arguments_and_results(compiler: Compiler, count: int) -> None:
    """In place for few, in functions for many."""
    some = [ArrayNode("i64", (index % 3 + 1,)) for index in range(count)]
    signature = Signature((*some,), TupleNode((*reversed(some),)))
    program = compiler(signature, copying(signature, [*reversed(range(count))]))
    given = [example(leaf, index) for index, leaf in enumerate(some)]
    for kept in ([program(*given) for _ in range(5)], [program(*given)]):
        for result in kept:
            for x, y in zip(reversed(given), result, strict=True):
                np.testing.assert_array_equal(x, y)
    assert isinstance(_mismatch(program, given), Exception)


def _mismatch(program: object, given: list[Array]) -> Exception | None:
    assert callable(program)
    try:
        program(*given[:-1], given[-1].astype(np.float32))
    except Exception as error:
        return error
    return None


def test_one_array_given_twice(compiler: Compiler) -> None:
    signature = Signature((MATRIX, MATRIX), TupleNode((MATRIX, MATRIX)))
    program = compiler(signature, copying(signature, [0, 1]))
    x = example(MATRIX)
    once, twice = program(x, x)
    np.testing.assert_array_equal(once.array, twice.array)
    assert not np.shares_memory(once.array, twice.array)


def test_results_do_not_share_memory(compiler: Compiler) -> None:
    outputs = TupleNode((ArrayNode("i64", (4,)),) * 3)
    program = compiler(signature := Signature((ArrayNode("i64", ()),), outputs), filling(signature))
    results = [program(np.array(number)) for number in range(8)]
    for number, result in enumerate(results):
        for item in result:
            np.testing.assert_array_equal(item, np.full(4, number))


def test_results_of_one_call_are_arguments_of_the_next(compiler: Compiler) -> None:
    program = compiler(signature := Signature((MATRIX,), MATRIX), copying(signature, [0]))
    x = example(MATRIX)
    y = program(x)
    for _ in range(10):
        y = program(y)
        np.testing.assert_array_equal(y.array, x)


def test_memory_that_cannot_be_had(compiler: Compiler) -> None:
    huge = ArrayNode("f64", (1 << 46,))
    signature = Signature((NUMBER,), TupleNode((NUMBER, huge)))
    program = compiler(signature, "define i64 @kernel(ptr, ptr, ptr, ptr) { ret i64 0 }\n")
    for _ in range(3):
        with pytest.raises(MemoryError):
            program(example(NUMBER))
