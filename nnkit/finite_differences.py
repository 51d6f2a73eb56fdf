"""Central differences of functions of an array, each with an estimate of its error.

1. A step h gives (f(x + h) − f(x − h)) / 2h, whose error is f‴h²/6 and rounding, ε·|f|/h.
2. The difference for h/2 is a quarter as far from the slope, so that the two tell the first error.
3. Of several steps the one with the least error is taken: one that is too large for the function is followed by
   smaller ones, and what is left is rounding.
4. Where slopes to the left and to the right differ by more than that, there is a kink or a jump.

Source: Press et al., Numerical Recipes, §5.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .core.lazy_dataclass import dataclass
from .core.types import Array

STEPS: Final = (1.0, 1 / 8, 1 / 64)
"""The largest step is ∛ε, where both errors are alike for a function whose derivatives are about 1; the others are for
functions that are steeper, of a factor each that makes the error of the difference smaller than that of rounding."""

NOISE: Final = 32
"""How many units in the last place of the largest number a result may be wrong: as sums of some hundred terms are."""


@dataclass(frozen=True)
class SlopeEstimate:
    """A slope by differences, elementwise, how far it may be off, and the slopes to both sides."""

    slope: Array
    error: Array
    left: Array
    right: Array

    def bends(self) -> Array:
        """Where the slopes to both sides are not one: they differ by more than a third of the larger."""
        larger = np.maximum(np.abs(self.left), np.abs(self.right))
        bends: Array = np.abs(self.left - self.right) > larger / 3 + 4 * self.error
        return bends


def difference(along: Callable[[float], Array], size: float, epsilon: float) -> SlopeEstimate:
    """The derivative of `along` at 0; `size` is that of the number it moves, and `epsilon` that of its type."""
    best: SlopeEstimate | None = None
    middle = along(0.0)
    for factor in STEPS:
        h = factor * epsilon ** (1 / 3) * max(size, 1.0)
        ends = [along(step * h) for step in (-1.0, -0.5, 0.5, 1.0)]
        found = _estimate(ends, middle, h, epsilon)
        if best is None:
            best = found
            continue
        closer = found.error < best.error
        pairs = zip(
            (found.slope, found.error, found.left, found.right),
            (best.slope, best.error, best.left, best.right),
            strict=True,
        )
        best = SlopeEstimate(*(np.where(closer, one, other) for one, other in pairs))
    assert best is not None
    return best


def _estimate(ends: list[Array], middle: Array, h: float, epsilon: float) -> SlopeEstimate:
    far, near = (ends[3] - ends[0]) / (2 * h), (ends[2] - ends[1]) / h
    largest = np.max(np.abs([*ends, middle]), initial=0.0)
    error = np.abs(far - near) / 3 + NOISE * epsilon * largest / h
    left, right = (middle - ends[1]) / (h / 2), (ends[2] - middle) / (h / 2)
    return SlopeEstimate(near + (near - far) / 3, error, left, right)
