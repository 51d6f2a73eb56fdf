"""What makes an operand of a product is computed where that is loaded, and gives the same bits as stored first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Stage, Value, finish_function, start_function
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.ops import (
    Add,
    DataTypeCast,
    Dot,
    LessThan,
    Maximum,
    Multiply,
    Return,
    Select,
    Slice,
    Tanh,
    Transpose,
    splat,
)
from nnkit.core.schedule import product_plans, shared_loops
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F16, F32, F64, I8, TensorType
from tests.values import same_bits

from .running import run
from .test_kernels import scheduled

MACHINES = (
    Target(vector_bytes=64, registers=32, fma=True, l1_bytes=64, l2_bytes=64, threads=3),
    Target(vector_bytes=32, registers=16, fma=True, l1_bytes=64, l2_bytes=64),
)
"""So small that all operands are large, and packed in blocks."""

Make = Callable[[Builder, Value], Value]


def bent(b: Builder, x: Value) -> Value:
    """tanh, and where that is less than x + 1/2 its square."""
    y = b.emit(Tanh(), x)
    less = b.emit(LessThan(), y, b.emit(Add(), x, b.emit(splat(x.tensor, 0.5))))
    return b.emit(Select(), b.emit(Multiply(), y, y), y, less)


def times_first(axis: int) -> Make:
    """Times the first row, or the first column."""

    def make(b: Builder, x: Value) -> Value:
        stop = tuple(1 if a == axis else extent for a, extent in enumerate(x.tensor.shape))
        first = b.emit(Slice((0,) * x.tensor.rank, stop), x)
        return b.emit(Multiply(), b.emit(Maximum(), x, b.emit(splat(x.tensor, -0.5))), first)

    return make


def wider(b: Builder, x: Value) -> Value:
    """A quarter, in f32, of what is stored narrower."""
    y = b.emit(DataTypeCast(F32), x)
    return b.emit(Multiply(), y, b.emit(splat(y.tensor, 0.25)))


MAKES: tuple[Make, ...] = (bent, times_first(0), times_first(1), wider)


def transpose(b: Builder, x: Value) -> Value:
    return b.emit(Transpose((1, 0)), x)


def random_product(random: np.random.Generator) -> tuple[Module, int]:
    """A product, and how many of its operands have a prologue; they are transposed before and behind it, or not."""
    m, k, n = (int(x) for x in random.choice([1, 4, 7, 16, 33, 40, 64, 131], 3))
    dtype = F32 if random.integers(3) else F64
    types: list[TensorType] = []
    makes: list[tuple[Make | None, bool, bool]] = []
    for rows, columns in ((m, k), (k, n)):
        make = MAKES[random.integers(len(MAKES))] if random.integers(4) else None
        before, behind = (bool(random.integers(2)) for _ in range(2))
        stored = dtype
        if make is wider:
            stored, dtype = (I8, F16)[random.integers(2)], F32
        types.append(TensorType((columns, rows) if before != behind else (rows, columns), stored))
        makes.append((make, before, behind))
    types = [x.with_dtype(dtype) if x.dtype.is_float and x.dtype is not F16 else x for x in types]
    b = start_function(types)
    operands: list[Value] = []
    for x, (make, before, behind) in zip(b.block.arguments, makes, strict=True):
        y = transpose(b, x) if before else x
        y = make(b, y) if make is not None else y
        operands.append(transpose(b, y) if behind else y)
    y = b.emit(Dot(), *operands)
    b.emit_many(Return(), [y])
    module = Module(stage=Stage.OPTIMIZED)
    module.add(finish_function("main", b, y.type))
    return module, sum(make is not None for make, _, _ in makes)


def arguments_for(module: Module, random: np.random.Generator) -> list[np.ndarray]:
    """Numbers for each parameter, small ones of integers."""
    types = [parameter.tensor for parameter in module.functions["main"].parameters]
    return [(3 * random.standard_normal(t.shape)).astype(t.dtype.numpy) for t in types]


def test_prologues_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_loops, "LEAST_JOB", 0.0)
    monkeypatch.setattr(shared_loops, "BLOCK", 1.0)
    for least in ("LEAST_PACKED", "LEAST_REUSED", "LEAST_TURNED", "BEYOND_NEAREST", "REPACKED"):
        monkeypatch.setattr(product_plans, f"_{least}", 0)
    there = inlined = 0
    for seed in range(30):
        results: list[np.ndarray] = []
        lengths: list[int] = []
        for switch in ("", "prologues"):
            monkeypatch.setenv("NNKIT_DISABLE", switch)
            random = np.random.default_rng(seed)
            module, count = random_product(random)
            arrays = arguments_for(module, random)
            wanted = evaluate(module, "main", *arrays)
            kernels = scheduled(module, MACHINES[seed % len(MACHINES)])
            text = print_module(module)
            assert print_module(parse_module(text)) == text
            for kernel in kernels:
                assert not list(accesses_outside(kernel.regions[0].entry))
            (made,) = run(module.functions["main"], arrays)
            lengths.append(len(module.functions["main"].entry.instructions))
            there += count if switch else 0
            close = 1e-3 if made.dtype == np.float32 else 1e-11  # tanh is not that of NumPy
            np.testing.assert_allclose(made, wanted, close, close, err_msg=str(seed))
            if np.size(wanted) * max(x.size for x in arrays) < 1 << 21:
                again = evaluate(module, "main", *arrays)
                np.testing.assert_allclose(made, again, close, close, err_msg=str(seed))
            results.append(made)
        inlined += lengths[1] - lengths[0]
        # a vector times a matrix that is far away is a nest, unless the kernel computes the matrix
        assert len(results[0]) == 1 or same_bits(*results), seed
    assert there > 30 and inlined > 8, (there, inlined)
