"""Random bits: a counter-based generator, so that the same key and counter give the same bits anywhere.

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", §3.3 and the
test vectors of their library Random123.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import DTypeError, InternalError
from ..ir.graph import Emitter, Value
from ..types import I64, Array, Kind, TensorType
from .forms import Elementwise, Partial
from .formulas import quietly

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Of the four rounds between two injections of the key, in turn."""
PARITY = 0x1BD11BDA
"""What the third key word is made of, with the other two."""
ROUNDS = 20


@dataclass(frozen=True)
class Threefry(Elementwise):
    """64 random bits from a key and a counter: Threefry-2x32 with 20 rounds.

    The words of all three are the high and the low 32 bits of an i64: result = (x₀ « 32) | x₁.
    """

    name: ClassVar[str] = "threefry"
    syntax: ClassVar[str] = "threefry {key}, {counter}"
    accepts: ClassVar[tuple[Kind, ...]] = ("integer",)
    not_differentiable: ClassVar[str] = "random bits are a discrete function of key and counter"

    def infer(self, *xs: TensorType) -> TensorType:
        for x in xs:
            if x.dtype != I64:
                raise DTypeError(f"threefry takes i64 keys and counters, not {x.words}")
        return super().infer(*xs)

    def evaluate(self, key: Array, counter: Array) -> Array:
        return quietly(_bits, key, counter)

    def partials(self, b: Emitter, y: Value, key: Value, counter: Value) -> tuple[Partial, ...]:
        raise InternalError(f"threefry has no derivative: {self.not_differentiable}")


def _bits(key: Array, counter: Array) -> Array:
    k0, k1 = _words(key)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = _words(counter)
    x0, x1 = x0 + k0, x1 + k1
    for round_number in range(ROUNDS):
        rotation = ROTATIONS[round_number // 4 % 2][round_number % 4]
        x0 = x0 + x1
        x1 = ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0
        if round_number % 4 == 3:
            injection = round_number // 4 + 1
            x0 = x0 + keys[injection % 3]
            x1 = x1 + keys[(injection + 1) % 3] + np.uint32(injection)
    bits = np.asarray((x0.astype(np.uint64) << np.uint64(32)) | x1.astype(np.uint64))
    return bits.view(np.int64)


def _words(x: Array) -> tuple[Array, Array]:
    bits = np.asarray(x, np.int64).view(np.uint64)
    return np.asarray(bits >> np.uint64(32), np.uint32), bits.astype(np.uint32)
