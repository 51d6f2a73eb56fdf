"""Rows that are written past the caches: of any size, wherever they begin, and nothing beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64
from nnkit.core.evaluate import evaluate
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.schedule import stream_outputs
from nnkit.core.types import BOOL, F32, F64, I8, I64, DType, TensorType
from nnkit.jit.llvm import optimization_level
from tests.core.kernels.kernel_programs import module_of

from .running import compare, run


@given(
    st.sampled_from([F32, F64, I8, I64, BOOL]),
    st.integers(0, 300),
    st.integers(0, 70),
    st.integers(0, 70),
)
@settings(deadline=None)
def test_streams_write_what_they_should(dtype: DType, size: int, before: int, behind: int) -> None:
    whole = TensorType((before + size + behind,), dtype)
    build = KernelBuilder([whole, TensorType((size,), dtype)], [whole])
    build.copy(build.operands[0], build.outputs[0])
    build.stream(build.operands[1], build.outputs[0], IndexSum(before, {}))
    module = module_of(build)
    function = module.functions["main"]
    numbers = np.random.default_rng(size).integers(
        0, 2 if dtype == BOOL else 100, whole.size + size
    )
    old, new = np.split(numbers.astype(dtype.numpy), [whole.size])
    wanted = old.copy()
    wanted[before : before + size] = new
    assert np.array_equal(np.asarray(evaluate(module, "main", old, new)).ravel(), wanted)
    compare(function, [wanted], run(function, [old, new]))


def streams(program: Any, *arguments: Any) -> bool:
    """Whether a program has kernels that write past the caches."""
    return "streamInto" in str(program.ir(*arguments, stage="schedule"))


@nk.staged
def polar(point: Rep[Tensor1D[f64]], weight: Rep[Scalar[f64]]) -> Rep[Tensor1D[f64]]:
    x, y, z = point[0], point[1], point[2]
    radius = nk.sqrt(x * x + y * y + z * z)
    return nk.stack([weight * nk.sin(x) / radius, nk.cos(y) * radius, z * weight / (1.0 + radius)])


slopes = nk.vmap(nk.jacobian(of=polar, wrt=(0, 1)), in_axes=0)


@nk.staged
def rows_of_slopes(points: Rep[Tensor2D[f64]], weights: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    """Twelve numbers for each point, then two for each weight."""
    by_point, by_weight = slopes(points, weights).unpack()
    rows = nk.concat([by_point, by_weight.expand_dims(2)], axis=2)
    return nk.concat([rows.reshape(-1), -2.0 * weights, weights])


@pytest.mark.parametrize("count", [200_000, 190_001])
def test_jacobians_of_many(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows are written past the caches, with the same bits, wherever the output begins."""
    rng = np.random.default_rng(count)
    points, weights = Tensor2D(rng.normal(size=(count, 3))), Tensor1D(rng.normal(size=count))
    assert streams(rows_of_slopes, points, weights) or not optimization_level("")
    monkeypatch.setenv("NNKIT_DISABLE", "stream")
    plain = nk.staged(lambda p, w: rows_of_slopes(p, w))
    assert not streams(plain, points, weights)
    wanted = plain(points, weights).numpy()
    monkeypatch.delenv("NNKIT_DISABLE")
    for offset in (0, 1, 2, 7):
        memory = np.zeros(len(wanted) + 16)
        out = memory[offset : offset + len(wanted)]
        rows_of_slopes(points, weights, out=out)
        assert np.array_equal(out, wanted)
        assert not memory[:offset].any() and not memory[offset + len(wanted) :].any()


def line(x: Rep[Tensor1D[f32]], y: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return x * 1.5 + y


@given(st.integers(1024, 9000), st.integers(0, 16))
@settings(deadline=None, max_examples=12)
def test_vectors_side_by_side(size: int, offset: int) -> None:
    """Nothing beside them, wherever the output begins; and in the place of an operand the same bits."""
    rng = np.random.default_rng(size)
    arrays = [rng.normal(size=size).astype(np.float32) for _ in "xy"]
    x, y = map(Tensor1D, arrays)
    wanted = np.float32(1.5) * arrays[0].astype(np.float64) + arrays[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_outputs, "LEAST_STREAMED", 4096)
        patch.setattr(stream_outputs, "_STAGED", 512)
        program = nk.staged(line)
        assert streams(program, x, y)
        memory = np.zeros(size + 32, np.float32)
        out = memory[offset : offset + size]
        program(x, y, out=out)
        assert np.allclose(out, wanted, rtol=1e-6, atol=1e-6)
        assert not memory[:offset].any() and not memory[offset + size :].any()
        assert np.array_equal(nk.donate(program, 0)(x, y).numpy(), out)
