"""Squares of vectors are turned in registers."""

from __future__ import annotations

import numpy as np

from nnkit.core.evaluate import evaluate_instruction
from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.pack import transposed
from nnkit.core.types import F64, Array, TensorType


def test_columns_become_rows() -> None:
    for size in (1, 2, 4, 8, 16):
        b = Builder()
        rows = [b.argument(TensorType((size,), F64)) for _ in range(size)]
        matrix = np.arange(size * size, dtype=np.float64).reshape(size, size)
        values: dict[Value, Array] = dict(zip(rows, matrix, strict=True))
        columns = transposed(b, rows)
        for instruction in b.block.instructions:
            operands = [values[x] for x in instruction.operands]
            (values[instruction.result],) = evaluate_instruction(instruction, operands)
        np.testing.assert_array_equal([values[x] for x in columns], matrix.T)
        assert len(b.block.instructions) == size * (size.bit_length() - 1)
