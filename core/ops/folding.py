"""Reductions by a function of the program, given as a value of type (T, T) -> T on elements.

The order is fixed, since such a function need not be associative: elements are taken in row-major order of
the axes that are combined, the first of them first.  All results take their first element, one result after
the other, then all their second, and so on; this is the order of what the function does besides.

    reduce [a, b, c] by f init v       f(f(f(v, a), b), c)
    reduce [a, b, c] by f              f(f(a, b), c), and there must be an element

What these ops mean is said by `evaluate_by`, which is given a way to call functions; `core.passes.expand`
turns them into loops.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import DTypeError, RankError, ShapeError
from ..ir.graph import Effect, Op
from ..types import I64, Array, FunctionType, TensorType, Type, scalar
from .indexing import check_axis
from .movement import check_axes
from .window import Border, Padding, Pane, panes_of

Call: TypeAlias = Callable[[Any, Array, Array], Array]
"""(function value, accumulated, element) to the function's result: how an evaluator calls."""


class Folding(Op):
    """Combines elements by a function.

    Operands: the tensor, an initial value if there is one, and, though it is written second, last the
    function.
    """

    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.CALL
    not_differentiable: ClassVar[str] = "it is expanded into a loop first, by the pass 'expand'"

    def tensor_of(self, operands: Sequence[Type]) -> TensorType:
        """The type of the tensor, the other operands checked against it."""
        words = self.syntax.split()[0]
        if len(operands) not in (2, 3):
            raise RankError(
                f"{words} by a function takes a tensor, an initial value and the function"
            )
        x, function = operands[0], operands[-1]
        if not isinstance(x, TensorType):
            raise DTypeError(f"{words} takes a tensor, not a {x}")
        element = scalar(x.dtype)
        expected = FunctionType((element, element), element)
        if function != expected:
            raise DTypeError(f"{words} of {x.words} combines by a {expected}, not a {function}")
        if len(operands) == 3 and operands[1] != element:
            raise DTypeError(f"{words} of {x.words} starts from a {element}, not a {operands[1]}")
        return x


@dataclass(frozen=True)
class ReduceBy(Folding):
    """The elements along `axes`, which are left out of the result, combined by a function."""

    name: ClassVar[str] = "reduceBy"
    syntax: ClassVar[str] = "reduce {x} by {f} [init {init}] [along {axes}]"
    axes: tuple[int, ...] = ()

    def infer(self, *operands: Type) -> TensorType:
        x = self.tensor_of(operands)
        check_axes("reduce", self.axes, x)
        if len(operands) == 2 and self.axes and self.count(x) == 0:
            raise ShapeError(f"reduce of no elements of {x.words} by a function needs an init")
        return x.with_shape(n for axis, n in enumerate(x.shape) if axis not in self.axes)

    def count(self, x: TensorType) -> int:
        """How many elements are combined into one."""
        return math.prod(x.shape[axis] for axis in self.axes)

    def order(self, rank: int) -> tuple[int, ...]:
        """The axes that are combined, in order, then the others."""
        combined = sorted(self.axes)
        return (*combined, *(axis for axis in range(rank) if axis not in self.axes))

    def evaluate_by(self, call: Call, *operands: Any) -> Array:
        """The result, for operands as of the instruction."""
        x, *init, function = operands
        if not self.axes and not init:
            return np.asarray(x)
        rows = np.transpose(x, self.order(x.ndim))
        rest = rows.shape[len(self.axes) :]
        rows = rows.reshape(math.prod(rows.shape[: len(self.axes)]), *rest)
        total, rows = (np.broadcast_to(init[0], rest), rows) if init else (rows[0], rows[1:])
        for row in rows:
            total = _combined(call, function, total, row)
        return np.asarray(total)


@dataclass(frozen=True)
class ScanBy(Folding):
    """Running results of combining the elements along an axis by a function, of the shape of x.

    yᵢ = f(yᵢ₋₁, xᵢ), from the initial value or, without one, from y₀ = x₀.  `exclusive` leaves xᵢ out, so
    that y₀ is the initial value; `reverse` runs from the end.
    """

    name: ClassVar[str] = "scanBy"
    syntax: ClassVar[str] = (
        "scan {x} by {f} [init {init}] along {axis} [reverse {reverse}] [exclusive {exclusive}]"
    )
    axis: int = 0
    reverse: bool = False
    exclusive: bool = False

    def infer(self, *operands: Type) -> TensorType:
        x = self.tensor_of(operands)
        check_axis("scan", self.axis, x)
        if self.exclusive and len(operands) == 2:
            raise ShapeError("an exclusive scan by a function needs an init")
        return x

    def evaluate_by(self, call: Call, *operands: Any) -> Array:
        """The result, for operands as of the instruction."""
        x, *init, function = operands
        if not x.size:
            return np.asarray(x)
        rows = np.moveaxis(x, self.axis, 0)
        rows = rows[::-1] if self.reverse else rows
        found: list[Array] = []
        total = np.broadcast_to(init[0], rows.shape[1:]) if init else None
        for row in rows:
            if self.exclusive and total is not None:
                found.append(total)
            total = row if total is None else _combined(call, function, total, row)
            if not self.exclusive:
                found.append(total)
        scanned = np.stack(found[::-1] if self.reverse else found)
        return np.moveaxis(scanned, 0, self.axis)


@dataclass(frozen=True)
class ReduceWindowBy(Folding):
    """The elements that a sliding window covers, combined by a function from an initial value.

    Windows stand as for `reduceWindow`; what they cover outside of the tensor is left out.
    """

    name: ClassVar[str] = "reduceWindowBy"
    syntax: ClassVar[str] = (
        "reduceWindow {x} by {f} init {init} dims {window} [strides {strides}] [padding {padding}]"
    )
    window: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    padding: Padding = Border.NONE

    def infer(self, *operands: Type) -> TensorType:
        x = self.tensor_of(operands)
        if len(operands) == 2:
            raise ShapeError("reduceWindow by a function needs an init")
        return x.with_shape(pane.places for pane in self.panes(x))

    def panes(self, x: TensorType) -> list[Pane]:
        """How windows stand along each axis."""
        return panes_of("reduceWindow", x, self.window, self.strides, self.padding)

    def evaluate_by(self, call: Call, *operands: Any) -> Array:
        """The result, for operands as of the instruction."""
        x, init, function = operands
        panes = self.panes(TensorType(x.shape, I64))
        positions = [pane.positions() for pane in panes]
        result = np.full([pane.places for pane in panes], init, x.dtype)
        for taps in itertools.product(*map(range, self.window)):
            for place in np.ndindex(*result.shape):
                where = [
                    int(p[at])
                    for p, at in zip(positions, zip(place, taps, strict=True), strict=True)
                ]
                if all(0 <= k < n for k, n in zip(where, x.shape, strict=True)):
                    element = np.asarray(x[tuple(where)])
                    result[place] = call(function, np.asarray(result[place]), element)
        return result


def _combined(call: Call, function: Any, total: Array, row: Array) -> Array:
    """The function applied element by element."""
    result = np.empty(row.shape, row.dtype)
    for place in np.ndindex(*row.shape):
        result[place] = call(function, np.asarray(total[place]), np.asarray(row[place]))
    return result
