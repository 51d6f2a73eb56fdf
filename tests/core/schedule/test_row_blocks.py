"""Products and the nests over their rows go by blocks of rows, and what is local to a block is never stored whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor3D, f32
from nnkit.core.compute import products
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Instruction, Value
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.dependence import require_independent
from nnkit.core.kernels.loops import is_loop, loop_op
from nnkit.core.kernels.ops import Kernel, executed
from nnkit.core.ops import (
    Add,
    Combinator,
    Divide,
    Dot,
    Exp,
    Multiply,
    PadShape,
    Reduce,
    ShapeCast,
    Subtract,
    Transpose,
)
from nnkit.core.schedule import long_sums, row_blocks
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, F64, DType, TensorType
from nnkit.core.verify import verify
from nnkit.jit.llvm import optimization_level
from tests.core.compute.building import arguments_for, assert_close, module_of, results
from tests.rows import each

TARGET = Target(vector_bytes=64, registers=32, fma=True, l2_bytes=20000)


@pytest.fixture(autouse=True)
def anything_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "_LEAST_SAVED", 1)
    monkeypatch.setattr(row_blocks, "LEAST_JOB", 0.01)
    monkeypatch.setattr(products, "LEAST_PRODUCT", 1)


def _turned(b: Builder, x: Value) -> Value:
    rank = x.tensor.rank
    return b.emit(Transpose((*range(rank - 2), rank - 1, rank - 2)), x)


def _joined(b: Builder, by: Combinator, x: Value) -> Value:
    axis = x.tensor.rank - 1
    return b.emit(PadShape(axis), b.emit(Reduce(by, (axis,)), x))


def _softmax(b: Builder, x: Value) -> Value:
    e = b.emit(Exp(), b.emit(Subtract(), x, _joined(b, Combinator.MAX, x)))
    return b.emit(Divide(), e, _joined(b, Combinator.ADD, e))


def _attention(b: Builder, q: Value, k: Value, v: Value) -> Value:
    return b.emit(Dot(), _softmax(b, b.emit(Dot(), q, _turned(b, k))), v)


def _attention_gradient(b: Builder, q: Value, k: Value, v: Value, seed: Value) -> list[Value]:
    p = _softmax(b, b.emit(Dot(), q, _turned(b, k)))
    dp = b.emit(Dot(), seed, _turned(b, v))
    mean = _joined(b, Combinator.ADD, b.emit(Multiply(), dp, p))
    ds = b.emit(Multiply(), p, b.emit(Subtract(), dp, mean))
    dq, dk = b.emit(Dot(), ds, k), b.emit(Dot(), _turned(b, ds), q)
    return [dq, dk, b.emit(Dot(), _turned(b, p), seed)]


def _normalized_product(b: Builder, x: Value, w: Value) -> list[Value]:
    """Layer norm without its constants, and what it divides by."""
    y = b.emit(Dot(), x, w)
    c = b.emit(Subtract(), y, _joined(b, Combinator.ADD, y))
    square = _joined(b, Combinator.ADD, b.emit(Multiply(), c, c))
    return [b.emit(Divide(), c, square), square]


def _gradient_by_weights(b: Builder, x: Value, w: Value, seed: Value) -> Value:
    """A product over rows whose right operand is local."""
    y = _softmax(b, b.emit(Dot(), x, w))
    return b.emit(Dot(), _turned(b, x), b.emit(Multiply(), y, seed))


def _kept_weights(b: Builder, q: Value, k: Value, v: Value) -> list[Value]:
    p = _softmax(b, b.emit(Dot(), q, _turned(b, k)))
    return [b.emit(Dot(), p, v), p]


def _softmax_then_product(b: Builder, x: Value, w: Value) -> Value:
    return b.emit(Dot(), _softmax(b, b.emit(Add(), x, x)), w)


def _late_values(b: Builder, x: Value, w: Value, u: Value) -> Value:
    """What the second product reads is made last."""
    p = _softmax(b, b.emit(Dot(), x, w))
    values = b.emit(ShapeCast((32, 2)), b.emit(Exp(), u))
    return b.emit(Dot(), p, values)


def _least_of_rows(b: Builder, x: Value, y: Value, h: Value) -> Value:
    """One reduction, behind which nothing reads the rows."""
    far = b.emit(Subtract(), h, b.emit(Dot(), x, _turned(b, y)))
    return b.emit(Reduce(Combinator.MIN, (1,)), far)


def _types(dtype: DType, *shapes: Sequence[int]) -> list[TensorType]:
    return [TensorType(tuple(shape), dtype) for shape in shapes]


def scheduled(
    build: Callable[..., Value | Sequence[Value]], types: Sequence[TensorType]
) -> list[Instruction]:
    """The kernels of a program, whose results are those of the program as it was."""
    module = module_of(build, *types)
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    fuse(module)
    schedule(module, TARGET)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    kernels = [i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel)]
    for kernel in kernels:
        assert not list(accesses_outside(kernel.regions[0].entry))
        for _, one in executed(kernel):
            if is_loop(one) and loop_op(one).grain:
                require_independent(one)
    assert_close(expected, results(module, arguments))
    return kernels


@each(
    ("build", "types"),
    [
        (_attention, _types(F32, (16, 3), (33, 3), (33, 5))),
        (_attention, _types(F64, (4, 9, 2), (4, 32, 2), (4, 32, 2))),
        (_attention, _types(F32, (1, 2, 8, 2), (1, 2, 32, 2), (1, 2, 32, 2))),
        (_attention, _types(F32, (2, 1, 9, 2), (1, 1, 32, 2), (1, 1, 32, 2))),
        # operands that all matrices of the batch share, or some
        (_attention, _types(F32, (9, 2), (3, 32, 2), (3, 32, 2))),
        (_attention, _types(F32, (9, 2), (3, 32, 2), (32, 2))),
        (_attention, _types(F32, (3, 1, 9, 2), (3, 2, 32, 2), (2, 32, 2))),
        (_attention, _types(F32, (2, 9, 2), (3, 2, 32, 2), (3, 1, 32, 2))),
        (_attention, _types(F32, (2, 1, 9, 2), (2, 2, 32, 2), (2, 2, 32, 2))),
        (_attention_gradient, _types(F32, *[(4, 32, 3)] * 4)),
        (_attention_gradient, _types(F64, *[(36, 2)] * 4)),
        (_normalized_product, _types(F32, (2, 9, 2), (2, 33))),
        (_gradient_by_weights, _types(F32, (33, 2), (2, 32), (33, 32))),
        (_kept_weights, _types(F32, (9, 2), (32, 2), (32, 3))),
        (_softmax_then_product, _types(F32, (20, 32), (32, 3))),
        (_late_values, _types(F32, (9, 2), (2, 32), (2, 32))),
        (_least_of_rows, _types(F32, (20, 3), (33, 3), (33,))),
        (_least_of_rows, _types(F64, (16, 3), (40, 3), (40,))),
    ],
)
def test_one_kernel_gives_the_same(build: Callable[..., Any], types: Sequence[TensorType]) -> None:
    ops = [kernel.op for kernel in scheduled(build, types)]
    # what is before is no product, and has no buffers of its own
    assert [isinstance(op, Kernel) and bool(op.using) for op in ops] == [False] * (len(ops) - 1) + [
        True
    ]
    assert len(ops) <= 1 + (build is _late_values)


def _two_readers(b: Builder, x: Value, w: Value) -> list[Value]:
    y = b.emit(Dot(), x, w)
    return [_softmax(b, y), b.emit(Dot(), y, _turned(b, w))]


def _of_its_columns(b: Builder, x: Value, w: Value) -> Value:
    return _softmax(b, _turned(b, b.emit(Dot(), x, w)))


@each(
    ("build", "types"),
    [
        (_two_readers, _types(F32, (33, 2), (2, 32))),
        (_of_its_columns, _types(F32, (33, 2), (2, 32))),
        # all matrices of the batch share what a product over rows reads
        (_attention_gradient, _types(F32, (32, 3), *[(4, 32, 3)] * 3)),
        (_attention_gradient, _types(F32, (32, 3), *[(4, 32, 3)] * 2, (32, 3))),
    ],
)
def test_what_others_read_as_well_is_stored(
    build: Callable[..., Any], types: Sequence[TensorType]
) -> None:
    assert len(scheduled(build, types)) > 1


@nk.staged
def attention(
    q: Rep[Tensor3D[f32]], k: Rep[Tensor3D[f32]], v: Rep[Tensor3D[f32]]
) -> Rep[Tensor3D[f32]]:
    return nk.softmax(q @ k.transpose(0, 2, 1), axis=2) @ v


@pytest.mark.parametrize("longest", [long_sums.LONG, 100])
def test_attention_needs_no_room_for_all_scores(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 positions, which no tile or block divides, in four matrices; also where that is a long sum."""
    monkeypatch.setattr(long_sums, "LONG", longest)
    monkeypatch.setattr(long_sums, "LEAST_PART", 64)
    slope = nk.gradient(of=attention, wrt=(0, 1, 2), seedable=True, keeping=(0,))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(4, 300, 20)).astype(np.float32) for _ in range(4)]
    tensors = [Tensor3D(array) for array in arrays]
    scores = 4 * 300 * 300 * 4
    dq, dk, dv, y = slope(tensors[0], tensors[1], tensors[2], tensors[3])
    if optimization_level(""):  # at -O0 nothing is joined
        assert slope.memory_analysis(*tensors).peak_bytes < scores
    q, k, v, seed = arrays
    e = np.exp(q.astype(np.float64) @ k.transpose(0, 2, 1))
    p = e / e.sum(2, keepdims=True)
    dp = seed @ v.transpose(0, 2, 1)
    ds = p * (dp - (dp * p).sum(2, keepdims=True))
    wanted = ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ seed, p @ v
    for found, right in zip((dq, dk, dv, y), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-4, atol=1e-4)
