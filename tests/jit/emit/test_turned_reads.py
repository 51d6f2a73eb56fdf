"""Compiled programs read transposed operands by squares: the same numbers as NumPy's, whatever sizes leave over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Tensor2D, Tensor3D
from nnkit.core.schedule import turned_reads


def doubled(x: Any) -> Any:
    return x.T * 2


def symmetric(x: Any) -> Any:
    return x + x.T


def batch(x: Any) -> Any:
    return x.transpose(0, 2, 1) * 3


@given(
    st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    st.integers(32, 150),
    st.integers(32, 300),
)
@settings(deadline=None, max_examples=16)
def test_all_sizes(dtype: type[Any], rows: int, columns: int) -> None:
    """A matrix, a square with itself, and a batch, of numbers that are all different."""
    x = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    square = x[:, :rows] if rows <= columns else x[:columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turned_reads, "_LEAST_POINTS", 1)
        patch.setattr(turned_reads, "_MANY_BLOCKS", 2)
        assert np.array_equal(nk.staged(doubled)(Tensor2D(x)).numpy(), x.T * dtype(2))
        square = np.ascontiguousarray(square)
        assert np.array_equal(nk.staged(symmetric)(Tensor2D(square)).numpy(), square + square.T)
        both = np.stack([x, x + 1])
        turned = nk.staged(batch)(Tensor3D(both)).numpy()
        assert np.array_equal(turned, both.transpose(0, 2, 1) * dtype(3))
