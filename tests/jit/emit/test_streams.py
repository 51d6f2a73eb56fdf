"""Rows that are written past the caches: of any size, wherever they begin, and nothing beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64
from nnkit.core.evaluate import evaluate
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.types import BOOL, F32, F64, I8, I64, DType, TensorType
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
    text = str(rows_of_slopes.ir(points, weights, stage="schedule"))
    assert "streamInto" in text
    monkeypatch.setenv("NNKIT_DISABLE", "stream")
    plain = nk.staged(lambda p, w: rows_of_slopes(p, w))
    assert "streamInto" not in str(plain.ir(points, weights, stage="schedule"))
    wanted = plain(points, weights).numpy()
    monkeypatch.delenv("NNKIT_DISABLE")
    for offset in (0, 1, 2, 7):
        memory = np.zeros(len(wanted) + 16)
        out = memory[offset : offset + len(wanted)]
        rows_of_slopes(points, weights, out=out)
        assert np.array_equal(out, wanted)
        assert not memory[:offset].any() and not memory[offset + len(wanted) :].any()
