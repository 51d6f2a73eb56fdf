"""Queries of a tensor's rank, shape and size, which are constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..stage import Stage, Stages
from ..types import I64, Array, TensorType, scalar
from .literal import Literal, dense


class ShapeQuery(Pure):
    """A question about the shape of a tensor, whose elements do not matter."""

    not_differentiable: ClassVar[str] = "it depends on the type alone"
    stages: ClassVar[Stages] = frozenset({Stage.RAW})

    def answer(self, x: TensorType) -> Literal:
        """The constant that it is for an operand of this type."""
        result = self.infer(x)
        assert isinstance(result, TensorType)
        return dense(result, self.evaluate(np.broadcast_to(np.zeros((), x.dtype.numpy), x.shape)))

    def expand(self, b: Emitter, *operands: Value) -> Value:
        (x,) = operands
        return b.emit(self.answer(x.tensor))

    def differs(self, batched: Sequence[bool], axis: str | None) -> bool:
        """All elements of a batch have one shape."""
        return False

    def bytes_moved(self, instruction: Instruction) -> int:
        return 0


class Rank(ShapeQuery):
    """The number of axes of x, i64."""

    name: ClassVar[str] = "rank"
    syntax: ClassVar[str] = "rank of {x}"

    def infer(self, x: TensorType) -> TensorType:
        return scalar(I64)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(x.ndim, np.int64)


class ShapeOf(ShapeQuery):
    """The extents of x, one i64 per axis."""

    name: ClassVar[str] = "shape"
    syntax: ClassVar[str] = "shape of {x}"

    def infer(self, x: TensorType) -> TensorType:
        return TensorType((x.rank,), I64)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(x.shape, np.int64)


class UnitCount(ShapeQuery):
    """The number of elements of x, i64."""

    name: ClassVar[str] = "unitCount"
    syntax: ClassVar[str] = "unitCount of {x}"

    def infer(self, x: TensorType) -> TensorType:
        return scalar(I64)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(x.size, np.int64)
