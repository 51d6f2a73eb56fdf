"""Random numbers: the published vectors of the generator, distributions, and that equal keys give equal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import bf16, f16, f32, f64, i64, random, staged


def array(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


def test_the_same_key_gives_the_same_numbers() -> None:
    key = random.key(7)
    assert key.dtype is i64 and int(key) == 7
    first, again = random.uniform(key, (3, 4)), random.uniform(key, (3, 4))
    assert first.shape == (3, 4) and first.dtype is f32
    np.testing.assert_array_equal(array(first), array(again))
    inside = staged(lambda k: random.uniform(k, (3, 4)))(key)
    np.testing.assert_array_equal(array(first), array(inside))
    assert not np.array_equal(array(first), array(random.uniform(random.key(8), (3, 4))))


def test_a_stream_does_not_depend_on_its_shape() -> None:
    key = random.key(3)
    flat = array(random.uniform(key, (24,)))
    np.testing.assert_array_equal(array(random.uniform(key, (2, 3, 4))).ravel(), flat)
    np.testing.assert_array_equal(array(random.uniform(key, (10,))), flat[:10])
    assert float(random.uniform(key, ())) == flat[0]
    assert random.normal(key, (0, 3)).shape == (0, 3)


def rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & 0xFFFFFFFF


def threefry(key: int, counter: int) -> int:
    """Threefry-2x32 with 20 rounds, on Python integers: high word first."""
    words = [(counter >> shift) & 0xFFFFFFFF for shift in (32, 0)]
    keys = [(key >> shift) & 0xFFFFFFFF for shift in (32, 0)]
    keys.append(0x1BD11BDA ^ keys[0] ^ keys[1])
    x = [(words[0] + keys[0]) & 0xFFFFFFFF, (words[1] + keys[1]) & 0xFFFFFFFF]
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    for step in range(20):
        x[0] = (x[0] + x[1]) & 0xFFFFFFFF
        x[1] = rotate(x[1], rotations[step % 8]) ^ x[0]
        if step % 4 == 3:
            turn = step // 4 + 1
            x[0] = (x[0] + keys[turn % 3]) & 0xFFFFFFFF
            x[1] = (x[1] + keys[(turn + 1) % 3] + turn) & 0xFFFFFFFF
    return x[0] << 32 | x[1]


def test_the_oracle_gives_the_published_vectors() -> None:
    """Source: Salmon et al., Random123, kat_vectors, threefry2x32 of 20 rounds."""
    assert threefry(0, 0) == 0x6B200159_99BA4EFE
    assert threefry(2**64 - 1, 2**64 - 1) == 0x1CB996FC_BB002BE7
    assert threefry(0x13198A2E_03707344, 0x243F6A88_85A308D3) == 0xC4923A9C_483DF7A0


def test_uniform_numbers_are_the_leading_bits_of_the_generator() -> None:
    for seed in (0, 1, -1, 2**62 + 12345):
        bits = [threefry(seed % 2**64, k) for k in range(5)]
        signed = [b - 2**64 if b >= 2**63 else b for b in bits]
        want = [((b >> 40) + 2**23) / 2**24 for b in signed]
        np.testing.assert_array_equal(array(random.uniform(random.key(seed), (5,))), want)


@pytest.mark.parametrize("dtype", [f16, bf16, f32, f64], ids=lambda d: d.__name__)
def test_distributions(dtype: Any) -> None:
    key = random.key(11)
    uniform = array(random.uniform(key, (20_000,), dtype=dtype))
    assert 0 <= uniform.min() and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.005
    wide = array(random.uniform(key, (20_000,), minval=-2.0, maxval=6.0, dtype=dtype))
    assert abs(wide.mean() - 2.0) < 0.1 and -2 <= wide.min() and wide.max() <= 6
    normal = array(random.normal(key, (20_000,), dtype=dtype))
    assert np.isfinite(normal).all()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    assert abs((normal**3).mean()) < 0.1 and abs((normal**4).mean() - 3) < 0.3
    assert abs(np.corrcoef(normal[:-1], normal[1:])[0, 1]) < 0.03


def test_split_makes_new_keys() -> None:
    key = random.key(1)
    first, second = random.split(key)
    keys = random.split(key, 20)
    assert len(keys) == 20 and len({int(k) for k in keys} | {int(key)}) == 21
    assert (int(first), int(second)) == (int(keys[0]), int(keys[1]))
    (alone,) = random.split(key, 1)
    assert int(alone) == int(first)
    signed = [threefry(1, 2**64 - 1 - k) for k in range(2)]
    assert [int(k) % 2**64 for k in keys[:2]] == signed

    @staged
    def inside(k: Any) -> Any:
        a, b = random.split(k).unpack()
        return random.uniform(a, (2,)), random.uniform(b, (2,))

    x, y = inside(key)
    np.testing.assert_array_equal(array(x), array(random.uniform(first, (2,))))
    np.testing.assert_array_equal(array(y), array(random.uniform(second, (2,))))


@pytest.mark.parametrize(
    ("dtype", "largest"), [(f16, 65504.0), (bf16, 2.0**127), (f32, 3.4e38), (f64, 1.7e308)]
)
def test_a_range_whose_length_overflows_is_filled(dtype: Any, largest: float) -> None:
    x = array(random.uniform(random.key(3), (4000,), minval=-largest, maxval=largest, dtype=dtype))
    quarters = np.floor(x.astype(np.float64) / largest * 2).astype(int)
    counts = np.bincount(quarters + 2, minlength=4)
    assert counts.size <= 5 and counts[:4].min() > 900 and counts[4:].sum() < 20


def test_wrong_arguments() -> None:
    key = random.key(0)
    with pytest.raises(nk.DTypeError, match="random numbers are floats, not i64"):
        random.uniform(key, (2,), dtype=i64)
    with pytest.raises(nk.ShapeError, match="normal takes numbers of at least 0, not -1"):
        random.normal(key, (-1,))
    with pytest.raises(nk.DTypeError, match=r"uniform takes a shape, a tuple of ints, not 3\.0"):
        random.uniform(key, 3.0)
    with pytest.raises(nk.DTypeError, match="out of range"):
        random.key(2**63)
    with pytest.raises(nk.NNKitError):
        random.uniform(f32(1.0), (2,))
    with pytest.raises(nk.RankError, match="at most 5"):
        random.uniform(key, (1,) * 6)
