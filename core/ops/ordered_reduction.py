"""Ordered reductions (folds): by a function of the program, or by a non-associative operation.

The function is a value of type (T, T) -> T on elements.  Elements are taken in row-major order of the axes that
are combined, the first of them first.  All results take their first element, one result after the other, then
all their second, and so on; this is the order of what the function does besides.

    reduce [a, b, c] by f init v       f(f(f(v, a), b), c)
    reduce [a, b, c] by f              f(f(a, b), c), and there must be an element
    reduce [a, b, c] by subtract       (a − b) − c

What these ops mean is said by `evaluate_by`, which is given a way to call functions; `core.passes.expand`
turns them into loops.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from ..errors import DTypeError, RankError, ShapeError
from ..ir.effect import Effect
from ..ir.instruction import Instruction, Op, Pure
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import I64, Array, FunctionType, TensorType, Type, scalar, tensor_bytes
from .arithmetic import Divide, FloorDivide, Modulo, Subtract, TruncateDivide
from .forms import Elementwise, check_axis
from .movement import check_axes
from .transcendental import Power
from .window import Padding, PaddingMode, WindowAxis, window_axes

_T = TypeVar("_T")

CallFunction: TypeAlias = Callable[[Any, Array, Array], Array]
"""(function value or operation, accumulated, element) to the result: how an evaluator calls."""

ORDERED: Mapping[str, Elementwise] = MappingProxyType(
    {
        op.name: op
        for op in (Subtract(), Divide(), TruncateDivide(), FloorDivide(), Modulo(), Power())
    }
)
"""The operations `(T, T) -> T` that are not associative, by name; the others are those of `Combinator`."""


class OrderedReduction(Op):
    """Combines elements by a function.

    Operands: the tensor, an initial value if there is one, and, though it is written second, last the
    function.
    """

    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = frozenset({Stage.RAW})
    effect: ClassVar[Effect] = Effect.CALL
    not_differentiable: ClassVar[str] = "it is expanded into a loop first, by the pass 'expand'"

    def parts(self, operands: Sequence[_T]) -> tuple[_T, Sequence[_T], _T | None]:
        """The tensor, the initial value if there is one, and the function if that is what combines."""
        if len(operands) not in (2, 3):
            raise RankError(
                f"{self._opcode} by a function takes a tensor, an initial value and the function"
            )
        return operands[0], operands[1:-1], operands[-1]

    def tensor_of(self, operands: Sequence[Type]) -> tuple[TensorType, bool]:
        """The type of the tensor, the other operands checked against it; whether there is an initial value."""
        x, init, function = self.parts(operands)
        if not isinstance(x, TensorType):
            raise DTypeError(f"{self._opcode} takes a tensor, not a {x}")
        element = scalar(x.dtype)
        self.check_combined(x, function)
        if init and init[0] != element:
            raise DTypeError(
                f"{self._opcode} of {x.words} starts from a {element}, not a {init[0]}"
            )
        return x, bool(init)

    def check_combined(self, x: TensorType, function: Type | None) -> None:
        """Raises: DTypeError when elements of `x` cannot be combined so."""
        element = scalar(x.dtype)
        expected = FunctionType((element, element), element)
        if function != expected:
            raise DTypeError(
                f"{self._opcode} of {x.words} combines by a {expected}, not a {function}"
            )

    def combine(self, call: CallFunction, function: Any, total: Array, row: Array) -> Array:
        """What was accumulated and the elements that follow, combined element by element."""
        result = np.empty(row.shape, row.dtype)
        for place in np.ndindex(*row.shape):
            result[place] = call(function, np.asarray(total[place]), np.asarray(row[place]))
        return result

    @abc.abstractmethod
    def evaluate_by(self, call: CallFunction, *operands: Any) -> Array:
        """The result, for operands as of the instruction."""

    @property
    def words(self) -> str:
        """What combines, in messages."""
        return "a function"

    @property
    def _opcode(self) -> str:
        return self.syntax.split()[0]

    def call_count(self, instruction: Instruction) -> int:
        return instruction.operands[0].tensor.size

    def bytes_moved(self, instruction: Instruction) -> int:
        return tensor_bytes(instruction.operands[0].type) + tensor_bytes(instruction.result.type)


class InOrder(Pure, OrderedReduction):
    """Combines elements by an operation of `ORDERED`.  Operands: the tensor, and the initial value if any."""

    by: Elementwise

    def parts(self, operands: Sequence[_T]) -> tuple[_T, Sequence[_T], _T | None]:
        if len(operands) not in (1, 2):
            raise RankError(f"{self._opcode} by {self.words} takes a tensor and an initial value")
        return operands[0], operands[1:], None

    def check_combined(self, x: TensorType, function: Type | None) -> None:
        if self.by not in ORDERED.values():
            known = ", ".join(ORDERED)
            raise DTypeError(f"{self._opcode} goes in order by {known}, not by {self.words}")
        self.by.infer(scalar(x.dtype), scalar(x.dtype))

    def combine(self, call: CallFunction, function: Any, total: Array, row: Array) -> Array:
        return call(self.by, total, row)

    @property
    def words(self) -> str:
        return self.by.name

    def flops(self, instruction: Instruction) -> int:
        return instruction.operands[0].tensor.size * self.by.cost


@dataclass(frozen=True)
class ReduceBy(OrderedReduction):
    """The elements along `axes`, which are left out of the result, combined by a function."""

    name: ClassVar[str] = "reduceBy"
    syntax: ClassVar[str] = "reduce {x} by {f} [init {init}] [along {axes}]"
    axes: tuple[int, ...] = ()

    def infer(self, *operands: Type) -> TensorType:
        x, starts = self.tensor_of(operands)
        check_axes("reduce", self.axes, x)
        if not starts and self.axes and self.count(x) == 0:
            raise ShapeError(f"reduce of no elements of {x.words} by {self.words} needs an init")
        return x.with_shape(n for axis, n in enumerate(x.shape) if axis not in self.axes)

    def count(self, x: TensorType) -> int:
        """How many elements are combined into one."""
        return math.prod(x.shape[axis] for axis in self.axes)

    def order(self, rank: int) -> tuple[int, ...]:
        """The axes that are combined, in order, then the others."""
        combined = sorted(self.axes)
        return (*combined, *(axis for axis in range(rank) if axis not in self.axes))

    def evaluate_by(self, call: CallFunction, *operands: Any) -> Array:
        x, init, function = self.parts(operands)
        if not self.axes and not init:
            return np.asarray(x)
        rows = np.transpose(x, self.order(x.ndim))
        rest = rows.shape[len(self.axes) :]
        rows = rows.reshape(math.prod(rows.shape[: len(self.axes)]), *rest)
        total, rows = (np.broadcast_to(init[0], rest), rows) if init else (rows[0], rows[1:])
        for row in rows:
            total = self.combine(call, function, total, row)
        return np.asarray(total)


@dataclass(frozen=True)
class ScanBy(OrderedReduction):
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
        x, starts = self.tensor_of(operands)
        check_axis("scan", self.axis, x)
        if self.exclusive and not starts:
            raise ShapeError(f"an exclusive scan by {self.words} needs an init")
        return x

    def evaluate_by(self, call: CallFunction, *operands: Any) -> Array:
        x, init, function = self.parts(operands)
        if not x.size:
            return np.asarray(x)
        rows = np.moveaxis(x, self.axis, 0)
        rows = rows[::-1] if self.reverse else rows
        found: list[Array] = []
        total = np.broadcast_to(init[0], rows.shape[1:]) if init else None
        for row in rows:
            if self.exclusive and total is not None:
                found.append(total)
            total = row if total is None else self.combine(call, function, total, row)
            if not self.exclusive:
                found.append(total)
        scanned = np.stack(found[::-1] if self.reverse else found)
        return np.moveaxis(scanned, 0, self.axis)


@dataclass(frozen=True)
class ReduceWindowBy(OrderedReduction):
    """The elements that a sliding window covers, combined by a function from an initial value.

    Windows stand as for `reduceWindow`; what they cover outside of the tensor is left out.
    """

    name: ClassVar[str] = "reduceWindowBy"
    syntax: ClassVar[str] = (
        "reduceWindow {x} by {f} init {init} dims {window} [strides {strides}] [padding {padding}]"
    )
    window: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    padding: Padding = PaddingMode.NONE

    def infer(self, *operands: Type) -> TensorType:
        x, starts = self.tensor_of(operands)
        if not starts:
            raise ShapeError(f"reduceWindow by {self.words} needs an init")
        return x.with_shape(pane.places for pane in self.panes(x))

    def panes(self, x: TensorType) -> list[WindowAxis]:
        """How windows stand along each axis."""
        return window_axes("reduceWindow", x, self.window, self.strides, self.padding)

    def evaluate_by(self, call: CallFunction, *operands: Any) -> Array:
        x, (init,), function = self.parts(operands)
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
                    total = np.asarray(result[place])
                    result[place] = self.combine(call, function, total, element)
        return result

    def call_count(self, instruction: Instruction) -> int:
        return instruction.result.tensor.size * math.prod(self.window)


@dataclass(frozen=True)
class ReduceInOrder(InOrder, ReduceBy):
    """The elements along `axes`, which are left out of the result, combined in order: (a − b) − c."""

    name: ClassVar[str] = "reduceInOrder"
    syntax: ClassVar[str] = "reduce {x} by {by} [init {init}] [along {axes}]"
    by: Elementwise = field(kw_only=True)


@dataclass(frozen=True)
class ScanInOrder(InOrder, ScanBy):
    """Running results of combining the elements along an axis in order; as of `scanBy`."""

    name: ClassVar[str] = "scanInOrder"
    syntax: ClassVar[str] = (
        "scan {x} by {by} [init {init}] along {axis} [reverse {reverse}] [exclusive {exclusive}]"
    )
    by: Elementwise = field(kw_only=True)


@dataclass(frozen=True)
class ReduceWindowInOrder(InOrder, ReduceWindowBy):
    """The elements that a sliding window covers, combined in order; as of `reduceWindowBy`."""

    name: ClassVar[str] = "reduceWindowInOrder"
    syntax: ClassVar[str] = (
        "reduceWindow {x} by {by} init {init} dims {window} [strides {strides}] [padding {padding}]"
    )
    by: Elementwise = field(kw_only=True)
