"""Random programs over rows: what has rows of elements, one element per row, a row for all, or one element.

Most of what they compute is exact, so that orders of sums are all that may differ.
"""

from __future__ import annotations

from random import Random

import numpy as np

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Module, Stage, Value, finish_function, start_function
from nnkit.core.ops import (
    Abs,
    Add,
    And,
    Combinator,
    DataTypeCast,
    Iota,
    LessThan,
    Maximum,
    Minimum,
    Multiply,
    PadShape,
    Reduce,
    Return,
    Select,
    ShapeCast,
    Subtract,
)
from nnkit.core.types import F32, F64, I32, I64, Array, Shape, TensorType, one_or_tuple

ROWS: tuple[Shape, ...] = ((3,), (2, 3), (5, 1), (2,), (1, 2, 2))
LENGTHS = (32, 33, 40, 47, 64, 77, 100, 131)
DTYPES = (F32, F32, F64, I32)


class RowProgram:
    """The random program of that number, at stage compute, and its arguments."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.rng = rng
        self.rows = rng.choice(ROWS)
        self.length = rng.choice(LENGTHS)
        self.dtype = rng.choice(DTYPES)
        whole, per_row = (*self.rows, self.length), (*self.rows, 1)
        shapes = [whole, whole, per_row, (self.length,), ()]
        types = [TensorType(shape, self.dtype) for shape in shapes]
        self.b = b = start_function(types)
        self.values: list[Value] = list(b.block.arguments)
        for _ in range(rng.randint(3, 9)):
            self.values.append(self._step())
        results = rng.sample(self.values[len(types) :], rng.randint(1, 2))
        results = [b.emit(Abs(), x) for x in [self.values[-1], *results]]
        b.emit_many(Return(), results)
        self.module = Module(stage=Stage.OPTIMIZED)
        self.module.add(finish_function("main", b, one_or_tuple([x.type for x in results])))
        self.arguments = [_numbers(type, np.random.default_rng(seed)) for type in types]

    def at_compute(self) -> Module:
        """The module with its nests, fused or not."""
        generate_compute(self.module)
        if self.rng.random() < 0.7:
            fuse(self.module)
        return self.module

    def _step(self) -> Value:
        rng, b = self.rng, self.b
        kind = rng.choice(("reduce", "reduce", "binary", "binary", "select", "index", "view"))
        if kind == "reduce":
            x = self._full()
            by = rng.choice((Combinator.ADD, Combinator.ADD, Combinator.MAX, Combinator.MIN))
            return b.emit(PadShape(len(self.rows)), b.emit(Reduce(by, (len(self.rows),)), x))
        if kind == "index":
            numbers = b.emit(Iota((self.length,), 0, I64))
            return b.emit(DataTypeCast(self.dtype), numbers)
        if kind == "view":
            x = self._full()
            flat = b.emit(ShapeCast((x.tensor.size // self.length, self.length)), x)
            return b.emit(ShapeCast(x.tensor.shape), b.emit(Abs(), flat))
        x, y = self._full(), rng.choice(self.values[-4:] + self.values[:5])
        if kind == "select":
            other = rng.choice(self.values)
            is_less = b.emit(LessThan(), x, y)
            if rng.random() < 0.3:
                is_less = b.emit(And(), is_less, b.emit(LessThan(), y, other))
            return b.emit(Select(), x, other, is_less)
        op = rng.choice((Add(), Subtract(), Multiply(), Maximum(), Minimum()))
        return b.emit(op, x, y) if rng.random() < 0.5 else b.emit(op, y, x)

    def _full(self) -> Value:
        """What has rows of elements, preferably what was made late."""
        found = [x for x in self.values if x.tensor.shape == (*self.rows, self.length)]
        return self.rng.choice(found[-3:])


def _numbers(type: TensorType, rng: np.random.Generator) -> Array:
    """Small whole numbers, of which sums are exact in any order."""
    return np.asarray(rng.integers(-2, 3, type.shape), type.dtype.numpy)
