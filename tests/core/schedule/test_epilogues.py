"""What follows a product is computed in its loops: of elements, of rows, and of rows that several axes count.

What takes long is computed of sums that are stored first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.compute import products
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Instruction, Module, Value
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import AllocateLocal, ReduceLanes, executed
from nnkit.core.kernels.row_sums import most_roundings
from nnkit.core.ops import (
    Add,
    Combinator,
    Dot,
    Exp,
    Multiply,
    Reduce,
    Square,
    Subtract,
    Tanh,
    Transpose,
)
from nnkit.core.schedule import product_plans, row_blocks, shared_loops
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, DType, TensorType
from tests.core.compute.building import arguments_for, assert_close, module_of, results
from tests.core.schedule.checked import kernels_in
from tests.rows import each

AVX512 = Target(vector_bytes=64, registers=32, fma=True)
SSE2 = Target(vector_bytes=16, registers=16, fma=False)
FAR = replace(AVX512, l1_bytes=64, l2_bytes=64)
"""Operands are packed, in blocks, whatever their size."""

Program = Callable[[Builder, Value, Value, Value], list[Value]]


@pytest.fixture(autouse=True)
def every_product_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """None goes by blocks of rows, which would come first, and no two become one."""
    monkeypatch.setenv("NNKIT_DISABLE", "merge")
    monkeypatch.setattr(products, "LEAST_PRODUCT", 1)
    monkeypatch.setattr(row_blocks, "_LEAST_SAVED", 1 << 60)


def _joined(b: Builder, by: Combinator, x: Value) -> Value:
    return b.emit(Reduce(by, (x.tensor.rank - 1,)), x)


def _turned(b: Builder, x: Value) -> Value:
    rank = x.tensor.rank
    return b.emit(Transpose((*range(rank - 2), rank - 1, rank - 2)), x)


def _distances(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    """The product is never stored."""
    far = b.emit(Subtract(), b.emit(Dot(), x, w), c)
    return [_joined(b, Combinator.ADD, b.emit(Square(), far))]


def _differences_too(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    far = b.emit(Subtract(), b.emit(Dot(), x, w), c)
    return [far, _joined(b, Combinator.ADD, b.emit(Square(), far))]


def _extremes(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    """Several reductions in one visit."""
    y = b.emit(Multiply(), b.emit(Dot(), x, w), c)
    by = Combinator.MAX, Combinator.MIN, Combinator.ADD, Combinator.MULTIPLY
    return [_joined(b, one, y) for one in by]


def _turned_layer(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    """Of a matrix that is packed."""
    z = b.emit(Tanh(), b.emit(Add(), b.emit(Dot(), x, _turned(b, w)), c))
    return [z, _joined(b, Combinator.MAX, z)]


def _long_distances(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    """What takes long, and is never stored."""
    far = b.emit(Subtract(), b.emit(Dot(), x, w), c)
    return [_joined(b, Combinator.ADD, b.emit(Exp(), b.emit(Tanh(), far)))]


def _layer(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    return [b.emit(Add(), b.emit(Dot(), x, w), c)]


def _long_layer(b: Builder, x: Value, w: Value, c: Value) -> list[Value]:
    z = b.emit(Tanh(), b.emit(Multiply(), b.emit(Dot(), x, w), c))
    return [z, b.emit(Square(), z)]


REDUCING = _distances, _differences_too, _extremes, _turned_layer, _long_distances
ELEMENTWISE = _layer, _long_layer
STAGED = _turned_layer, _long_distances, _long_layer


class Sizes(NamedTuple):
    """Of a product, batches included."""

    rows: tuple[int, ...]
    k: int
    columns: int
    shares_matrix: bool = False
    """Whether all rows are multiplied with one matrix."""


def _fused(program: Program, dtype: DType, sizes: Sizes) -> Module:
    (*batch, m), k, n, is_shared = sizes
    matrix = (n, k) if program is _turned_layer else (k, n)
    types = [TensorType((*batch, *shape), dtype) for shape in ((m, k), matrix, (m, n))]
    if is_shared:
        types[1] = TensorType(matrix, dtype)

    def build(b: Builder, *operands: Value) -> list[Value]:
        x, w, c = operands
        return program(b, x, w, c)

    module = module_of(build, *types)
    generate_compute(module)
    fuse(module)
    return module


def _is_taken(program: Program, dtype: DType, sizes: Sizes, target: Target) -> bool:
    """Whether one kernel is all of a program; it gives what the program does, or those that it has do."""
    module = _fused(program, dtype, sizes)
    arguments = arguments_for(module)
    expected = results(module, arguments)
    kernels = kernels_in(module, target)
    assert_close(expected, results(module, arguments))
    return len(kernels) == 1


@settings(max_examples=60)
@given(
    st.sampled_from(REDUCING),
    st.sampled_from((F32, F64)),
    st.sampled_from(((2,), (7,), (29,), (3, 5), (2, 3, 6))),
    st.integers(1, 9),
    st.integers(1, 11),
    st.sampled_from((AVX512, SSE2)),
)
def test_a_product_and_what_its_rows_are_reduced_to_are_one_kernel(
    program: Program, dtype: DType, rows: tuple[int, ...], k: int, vectors: int, target: Target
) -> None:
    """But for few rows of a matrix that would have to be turned, which are a nest of dot products."""
    columns = vectors * target.lanes(dtype.bytes)
    found = _is_taken(program, dtype, Sizes(rows, k, columns), target)
    assert found or (program is _turned_layer and rows[-1] < product_plans.LEAST_ROWS)


@settings(max_examples=60)
@given(
    st.sampled_from((*ELEMENTWISE, *REDUCING)),
    st.sampled_from((F32, F64)),
    st.sampled_from(((3, 5), (2, 3, 4), (4, 1), (1, 4), (2, 1, 3))),
    st.integers(1, 9),
    st.integers(2, 70),
    st.sampled_from((AVX512, SSE2)),
)
def test_rows_that_several_axes_count_are_those_of_a_matrix(
    program: Program, dtype: DType, rows: tuple[int, ...], k: int, columns: int, target: Target
) -> None:
    """Batches and steps of time, all of which are multiplied with one matrix."""
    is_whole = columns % target.lanes(dtype.bytes) == 0 and columns < 10 * 16
    found = _is_taken(program, dtype, Sizes(rows, k, columns, shares_matrix=True), target)
    assert found or 1 in rows or (program in REDUCING and not is_whole)


@settings(max_examples=60)
@given(
    st.sampled_from(STAGED),
    st.sampled_from((F32, F64)),
    st.sampled_from(((5,), (29,), (3, 5))),
    st.integers(1, 9),
    st.integers(2, 70),
    st.sampled_from((AVX512, SSE2, FAR)),
)
def test_sums_are_stored_before_what_takes_long(
    program: Program, dtype: DType, rows: tuple[int, ...], k: int, columns: int, target: Target
) -> None:
    """By any tiles, in blocks of columns, packed; and once for all rows of a tile."""
    sizes = Sizes(rows, k, columns)
    is_alone = _is_taken(program, dtype, sizes, target)
    assert is_alone or program is not _long_layer
    kernels = kernels_in(_fused(program, dtype, sizes), target)
    for kernel in kernels if is_alone else ():
        body = list(inside(kernel.regions[0].entry))
        staged = [i for i in body if isinstance(i.op, AllocateLocal)]
        assert staged
        long = sum(isinstance(i.op, Tanh) for i in body)
        assert long <= 4 * len(staged)  # widths of vectors, whatever the height of tiles


def test_with_the_switch_all_is_computed_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "merge,distribute")
    for program in STAGED:
        sizes = Sizes((29,), 5, 32)
        assert _is_taken(program, F32, sizes, AVX512)
        (kernel,) = kernels_in(_fused(program, F32, sizes), AVX512)
        assert not any(isinstance(i.op, AllocateLocal) for i in inside(kernel.regions[0].entry))


def _share_all_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_loops, "LEAST_JOB", 0.01)
    monkeypatch.setattr(shared_loops, "BLOCK", 0.01)


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    _share_all_work(monkeypatch)
    module = _fused(_differences_too, F32, Sizes((290,), 5, 32))
    (kernel,) = kernels_in(module, AVX512)
    assert any(is_loop(i) and loop_op(i).grain for _, i in executed(kernel))


def test_rows_that_are_not_whole_vectors_are_reduced_elsewhere() -> None:
    for columns in (15, 17, 33):
        assert not _is_taken(_distances, F32, Sizes((29,), 5, columns), AVX512)


@each("program, rows", [(_distances, 6), (_long_distances, 6), (_distances, 1)])
def test_sums_of_many_panels_would_round_too_often(program: Program, rows: int) -> None:
    """A number is added in each panel that comes behind it, and whenever lanes are joined."""
    taken: list[bool] = []
    for vectors in (1, 3, 16, 23, 32, 64, 128):
        sizes = Sizes((rows,), 2, 16 * vectors)
        taken.append(_is_taken(program, F32, sizes, AVX512))
        if taken[-1]:
            (kernel,) = kernels_in(_fused(program, F32, sizes), AVX512)
            sums = [x for x in inside(kernel.regions[0].entry) if is_loop(x) and _is_reduced(x)]
            panels = sum(loop_op(loop).count for loop in sums)
            lanes = max(loop.results[0].tensor.size for loop in sums)
            assert panels + math.log2(lanes) <= most_roundings(sizes.columns)
    assert taken[:3] == [True] * 3 or rows == 1
    assert not taken[-1]


def _is_reduced(loop: Instruction) -> bool:
    """Whether the lanes of what a loop gives are joined."""
    return any(isinstance(user.op, ReduceLanes) for x in loop.results for user in x.uses)


def test_columns_that_threads_share_are_not_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of columns of a matrix that is large, and one tile of rows of many columns."""
    small = replace(AVX512, l2_bytes=4096)
    assert not _is_taken(_distances, F32, Sizes((29,), 40, 128), small)
    assert _is_taken(_distances, F32, Sizes((2,), 4, 320), AVX512)
    _share_all_work(monkeypatch)
    assert not _is_taken(_distances, F32, Sizes((2,), 4, 320), AVX512)


@each("columns, joined", [(8, 1), (32, 1), (128, 1), (56, 2)])
def test_lanes_are_joined_once_for_each_width_of_panels(columns: int, joined: int) -> None:
    """Tiles of 2 vectors of 8 numbers: however many panels there are of one width, 7 vectors have two."""
    module = _fused(_distances, F64, Sizes((6,), 200, columns))
    (kernel,) = kernels_in(module, AVX512)
    assert sum(n for n, i in executed(kernel) if isinstance(i.op, ReduceLanes)) == 6 * joined


@each("special", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 5e-324])
def test_singular_numbers_come_out_as_from_numpy(special: float) -> None:
    """Zeros and infinities of both signs, NaN, overflow, and the smallest number."""
    x, w, c = np.ones((5, 1)), np.ones((1, 16)), np.ones((5, 16))
    x[2], w[0, 3] = special, -1
    with np.errstate(all="ignore"):
        y = x @ w * c
        wanted = {
            _distances: [np.square(x @ w - c).sum(1)],
            _extremes: [y.max(1), y.min(1), y.sum(1), y.prod(1)],
        }
    for program, right in wanted.items():
        module = _fused(program, F64, Sizes((5,), 1, 16))
        (_,) = kernels_in(module, AVX512)
        for found, one in zip(results(module, [x, w, c]), right, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-14)
