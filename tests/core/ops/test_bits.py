"""Bits: samples for the laws, then every pair of element types against NumPy's views."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import DTypeError
from nnkit.core.ir import Builder
from nnkit.core.ops import BitCast, Reinterpret
from nnkit.core.types import BF16, BOOL, DTYPES, F16, F32, F64, I8, I16, I32, I64, DType, TensorType
from tests.rows import each

from .running import arguments, result_of, run
from .samples import ErrorSample, Sample, boolean, f32, f64, i32, i64

SAMPLES = [
    Sample(Reinterpret(I32), (f32(2, 3),), numpy=lambda x: x.view(np.int32)),
    Sample(Reinterpret(F32), (i32(2, 3),), numpy=lambda x: x.view(np.float32)),
    Sample(Reinterpret(F64), (i64(),), numpy=lambda x: x.view(np.float64)),
    Sample(Reinterpret(I16), (TensorType((3,), BF16),), ([1.0, -2.0, 0.5],)),
    Sample(Reinterpret(BF16), (TensorType((2,), F16),), ([1.0, -2.0],)),
    Sample(BitCast(TensorType((2, 3), I32)), (f32(2, 3),)),
    Sample(BitCast(TensorType((3, 2), I32)), (f32(2, 3),)),
    Sample(BitCast(TensorType((2, 3), F32)), (f32(2, 3),), numpy=lambda x: x),
    Sample(BitCast(TensorType((2, 2), I32)), (i64(2),), numpy=lambda x: x.view("i4").reshape(2, 2)),
    Sample(BitCast(TensorType((2,), I64)), (i32(2, 2),), numpy=lambda x: x.view("i8").reshape(2)),
    Sample(BitCast(TensorType((), I64)), (f32(2),), numpy=lambda x: x.view("i8").reshape(())),
    Sample(BitCast(TensorType((8,), I8)), (i64(),), numpy=lambda x: x.reshape(1).view("i1")),
    Sample(BitCast(TensorType((4,), F16)), (i32(2),)),
    Sample(BitCast(TensorType((0, 3), I64)), (f32(0),)),
]
ERRORS = [
    ErrorSample(Reinterpret(I64), (f32(2),), "elements of 32 and 64 bits", DTypeError),
    ErrorSample(Reinterpret(BOOL), (TensorType((2,), I8),), "not bool", DTypeError),
    ErrorSample(Reinterpret(I8), (boolean(2),), "not bool", DTypeError),
    ErrorSample(BitCast(TensorType((3,), I32)), (f32(2),), "cannot bitCast f32[2] to i32[3]: 8 bytes are not 12"),
    ErrorSample(BitCast(TensorType((2,), BOOL)), (TensorType((2,), I8),), "not bool", DTypeError),
    ErrorSample(BitCast(TensorType((2,), I8)), (boolean(2),), "not bool", DTypeError),
    ErrorSample(BitCast(TensorType((2,), F64)), (f64(1),), "8 bytes are not 16"),
]  # fmt: skip

QUIET = {F16: 0x200, BF16: 0x40}
"""The bit that tells a quiet NaN from a signaling one."""

NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]


def bits(
    rng: np.random.Generator, dtype: DType, count: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Random memory without signaling NaNs of f16 and bf16, and as often as not with others."""
    stored = rng.integers(0, 256, count * dtype.bytes, np.uint8)
    elements = stored.view(dtype.storage)
    if dtype.is_float and dtype.bits == 16:
        quiet = np.uint16(QUIET[dtype])
        words = elements.view(np.uint16)
        words |= np.isnan(dtype.load(elements)) * quiet
    return stored


@each("target", NUMERIC, ids=str)
@each("source", NUMERIC, ids=str)
def test_every_pair_of_types_keeps_the_bytes(source: DType, target: DType) -> None:
    rng = np.random.default_rng(source.bits * 100 + target.bits)
    for _ in range(20):
        stored = bits(rng, source, 16)
        x = source.load(stored.view(source.storage))
        type, op = (
            TensorType((16,), source),
            BitCast(TensorType((128 // target.bits, source.bits // 8), target)),
        )
        b = Builder()
        (value,) = arguments(b, [type])
        nested = op.nest(b, value)
        for found in (result_of(op, [type], [x]), run(b, {value: x}, [nested])[0]):
            expected = (
                op.evaluate(x) if target in QUIET else target.load(stored.view(target.storage))
            )
            np.testing.assert_array_equal(found, expected.reshape(op.type.shape))
            back = BitCast(TensorType((source.bits * 16 // 8,), I8)).evaluate(found)
            if target not in QUIET:
                assert back.tobytes() == stored.tobytes()


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_all_bits_of_16_are_kept_but_that_nans_become_quiet(dtype: DType) -> None:
    integers = np.arange(1 << 16).astype(np.uint16).view(np.int16)
    found = Reinterpret(I16).evaluate(Reinterpret(dtype).evaluate(integers))
    is_nan = np.isnan(dtype.load(integers.view(dtype.storage)))
    quiet = np.where(is_nan, integers | QUIET[dtype], integers)
    np.testing.assert_array_equal(found, quiet)
    assert (found != integers).sum() == 2 * (QUIET[dtype] - 1)
