"""Random bits: a counter-based generator, so that the same key and counter give the same bits anywhere.

`threefry` is a pure function.  `random` is DLVM's: it takes the next numbers of a generator that the whole
run shares, whose state is a seed and a count of the instructions executed so far.

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", §3.3 and the
test vectors of their library Random123.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ..errors import DTypeError, InternalError, RankError
from ..ir.effect import Effect
from ..ir.instruction import Emitter, Op, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import DTYPES, I64, Array, DType, Kind, Shape, TensorType, scalar
from .arithmetic import Add, Divide, FloorDivide, Modulo, Multiply, Subtract
from .casting import DataTypeCast
from .comparison import And, LessThan, Select
from .expansion import evaluate_expansion
from .forms import SEVERAL_POLYNOMIALS, Elementwise, Partial, check_kind
from .formulas import number, quietly
from .indexing import Iota
from .movement import reshaped

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Of the four rounds between two injections of the key, in turn. The authors' choice, found by search for how quickly
bits mix."""

PARITY = 0x1BD11BDA
"""What the third key word is made of, with the other two. The authors' (the C240 of Skein, cut to 32 bits): with it, no
key gives three words of zeros."""

ROUNDS = 20
"""The authors' default for words of 32 bits."""

RANDOM_COUNT = "nnkit.random"
"""The global variable, an i64, that counts the executed `random` once they are expanded."""
RANDOM_SEED = "nnkit.random.seed"
"""The global variable, an i64, with the seed of the run."""


class Threefry(Elementwise):
    """64 random bits from a key and a counter: Threefry-2x32 with 20 rounds.

    The words of all three are the high and the low 32 bits of an i64: result = (x₀ « 32) | x₁.
    """

    name: ClassVar[str] = "threefry"
    syntax: ClassVar[str] = "threefry {key}, {counter}"
    cost: ClassVar[int] = SEVERAL_POLYNOMIALS
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


@dataclass(frozen=True)
class Random(Op):
    """Numbers uniform in [low, high), the next ones of the run's generator; all `low` if that is empty.

    Number i is made of the bits threefry(threefry(seed, count), i), where `count` is how many `random` the
    run has executed before this one.  Floats are low + (high − low) · u for u of as many random bits as the
    type has, or twice low/2 + (high/2 − low/2) · u where high − low would overflow; what rounding makes
    `high` is `low`, and so are all when a bound is not finite.  Integers are low + ⌊(high − low) · bits / 2⁶⁴⌋,
    with bits from 0 to 2⁶⁴ − 1, of which no number has more than one more than another.

    An instruction that nobody reads still takes its turn: it can neither go nor be merged.
    """

    name: ClassVar[str] = "random"
    syntax: ClassVar[str] = "random {shape} from {low} upto {high}"
    stages: ClassVar[Stages] = frozenset({Stage.RAW})
    effect: ClassVar[Effect] = Effect.WRITE
    not_differentiable: ClassVar[str] = "random numbers are a discrete function of the seed"
    shape: Shape

    def infer(self, low: TensorType, high: TensorType) -> TensorType:
        for bound in (low, high):
            if bound.rank:
                raise RankError(f"random takes scalar bounds, not {bound.words}")
            check_kind("random", bound, ("float", "integer"))
        if low.dtype != high.dtype:
            raise DTypeError(f"random: the bounds {low.words} and {high.words} differ in type")
        return TensorType(self.shape, low.dtype)

    def evaluate_with(
        self, seed: int, count: int, low: Array, high: Array, dtype: DType | None = None
    ) -> Array:
        """The numbers after `count` others; `dtype` where the bounds do not show it (bf16)."""
        known = dtype or next(d for d in DTYPES.values() if d.storage == low.dtype)
        types = (scalar(I64), scalar(I64), scalar(known), scalar(known))
        state = [np.asarray(n, np.int64) for n in (seed, count)]
        return evaluate_expansion(self.expand_with, types, [*state, low, high])

    def expand_with(self, b: Emitter, seed: Value, count: Value, low: Value, high: Value) -> Value:
        """The numbers as a pure function of the generator's state."""
        key = b.emit(Threefry(), seed, count)
        size = TensorType(self.shape, I64).size
        counters = reshaped(b, b.emit(Iota((size,), 0, I64)), self.shape)
        bits = b.emit(Threefry(), key, counters)
        if low.tensor.dtype.is_float:
            return _uniform(b, bits, low, high)
        return _uniform_integers(b, bits, low, high)


def unit_interval(b: Emitter, bits: Value, dtype: DType) -> Value:
    """The leading bits as numbers in [0, 1), every one of which is exact."""
    leading = b.emit(FloorDivide(), bits, number(b, bits, 1 << (64 - dtype.digits)))
    whole = b.emit(Add(), leading, number(b, bits, 1 << (dtype.digits - 1)))
    numbers = b.emit(DataTypeCast(dtype), whole)
    return b.emit(Multiply(), numbers, number(b, numbers, 2.0**-dtype.digits))


def _uniform(b: Emitter, bits: Value, low: Value, high: Value) -> Value:
    """A range so long that its length overflows is halved first, which loses nothing of ends so large."""
    unit = unit_interval(b, bits, low.tensor.dtype)
    length = b.emit(Subtract(), high, low)
    is_short = b.emit(LessThan(), length, number(b, length, math.inf))
    scale = b.emit(Select(), number(b, length, 1), number(b, length, 0.5), is_short)
    first, end = b.emit(Multiply(), low, scale), b.emit(Multiply(), high, scale)
    scaled = b.emit(Multiply(), unit, b.emit(Subtract(), end, first))
    numbers = b.emit(Divide(), b.emit(Add(), scaled, first), scale)
    is_inside = b.emit(And(), b.emit(LessThan(), numbers, high), b.emit(LessThan(), low, high))
    return b.emit(Select(), numbers, low, is_inside)


def _uniform_integers(b: Emitter, bits: Value, low: Value, high: Value) -> Value:
    """In i64, whose length and bits are read as unsigned: the sum wraps around into the range."""
    first, end = b.emit(DataTypeCast(I64), low), b.emit(DataTypeCast(I64), high)
    offset = _high_product(b, bits, b.emit(Subtract(), end, first))
    some = b.emit(Add(), first, offset)
    is_any = b.emit(LessThan(), first, end)
    return b.emit(DataTypeCast(low.tensor.dtype), b.emit(Select(), some, first, is_any))


def _high_product(b: Emitter, x: Value, y: Value) -> Value:
    """⌊x · y / 2⁶⁴⌋ of i64 read as unsigned, digit by digit in base 2³².

    No sum overflows, as (2³² − 1)² + 2 (2³² − 1) < 2⁶⁴.  Source: Warren 2012, Hacker's Delight, §8-2.
    """
    (x1, x0), (y1, y0) = _digits(b, x), _digits(b, y)
    carried, _ = _digits(b, b.emit(Multiply(), x0, y0))
    high, low = _digits(b, b.emit(Add(), b.emit(Multiply(), x1, y0), carried))
    carried, _ = _digits(b, b.emit(Add(), b.emit(Multiply(), x0, y1), low))
    return b.emit(Add(), b.emit(Add(), b.emit(Multiply(), x1, y1), high), carried)


def _digits(b: Emitter, x: Value) -> tuple[Value, Value]:
    """The high and the low 32 bits, each as a number from 0 to 2³² − 1."""
    base = number(b, x, 1 << 32)
    return b.emit(Modulo(), b.emit(FloorDivide(), x, base), base), b.emit(Modulo(), x, base)


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
