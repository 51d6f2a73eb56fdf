"""Sparse matrices in compressed rows, as the eval of bundle adjustment wants to see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nnkit import Tensor1D, f64, i64

from .protocol import Json

SHOWN = 30
"""How many numbers of each array are sent, before the last one."""


class CompressedRows(NamedTuple):
    """Where each row begins, and one behind the last; the column of each number that is kept, row by row."""

    begins: Tensor1D[i64]
    columns: Tensor1D[i64]
    values: Tensor1D[f64]

    def encode(self) -> Json:
        """The first and the last numbers of each array."""
        arrays = dict(zip(("rows", "cols", "vals"), map(np.asarray, self), strict=True))
        return {name: [*array[:SHOWN].tolist(), array[-1].item()] for name, array in arrays.items()}
