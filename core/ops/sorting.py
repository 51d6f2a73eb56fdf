"""Sorting: the permutation that puts the elements along an axis in order.

What is sorted is read by that permutation, so that a sort has the derivative of a gather, and its transpose that of a
scatter: among equal elements, of those that stand there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import EARLY, Stage, Stages
from ..types import I64, Array, TensorType
from .forms import check_axis

_COMPARISON: Final = 1.5
"""Nanoseconds for each element and bit of their number: 10⁶ f32 take 0.6, f64 3, rows of 64 f32 0.6, of 64 f64 1."""


@dataclass(frozen=True)
class ArgSort(Pure):
    """The indices, i64, that sort x along an axis: yₖ is where the element is that comes k-th.

    Stable: equal elements stay in order, −0 and +0 are equal, and so are all NaNs, which count as greatest.
    `descending` has the greatest first, equal elements in order still.  false comes before true.
    """

    name: ClassVar[str] = "argSort"
    syntax: ClassVar[str] = "argSort {x} along {axis} [descending {descending}]"
    stages: ClassVar[Stages] = EARLY | {Stage.COMPUTE}
    not_differentiable: ClassVar[str] = "a permutation is constant between its jumps"
    axis: int
    descending: bool = False

    def infer(self, x: TensorType) -> TensorType:
        check_axis(self.name, self.axis, x)
        return x.with_dtype(I64)

    def evaluate(self, x: Array) -> Array:
        if not self.descending:
            return np.asarray(np.argsort(x, self.axis, kind="stable"), np.int64)
        found = np.argsort(np.flip(x, self.axis), self.axis, kind="stable")
        return np.asarray(np.flip(x.shape[self.axis] - 1 - found, self.axis), np.int64)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(replace(self, axis=self.axis + 1), *xs)

    def flops(self, instruction: Instruction) -> int:
        """Comparisons of merging."""
        type = instruction.result.tensor
        return type.size * max(1, math.ceil(math.log2(max(type.shape[self.axis], 1))))

    def nanoseconds(self, instruction: Instruction) -> float:
        return _COMPARISON * self.flops(instruction)
