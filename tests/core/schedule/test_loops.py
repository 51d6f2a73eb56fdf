"""Which axis becomes the vector, how many lanes, and in which order loops run."""

from __future__ import annotations

import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ops import (
    Add,
    Bounds,
    Combinator,
    DataTypeCast,
    Dot,
    Exp,
    Gather,
    Iota,
    Multiply,
    Reduce,
    ScatterAdd,
    Slice,
    Tanh,
    Transpose,
)
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.target import Target
from nnkit.core.types import BF16, F32, F64, I32, I64, TensorType
from tests.core.compute.building import f32, module_of
from tests.core.schedule.decided import decided

TARGET = Target(vector_bytes=64, l2_bytes=1 << 20)


def loops_of(module: Module, target: Target = TARGET) -> list[Loops]:
    """The scheduled nests of the module."""
    generate_compute(module)
    fuse(module)
    return decided(module, target).loops


def test_elementwise_runs_along_memory() -> None:
    (op,) = loops_of(module_of(lambda b, x: b.emit(Exp(), x), f32(8, 200)))
    assert (op.order, op.vector, op.lanes, op.accumulators) == ((0, 1), 1, 16, 1)


@pytest.mark.parametrize(
    ("dtype", "lanes"), [(F64, 8), (F32, 16), (BF16, 16), (I64, 8), (I32, 16)], ids=str
)
def test_lanes_follow_the_element_type(dtype: object, lanes: int) -> None:
    assert isinstance(dtype, type(F32))
    (op,) = loops_of(module_of(lambda b, x: b.emit(Add(), x, x), TensorType((100,), dtype)))
    assert op.lanes == lanes


def test_coordinates_do_not_narrow_the_vector() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Add(), x, b.emit(Iota((100,), 0, F32)))

    (op,) = loops_of(module_of(build, f32(100)))
    assert op.lanes == 16


def test_short_axes_get_fewer_lanes() -> None:
    (op,) = loops_of(module_of(lambda b, x, y: b.emit(Add(), x, y), f32(4, 10), f32(10)))
    assert (op.vector, op.lanes) == (1, 8)


def test_no_vectors_without_vector_registers() -> None:
    module = module_of(lambda b, x: b.emit(Exp(), x), f32(100))
    (op,) = loops_of(module, Target(vector_bytes=4))
    assert (op.vector, op.lanes) == (-1, 1)


def test_a_row_sum_is_a_vector_of_partial_sums() -> None:
    (op,) = loops_of(module_of(lambda b, x: b.emit(Reduce(Combinator.ADD, (1,)), x), f32(8, 1000)))
    assert (op.order, op.vector, op.lanes) == ((0, 1, 1), 1, 16)
    assert op.accumulators == 4


def test_short_sums_keep_a_vector_of_rows() -> None:
    """Where the rows are a vector: what reads them next need not wait for each."""
    for rows, length, vector in ((3, 3, 0), (8, 8, 1), (100, 3, 1)):
        module = module_of(
            lambda b, a, y: b.emit(Dot(), a, y),
            TensorType((rows, length), F64),
            TensorType((length,), F64),
        )
        (op,) = loops_of(module, Target(vector_bytes=64))
        assert op.vector == vector, (rows, length)


def test_an_expensive_reduction_needs_one_accumulator() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Tanh(), x))

    (op,) = loops_of(module_of(build, f32(8, 1000)))
    assert op.accumulators == 1


def test_a_column_sum_keeps_a_vector_of_columns() -> None:
    (op,) = loops_of(module_of(lambda b, x: b.emit(Reduce(Combinator.ADD, (0,)), x), f32(64, 48)))
    assert (op.order, op.vector, op.lanes) == ((1, 0, 0), 1, 16)


def test_a_large_column_sum_follows_memory() -> None:
    shape = (4096, 512)
    (op,) = loops_of(module_of(lambda b, x: b.emit(Reduce(Combinator.ADD, (0,)), x), f32(*shape)))
    assert (op.order, op.blocks, op.vector) == ((0, 1, 0), (16, 0, 0), 1)


def test_so_does_a_sum_over_a_part_of_a_large_matrix() -> None:
    def build(b: Builder, x: Value) -> Value:
        part = b.emit(Slice((1000, 0), (2000, 32)), x)
        return b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Exp(), part))

    for rows, order in ((4000, (1, 0)), (40_000, (0, 1))):
        (op,) = loops_of(module_of(build, f32(rows, 32)))
        assert tuple(dict.fromkeys(op.order)) == order


def test_a_small_product_runs_along_its_columns() -> None:
    (op,) = loops_of(module_of(lambda b, x, w: b.emit(Dot(), x, w), f32(4, 20), f32(20, 32)))
    assert (op.order, op.vector, op.lanes) == ((0, 1, 2), 1, 16)


def test_a_product_with_a_transposed_matrix_runs_along_the_sum() -> None:
    def build(b: Builder, x: Value, w: Value) -> Value:
        return b.emit(Dot(), x, b.emit(Transpose(), w))

    (op,) = loops_of(module_of(build, f32(4, 32), f32(20, 32)))
    assert (op.order, op.vector, op.lanes) == ((0, 1, 2), 2, 16)


def test_a_copy_across_memory_is_not_vectorized() -> None:
    (op,) = loops_of(module_of(lambda b, x: b.emit(Transpose(), x), f32(64, 64)))
    assert op.vector == -1


def test_a_check_per_row_allows_vectors_and_one_per_element_does_not() -> None:
    rows = module_of(lambda b, x, i: b.emit(Gather(0), x, i), f32(9, 64), TensorType((32,), I64))
    (op,) = loops_of(rows)
    assert (op.vector, op.lanes) == (1, 16)  # the index of a row does not narrow the vector
    elements = module_of(
        lambda b, x, i: b.emit(Gather(1), x, i), f32(9, 64), TensorType((32,), I64)
    )
    (op,) = loops_of(elements)
    assert op.vector != 1


def test_checked_elements_that_are_computed_with_are_vectors() -> None:
    def build(b: Builder, x: Value, i: Value) -> Value:
        return b.emit(Exp(), b.emit(Gather(0), x, i))

    (op,) = loops_of(module_of(build, f32(100), TensorType((64,), I64)))
    assert (op.vector, op.lanes) == (0, 8)


def test_rank_zero_has_no_loops() -> None:
    (op,) = loops_of(module_of(lambda b, x: b.emit(Exp(), x), f32()))
    assert (op.order, op.vector, op.lanes) == ((), -1, 1)


def test_mixed_types_take_the_widest() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        return b.emit(Multiply(), b.emit(DataTypeCast(F64), x), y)

    (op,) = loops_of(module_of(build, f32(100), TensorType((100,), F64)))
    assert op.lanes == 8


def test_short_rows_become_one_axis() -> None:
    (op,) = loops_of(module_of(lambda b, x, y: b.emit(Add(), x, y), f32(128, 10), f32(128, 10)))
    assert (op.extents, op.vector, op.lanes) == ((1280,), 0, 16)


def test_short_rows_with_a_bias_stay() -> None:
    (op,) = loops_of(module_of(lambda b, x, y: b.emit(Add(), x, y), f32(128, 10), f32(10)))
    assert op.extents == (128, 10)


def test_rows_and_columns_of_a_batch_become_one_axis() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Reduce(Combinator.ADD, (1, 2)), x)

    (op,) = loops_of(module_of(build, f32(9, 5, 6)))
    assert (op.extents, op.order, op.vector) == ((9, 30), (0, 1), 1)


def test_a_copy_is_one_walk() -> None:
    (op,) = loops_of(module_of(lambda b, x: x, f32(30, 3)))
    assert op.extents == (90,)


def test_a_scatter_writes_rows_by_vectors_and_elements_one_by_one() -> None:
    def build(b: Builder, x: Value, i: Value) -> Value:
        return b.emit(ScatterAdd((9, 64), 0, Bounds.CLIP), b.emit(Tanh(), x), i)

    (op,) = loops_of(module_of(build, f32(12, 64), TensorType((12,), I64)))  # so few are no kernel
    assert op.vector == 1

    def single(b: Builder, x: Value, i: Value) -> Value:
        return b.emit(ScatterAdd((9,), 0, Bounds.CLIP), b.emit(Tanh(), x), i)

    op, rounded = loops_of(module_of(single, f32(64), TensorType((64,), I64)))
    assert op.vector == -1
    assert rounded.vector == 0  # of sums in f64


def test_short_axes_are_inside_where_most_is_the_same_along_them() -> None:
    def build(b: Builder, x: Value, y: Value, z: Value) -> Value:
        return b.emit(Add(), b.emit(Multiply(), b.emit(Multiply(), x, y), x), z)

    shapes = f32(1, 1000), f32(1, 1000)
    (loops,) = loops_of(module_of(build, *shapes, f32(2, 1000)))
    assert (loops.order, loops.vector) == ((1, 0), 1)
    *_, loops = loops_of(module_of(build, *shapes, f32(20, 1000)))
    assert (loops.order, loops.vector) == ((0, 1), 1)
