"""The chain rule at singular points: an infinite slope before or behind an op reaches what depends on it alone.

A function s with s(0) = 0 and an infinite slope there stands before an operand of the op, as x + s(t) at t = 0, or
behind its result, as s(y − y₀).  With J the Jacobian of the op, known from where all is finite, the derivatives
must be J · s′ in the sense that a factor 0 gives 0: the limit.  Both modes, every op, one element at a time.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from nnkit.core.autodiff.rules import vjp_of
from nnkit.core.ir import Builder, Value
from nnkit.core.ops import (
    Acos,
    Acosh,
    Add,
    Asin,
    Convolve,
    Divide,
    Log,
    Power,
    Rsqrt,
    Sqrt,
    Subtract,
    constant,
    dense,
)
from nnkit.core.types import F64, Array, scalar
from tests.rows import each

from .catalogue import SAMPLES
from .running import arguments, pushed_forward, run
from .samples import Sample

Singular = Callable[[Builder, Value], Value]


def _number(b: Builder, n: float) -> Value:
    return constant(b, scalar(F64), n)


BEFORE: Mapping[str, tuple[Singular, float]] = {
    "sqrt": (lambda b, t: b.emit(Sqrt(), t), math.inf),
    "power": (lambda b, t: b.emit(Power(), t, _number(b, 0.5)), math.inf),
    "acosh": (lambda b, t: b.emit(Acosh(), b.emit(Add(), t, _number(b, 1))), math.inf),
    "acos": (lambda b, t: b.emit(Acos(), b.emit(Subtract(), _number(b, 1), t)), math.inf),
}
"""Functions that are 0 at 0, and their slope there."""

BEHIND: Mapping[str, tuple[Singular, float]] = {
    **BEFORE,
    "log": (lambda b, t: b.emit(Log(), t), math.inf),
    "rsqrt": (lambda b, t: b.emit(Rsqrt(), t), -math.inf),
    "reciprocal": (lambda b, t: b.emit(Divide(), _number(b, 1), t), -math.inf),
    "asin": (lambda b, t: b.emit(Asin(), b.emit(Subtract(), t, _number(b, 1))), math.inf),
}
"""Also those that are infinite there."""

DIFFERENTIABLE = [sample for sample in SAMPLES if sample.has_derivative]

MOST = 3
"""So many elements of a tensor are tried, and functions besides √, chosen by the sample."""


def pulled_back(b: Builder, y: Value, ct: Value, wanted: Sequence[Value]) -> list[Value | None]:
    """Cotangents of `wanted`, by the reverse rule of each instruction of the block in turn, last to first."""
    known: dict[Value, Value] = {y: ct}
    for instruction in reversed(list(b.block.instructions)):
        found = [known.get(result) for result in instruction.results]
        operands = instruction.operands
        if all(one is None for one in found):
            continue
        cts = vjp_of(b, instruction.op, instruction.results, operands, found)
        for operand, one in zip(operands, cts, strict=True):
            if one is not None:
                before = known.get(operand)
                known[operand] = one if before is None else b.emit(Add(), before, one)
    return [known.get(value) for value in wanted]


class Program:
    """A sample with something singular before its operand number `place`, or behind it (None), and its derivatives."""

    def __init__(self, sample: Sample, place: int | None, wrt: int, singular: Singular) -> None:
        self.b = b = Builder()
        self.xs = arguments(b, sample.types)
        self.given = dict(zip(self.xs, sample.operands(), strict=True))
        self.x = self.xs[wrt]
        operands = [*self.xs]
        if place is not None:
            self.t = b.argument(self.x.tensor)
            self.given[self.t] = np.zeros(self.x.tensor.shape)
            operands[wrt] = b.emit(Add(), self.x, singular(b, self.t))
            self.x = self.t
        self.y = b.emit(sample.op, *operands)
        if place is None:
            (value,) = run(b, self.given, [self.y])
            origin = b.emit(dense(self.y.tensor, value))
            self.y = singular(b, b.emit(Subtract(), self.y, origin))
        self.dx, self.ct = b.argument(self.x.tensor), b.argument(self.y.tensor)
        self.given |= {v: np.zeros(v.tensor.shape) for v in (self.dx, self.ct)}
        (self.dy,) = pushed_forward(b, {self.x: self.dx}, [self.y])
        (self.cx,) = pulled_back(b, self.y, self.ct, [self.x])

    def column(self, place: int) -> Array:
        """The derivatives of all results by one element of the operand."""
        return self._along(self.dx, place, self.dy, self.y)

    def row(self, place: int) -> Array:
        """The derivatives of one element of the result by all elements of the operand."""
        return self._along(self.ct, place, self.cx, self.x)

    def _along(self, direction: Value, place: int, wanted: Value | None, like: Value) -> Array:
        if wanted is None:
            return np.zeros(like.tensor.shape)
        unit = np.zeros(direction.tensor.shape)
        unit.ravel()[place] = 1
        return run(self.b, {**self.given, direction: unit}, [wanted])[0]


def some(like: Value, sample: Sample) -> list[int]:
    """Numbers of elements, not too many."""
    size = like.tensor.size
    rng = np.random.default_rng(zlib.crc32(str(sample).encode()))
    return sorted(rng.choice(size, min(size, MOST), replace=False).tolist())


def cases(
    sample: Sample, functions: Mapping[str, tuple[Singular, float]]
) -> Iterator[tuple[int, Singular, float]]:
    """Operands that are differentiated, with a function each and its slope.

    Not the kernel of a convolution that reads beyond its input: there a contraction multiplies ∞ by a zero.
    """
    rng = np.random.default_rng(zlib.crc32(str(sample).encode()))
    chosen = {"sqrt", *rng.choice([*functions], MOST - 1).tolist()}
    for wrt, type in enumerate(sample.types):
        if type.dtype == F64 and not (wrt == 1 and isinstance(sample.op, Convolve)):
            yield from ((wrt, *functions[name]) for name in sorted(chosen))


def strong(u: Array, v: Array | float) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where((u == 0) | (v == 0), 0, u * v)


def check(sample: Sample, wrt: int, place: int | None, singular: Singular, slope: float) -> None:
    """Both modes against the Jacobian of the op alone, times the slope."""
    plain = Program(sample, None, wrt, lambda b, t: t)
    program = Program(sample, place, wrt, singular)
    for k in some(plain.x, sample):
        expected = strong(plain.column(k), slope)
        np.testing.assert_array_equal(program.column(k), expected, err_msg=f"forward, by {k}")
    for k in some(plain.y, sample):
        expected = strong(plain.row(k), slope)
        np.testing.assert_array_equal(program.row(k), expected, err_msg=f"reverse, of {k}")


@each("sample", DIFFERENTIABLE, ids=str)
def test_an_infinite_slope_before_an_op(sample: Sample) -> None:
    for wrt, singular, slope in cases(sample, BEFORE):
        check(sample, wrt, wrt, singular, slope)


@each("sample", DIFFERENTIABLE, ids=str)
def test_an_infinite_slope_behind_an_op(sample: Sample) -> None:
    for wrt, singular, slope in cases(sample, BEHIND):
        check(sample, wrt, None, singular, slope)
