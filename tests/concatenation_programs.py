"""Random programs that put many pieces together: computed, copied, shared, constant, empty, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnkit.core.ir import Module, Stage, Value, finish_function, start_function
from nnkit.core.ops import (
    Combinator,
    Concatenate,
    Negate,
    Not,
    Reduce,
    Return,
    Slice,
    Transpose,
    constant,
)
from nnkit.core.ops.movement import reshaped
from nnkit.core.types import BOOL, DType, Shape, TensorType, one_or_tuple

_EXTENTS = 0, 1, 1, 2, 3, 5, 7, 9
"""Odd ones, and those that vectors of any width divide or not."""
_MOST_PIECES = 7
_POOL = 2000
"""Elements of the parameter that pieces are cut from."""


class Concatenations:
    """A random program, written to `b`."""

    def __init__(self, seed: int, dtype: DType) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = dtype
        self.b = start_function([TensorType((_POOL,), dtype)])
        self.made: list[Value] = []

    def module(self) -> Module:
        """The function @main of one parameter, whose results are concatenations and perhaps some of their pieces."""
        results = [self.whole(self.shape(), 3) for _ in range(self._upto(1, 2))]
        if self._may(0.5):
            results.append(self._pick(self.made))
        if self._may(0.3):
            results.append(self.computed(results[0]))
        self.b.emit_many(Return(), results)
        module = Module(stage=Stage.OPTIMIZED)
        type = one_or_tuple([value.type for value in results])
        module.add(finish_function("main", self.b, type))
        return module

    def shape(self) -> Shape:
        return tuple(self._pick(_EXTENTS) for _ in range(self._upto(1, 3)))

    def whole(self, shape: Shape, depth: int) -> Value:
        """A concatenation, which has about that shape."""
        axis = self._upto(0, len(shape) - 1)
        pieces = [self.piece((*shape[:axis], self._pick(_EXTENTS), *shape[axis + 1 :]), depth)]
        for _ in range(self._upto(0, _MOST_PIECES - 1)):
            extents = (*shape[:axis], self._pick(_EXTENTS), *shape[axis + 1 :])
            fits = [x for x in self.made if _fits(x.tensor.shape, shape, axis)]
            pieces.append(
                self._pick(fits) if fits and self._may(0.3) else self.piece(extents, depth)
            )
        return self.b.emit(Concatenate(axis), *pieces)

    def piece(self, shape: Shape, depth: int) -> Value:
        """A tensor of that shape, which later pieces may be as well."""
        match self._upto(0, 6):
            case 0:
                made = constant(self.b, TensorType(shape, self.dtype), self._upto(0, 1))
            case 1 if depth:
                made = self._cut(self.whole(shape, depth - 1), shape)
            case 2:
                turned = self.b.emit(Transpose(), self.taken(shape[::-1]))
                made = self.computed(turned) if self._may(0.5) else turned
            case 3:
                by = Combinator.OR if self.dtype is BOOL else Combinator.MAX
                made = self.b.emit(Reduce(by, (0,)), self.taken((3, *shape)))
            case 4:
                made = self.taken(shape)
            case _:
                made = self.computed(self.taken(shape))
        self.made.append(made)
        return made

    def taken(self, shape: Shape) -> Value:
        """Elements of the parameter."""
        size = int(np.prod(shape))
        start = self._upto(0, _POOL - size)
        flat = self.b.emit(Slice((start,), (start + size,)), self.b.block.arguments[0])
        return reshaped(self.b, flat, shape)

    def computed(self, x: Value) -> Value:
        return self.b.emit(Not() if self.dtype is BOOL else Negate(), x)

    def _cut(self, x: Value, shape: Shape) -> Value:
        """As many elements of x in that shape, or others where it has not as many."""
        size = int(np.prod(shape))
        if x.tensor.size == size:
            return reshaped(self.b, x, shape)
        if x.tensor.size < size:
            return self.taken(shape)
        flat = reshaped(self.b, x, (x.tensor.size,))
        return reshaped(self.b, self.b.emit(Slice((0,), (size,)), flat), shape)

    def _upto(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def _may(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[self._upto(0, len(choices) - 1)]


def _fits(shape: Shape, other: Shape, axis: int) -> bool:
    return len(shape) == len(other) and all(
        m == n for k, (m, n) in enumerate(zip(shape, other, strict=True)) if k != axis
    )


def pool(dtype: DType, seed: int = 0) -> Any:
    """The argument."""
    random = np.random.default_rng(seed)
    low = 0 if dtype is BOOL or dtype.name == "bool" else -100
    return dtype.round(np.asarray(random.integers(low, 2 if low == 0 else 100, _POOL)))
