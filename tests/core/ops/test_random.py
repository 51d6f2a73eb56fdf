"""Threefry: samples for the laws, then the published vectors."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import DTypeError
from nnkit.core.ops import Threefry

from .samples import ErrorSample, Sample, f64, i32, i64

SAMPLES = [
    Sample(Threefry(), (i64(), i64())),
    Sample(Threefry(), (i64(), i64(4, 3))),
    Sample(Threefry(), (i64(2, 1), i64(3))),
    Sample(Threefry(), (i64(), i64(0))),
]
ERRORS = [
    ErrorSample(Threefry(), (i32(), i32()), "threefry takes i64 keys and counters", DTypeError),
    ErrorSample(Threefry(), (f64(), f64()), "threefry takes i64 keys and counters", DTypeError),
]


def _signed(bits: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(bits, np.uint64).view(np.int64)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        (0x00000000_00000000, 0x00000000_00000000, 0x6B200159_99BA4EFE),
        (0xFFFFFFFF_FFFFFFFF, 0xFFFFFFFF_FFFFFFFF, 0x1CB996FC_BB002BE7),
        (0x13198A2E_03707344, 0x243F6A88_85A308D3, 0xC4923A9C_483DF7A0),
    ],
)
def test_published_vectors(key: int, counter: int, expected: int) -> None:
    found = Threefry().evaluate(_signed(key), _signed(counter))
    assert int(found.view(np.uint64)) == expected


def test_bits_are_balanced_and_differ() -> None:
    bits = Threefry().evaluate(_signed(7), np.arange(4096)).view(np.uint64)
    assert len(set(bits.tolist())) == 4096
    ones = [(int((bits >> np.uint64(k) & np.uint64(1)).sum())) for k in range(64)]
    assert max(abs(count - 2048) for count in ones) < 160
