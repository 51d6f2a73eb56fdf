"""Random numbers as pure functions of a key: the same key gives the same numbers on every machine.

A key is a 64-bit integer.  Number i of a stream is Threefry-2x32 (20 rounds) of the key and the counter i,
so numbers are independent of how work is split.  `split` makes new keys, from negative counters, which no
stream uses.
Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from .callables import StagedFunction
from .core.types import F32, DType
from .elementwise import cos, log, sqrt
from .functions import iota
from .lambdas import fn
from .random_bits import bits_of, checked_key, counters, float_type, unit_of
from .reps import const, tup
from .staging.extents import ShapeLike, Size, is_symbolic
from .staging.rep import Rep
from .staging.static import sizes_of, static_shape
from .tensors import DTYPES, Tensor0D, f32, i64

Sizes: TypeAlias = "tuple[Size, ...]"

MOST_KEPT = 256
"""Staged functions of each kind that are kept, one per shape: as many as specialisations of one function
(docs/decisions/0022)."""


def key(seed: int) -> Any:
    """The key of a seed: any 64-bit integer.

    Raises: DTypeError when it does not fit.
    """
    return i64(seed)


def split(key: Any, num: Any = 2) -> Any:
    """A tuple of `num` new keys; do not use the old one again.

    A shape for `num` gives a tensor of them, of any sizes: `split(key, (n,))` has those that `split(key, n)` has.
    """
    checked_key(key)
    if isinstance(num, tuple | list):
        sizes = sizes_of(num, "split")
        return _keys_of(const(key), sizes) if is_symbolic(sizes) else _keys(sizes)(key)
    (number,) = static_shape([num], "split", least=1)
    return _splitter(number)(key)


def uniform(
    key: Any,
    shape: ShapeLike = (),
    dtype: Any = f32,
    minval: float = 0.0,
    maxval: float = 1.0,
) -> Any:
    """Numbers uniform in [minval, maxval); rounding may give `maxval` itself for other ends than 0 and 1."""
    checked_key(key)
    sizes, core = sizes_of(shape, "uniform"), float_type(dtype)
    if is_symbolic(sizes):
        return _uniform_of(const(key), sizes, float(minval), float(maxval), core)
    return _uniform(sizes, float(minval), float(maxval), core)(key)


def normal(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the standard normal distribution, by the method of Box and Muller."""
    checked_key(key)
    sizes, core = sizes_of(shape, "normal"), float_type(dtype)
    return _normal_of(const(key), sizes, core) if is_symbolic(sizes) else _normal(sizes, core)(key)


@lru_cache(MOST_KEPT)
def _splitter(count: int) -> StagedFunction:
    def split(key: Rep) -> Any:
        keys = bits_of(key, -1 - iota((count,), i64))
        return tup(*(keys[position] for position in range(count)))

    return _of_key(split)


@lru_cache(MOST_KEPT)
def _keys(sizes: Sizes) -> StagedFunction:
    def split(key: Rep) -> Any:
        return _keys_of(key, sizes)

    return _of_key(split)


def _keys_of(key: Rep, sizes: Sizes) -> Rep:
    return bits_of(key, -1 - counters(sizes))


@lru_cache(MOST_KEPT)
def _uniform(sizes: Sizes, low: float, high: float, dtype: DType) -> StagedFunction:
    def uniform(key: Rep) -> Any:
        return _uniform_of(key, sizes, low, high, dtype)

    return _of_key(uniform)


@lru_cache(MOST_KEPT)
def _normal(sizes: Sizes, dtype: DType) -> StagedFunction:
    def normal(key: Rep) -> Any:
        return _normal_of(key, sizes, dtype)

    return _of_key(normal)


def _uniform_of(key: Rep, sizes: Sizes, low: float, high: float, dtype: DType) -> Rep:
    unit = unit_of(bits_of(key, counters(sizes)), dtype)
    if (low, high) == (0.0, 1.0):
        return unit
    if np.isfinite(dtype.nearest(high - low)):
        return unit * (high - low) + low
    return (unit * (high / 2 - low / 2) + low / 2) * 2.0  # halves, as the length overflows


def _normal_of(key: Rep, sizes: Sizes, dtype: DType) -> Rep:
    wide = F32 if dtype.bits == 16 else dtype
    first = counters(sizes) * 2
    radius = sqrt(log(1.0 - unit_of(bits_of(key, first), wide)) * -2.0)
    angle = unit_of(bits_of(key, first + 1), wide) * (2.0 * math.pi)
    return (radius * cos(angle)).cast(DTYPES[dtype])


def _of_key(function: Any) -> StagedFunction:
    return fn(Tensor0D.__class_getitem__(i64))(function)
