"""All samples of all ops, for the laws here and wherever every op is to be tried."""

from __future__ import annotations

from collections.abc import Iterator

from nnkit.core.ir import Op
from nnkit.core.types import Array, TensorType

from . import (
    test_arithmetic,
    test_bits,
    test_bitwise,
    test_builtin,
    test_casting,
    test_comparison,
    test_contraction,
    test_convolution,
    test_indexing,
    test_movement,
    test_random,
    test_reduction,
    test_rounding,
    test_scan,
    test_scatter,
    test_shape_query,
    test_slicing,
    test_sorting,
    test_special,
    test_stop_gradient,
    test_transcendental,
    test_window,
)
from .samples import ErrorSample, Sample

_FAMILIES = (
    test_arithmetic, test_transcendental, test_special, test_rounding, test_comparison, test_casting,
    test_stop_gradient, test_random, test_movement, test_indexing, test_slicing, test_sorting, test_scan, test_scatter,
    test_reduction, test_contraction, test_window, test_convolution, test_shape_query, test_bits, test_bitwise,
    test_builtin,
)  # fmt: skip

SAMPLES: list[Sample] = [sample for family in _FAMILIES for sample in family.SAMPLES]
ERRORS: list[ErrorSample] = [sample for family in _FAMILIES for sample in family.ERRORS]


def all_samples() -> Iterator[tuple[Op, tuple[TensorType, ...], list[Array]]]:
    """(op, operand types, concrete operands) of every sample."""
    for sample in SAMPLES:
        yield sample.op, sample.types, sample.operands()
