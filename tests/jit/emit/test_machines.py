"""The same kernels for machines with less than this one: 256-bit vectors without masks of their own."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Bounds, Loaded, Output
from nnkit.core.types import DType, TensorType
from nnkit.jit.llvm import Engine, host_machine

from .running import ALL_DTYPES, Decisions, compare, expected, run_all, sample, scheduled
from .test_nests_in_every_order import D0, D1, Build, access, i32, mapped, ways

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or host_machine().vector_bytes < 32,
    reason="the lesser machine is an x86-64-v3",
)


@cache
def lesser_engine() -> Engine:
    target = replace(host_machine(), cpu="x86-64-v3", features="", vector_bytes=32, scalef=False)
    return Engine(target)


def check(types: list[TensorType], build: Build, extents: tuple[int, ...]) -> None:
    """Assert that all ways agree with the evaluator."""
    functions = [scheduled(types, build, decided) for decided in ways(extents)]
    arrays = [sample(type, seed) for seed, type in enumerate(types)]
    wanted = expected(functions[0], arrays)
    for function, found in zip(functions, run_all(functions, arrays, lesser_engine()), strict=True):
        compare(function, wanted, found, exact=False)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_copies_with_tails(dtype: DType) -> None:
    type = TensorType((3, 21), dtype)
    check([type], mapped((3, 21), [access(D0, D1)], Output(type, (D0, D1))), (3, 21))


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_reads_outside(dtype: DType) -> None:
    type = TensorType((6, 19), dtype)
    read = access(D0 + -1, D1 + -2, bounds=Bounds.ZERO)
    output = Output(TensorType((7, 23), dtype), (D0, D1))
    check([type], mapped((7, 23), [read], output), (7, 23))


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_reduces(dtype: DType) -> None:
    by = Combinator.OR if dtype.kind == "boolean" else Combinator.MAX
    type = TensorType((5, 37), dtype)
    output = Output(TensorType((5,), dtype), (D0,), by)
    check([type], mapped((5, 37), [access(D0, D1)], output), (5, 37))


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_gathers(dtype: DType) -> None:
    table, type = TensorType((40,), dtype), TensorType((21,), dtype)
    for bounds in (Bounds.ZERO, Bounds.CLIP):
        reads = [access(D0), access(Loaded(0), bounds=bounds)]
        build = mapped((21,), reads, Output(type, (D0,)))
        function = scheduled([i32(21), table], build, Decisions(vector=0, lanes=8))
        picked = np.random.default_rng(0).integers(-20, 60, 21).astype(np.int32)
        arrays = [picked, sample(table)]
        (found,) = run_all([function], arrays, lesser_engine())
        compare(function, expected(function, arrays), found)
