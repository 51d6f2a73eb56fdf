"""Loads and stores of kernels that depend on conditions and on indices that are read, and checks of such indices.

    %i = loadAt %indices: *<16 x i64> at (0) lanes 16 steps (1)
    checkIndex %i: <16 x i64> of 100
    %all = literal true: bool
    %x = loadWhere %all: bool, %table: *<100 x f32> at (d0) lanes 16 of %i: <16 x i64>

What `loadAt` and `storeAt` touch is inside of their buffers whatever is computed; here it is where a condition holds,
and elsewhere nothing is touched.  A coordinate may be a vector, with an index for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import DTypeError, IndexOutOfRangeError, RankError, ShapeError
from ..ir.effect import Effect
from ..ir.instruction import Instruction, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..ops.forms import Pointwise
from ..stage import Stage, Stages
from ..types import BOOL, I64, Array, PointerType, TensorType, Type, scalar
from .access_ops import IndexedAccess, PrefetchAt, buffer_of, check_active, require_inside
from .ops import Kernel

_SCHEDULE: Stages = frozenset({Stage.SCHEDULE})


@dataclass(frozen=True)
class _GuardedAccess(IndexedAccess):
    """The form of what reads or writes a buffer where a condition holds, at indices that may differ between lanes.

    Lane l lies at its own coordinates where these are vectors, and `l · steps[k]` further along axis k.
    """

    lanes: int = 0
    steps: tuple[int, ...] = ()
    active: int = 0

    def _check(self, condition: Type, buffer: Type, coordinates: Sequence[Type]) -> TensorType:
        tensor = buffer_of(self.name, buffer)
        if len(self.indices) != tensor.rank or len(self.steps) not in (0, tensor.rank):
            raise RankError(
                f"{self.name} takes {tensor.rank} indices for {tensor}, and as many steps or none"
            )
        check_active(self.name, self.lanes, self.active)
        wide = () if not self.lanes else ((self.lanes,),)
        for type, dtype in ((condition, BOOL), *((type, I64) for type in coordinates)):
            if type not in (scalar(dtype), *(TensorType(shape, dtype) for shape in wide)):
                raise DTypeError(f"{self.name} of {self.lanes} lanes takes no {type} as {dtype}")
        used = max((index.terms[-1][0] for index in self.indices if index.terms), default=-1)
        if used >= len(coordinates):
            raise RankError(f"{self.name} has {len(coordinates)} coordinates; there is no d{used}")
        return tensor

    def _where(
        self, condition: Array, buffer: Array, coordinates: Sequence[Array]
    ) -> tuple[Array, tuple[Array, ...]]:
        """Which of the active lanes touch an element, and where."""
        lanes = self.active or self.lanes or 1
        holds = np.broadcast_to(condition, self.lanes or 1)[:lanes]
        found: list[Array] = []
        for index, step in zip(self.indices, self.steps or (0,) * len(self.indices), strict=True):
            at = np.broadcast_to(index.evaluate(coordinates), self.lanes or 1)[:lanes]
            found.append((at + np.arange(lanes) * step)[holds])
        return holds, require_inside(tuple(found), buffer)


@dataclass(frozen=True)
class LoadWhere(_GuardedAccess):
    """The element of a buffer where the condition holds, and zero elsewhere; or a vector of `lanes` of them."""

    name: ClassVar[str] = "loadWhere"
    syntax: ClassVar[str] = (
        "loadWhere {condition}, {buffer} at {indices} [lanes {lanes}] [steps {steps}] "
        "[active {active}] [of {coordinates*}]"
    )
    effect: ClassVar[Effect] = Effect.READ
    first_buffer: ClassVar[int] = 1

    def infer(self, condition: Type, buffer: Type, *coordinates: Type) -> TensorType:
        tensor = self._check(condition, buffer, coordinates)
        return TensorType((self.lanes,) if self.lanes else (), tensor.dtype)

    def evaluate(self, condition: Array, buffer: Array, *coordinates: Array) -> Array:
        holds, where = self._where(condition, buffer, coordinates)
        found = np.zeros(self.lanes or 1, buffer.dtype)
        found[: holds.size][holds] = buffer[where]
        return found if self.lanes else found.reshape(())


@dataclass(frozen=True)
class StoreWhere(_GuardedAccess):
    """Writes a scalar, or each lane of a vector in turn, to the element of a buffer, where the condition holds."""

    name: ClassVar[str] = "storeWhere"
    syntax: ClassVar[str] = (
        "storeWhere {condition}, {value} to {buffer} at {indices} [lanes {lanes}] [steps {steps}] "
        "[active {active}] [of {coordinates*}]"
    )
    effect: ClassVar[Effect] = Effect.WRITE
    first_buffer: ClassVar[int] = 2

    def infer(
        self, condition: Type, value: Type, buffer: Type, *coordinates: Type
    ) -> tuple[Type, ...]:
        tensor = self._check(condition, buffer, coordinates)
        wanted = TensorType((self.lanes,) if self.lanes else (), tensor.dtype)
        if value != wanted:
            raise DTypeError(f"storeWhere writes a {wanted} here, not {value}")
        return ()

    def evaluate(
        self, condition: Array, value: Array, buffer: Array, *coordinates: Array
    ) -> tuple[()]:
        holds, where = self._where(condition, buffer, coordinates)
        values = np.broadcast_to(value, self.lanes or 1)[: holds.size][holds]
        if where:
            buffer[where] = values
        elif values.size:  # of the one element, the last lane
            buffer[...] = values[-1]
        return ()


@dataclass(frozen=True)
class IsInside(Pointwise):
    """Whether an index is one of 0 … extent - 1."""

    name: ClassVar[str] = "isInside"
    syntax: ClassVar[str] = "isInside {index} of {extent}"
    stages: ClassVar[Stages] = _SCHEDULE
    cost: ClassVar[int] = 1
    extent: int = 0

    def infer(self, index: TensorType) -> TensorType:
        return _index_type(self.name, index).with_dtype(BOOL)

    def evaluate(self, index: Array) -> Array:
        return np.asarray((index >= 0) & (index < self.extent))


@dataclass(frozen=True)
class CheckIndex(Op):
    """Stops the program unless an index, or each of those in the active lanes, is one of 0 … extent - 1."""

    name: ClassVar[str] = "checkIndex"
    syntax: ClassVar[str] = "checkIndex {index} of {extent} [active {active}]"
    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    effect: ClassVar[Effect] = Effect.TRAP
    extent: int = 0
    active: int = 0

    def infer(self, index: Type) -> tuple[Type, ...]:
        type = _index_type(self.name, index)
        check_active(self.name, type.size if type.rank else 0, self.active)
        return ()

    def evaluate(self, index: Array) -> tuple[()]:
        given = np.ravel(index)[: self.active or None]
        wrong = given[(given < 0) | (given >= self.extent)]
        if wrong.size:
            raise IndexOutOfRangeError(
                f"index {int(wrong[0])} is out of range for an axis of extent {self.extent}"
            )
        return ()


@dataclass(frozen=True)
class ExtractLane(Pure):
    """One lane of a vector."""

    name: ClassVar[str] = "extractLane"
    syntax: ClassVar[str] = "extractLane {x} lane {lane}"
    stages: ClassVar[Stages] = _SCHEDULE
    lane: int = 0

    def infer(self, x: TensorType) -> TensorType:
        if x.rank != 1 or not 0 <= self.lane < x.shape[0]:
            raise ShapeError(f"extractLane: {x} has no lane {self.lane}")
        return scalar(x.dtype)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(x[self.lane])


@dataclass(frozen=True)
class FillBuffer(Op):
    """Sets all elements of a buffer to one number."""

    name: ClassVar[str] = "fillBuffer"
    syntax: ClassVar[str] = "fillBuffer {buffer} with {value}"
    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, buffer: Type, value: Type) -> tuple[Type, ...]:
        tensor = buffer_of(self.name, buffer)
        if value != scalar(tensor.dtype):
            raise DTypeError(f"fillBuffer takes a number of {tensor.dtype}, not {value}")
        return ()

    def evaluate(self, buffer: Array, value: Array) -> tuple[()]:
        buffer[...] = value
        return ()


@dataclass(frozen=True)
class CopyBuffer(Op):
    """Copies all elements of a buffer to another of its type, which may be the same one."""

    name: ClassVar[str] = "copyBuffer"
    syntax: ClassVar[str] = "copyBuffer {source} to {target}"
    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    effect: ClassVar[Effect] = Effect.READ | Effect.WRITE

    def infer(self, source: Type, target: Type) -> tuple[Type, ...]:
        if buffer_of(self.name, source) != buffer_of(self.name, target):
            raise DTypeError(f"copyBuffer cannot copy a {source} to a {target}")
        return ()

    def evaluate(self, source: Array, target: Array) -> tuple[()]:
        target[...] = source
        return ()


@dataclass(frozen=True)
class ReshapeBuffer(Pure):
    """The same buffer with other axes: its elements in their order."""

    name: ClassVar[str] = "reshapeBuffer"
    syntax: ClassVar[str] = "reshapeBuffer {buffer} as {type}"
    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    type: TensorType

    def infer(self, buffer: Type) -> PointerType:
        tensor = buffer_of(self.name, buffer)
        if (tensor.size, tensor.dtype) != (self.type.size, self.type.dtype):
            raise ShapeError(f"reshapeBuffer cannot give a {tensor} the axes of a {self.type}")
        return PointerType(self.type)

    def evaluate(self, buffer: Array) -> Array:
        return buffer.reshape(self.type.shape)


GUARDED: tuple[type[Op], ...] = (
    *(LoadWhere, StoreWhere, IsInside, CheckIndex),
    *(ExtractLane, FillBuffer, CopyBuffer, ReshapeBuffer),
)
"""The ops of this module, which only kernels have."""


def written_buffer(instruction: Instruction) -> Value | None:
    """The buffer that an instruction of a kernel writes to; a fetch, which counts as an effect, writes to none."""
    op = instruction.op
    if Effect.WRITE not in op.effect or isinstance(op, PrefetchAt):
        return None
    if isinstance(op, StoreWhere):
        return instruction.operands[op.first_buffer]
    return instruction.operands[0 if isinstance(op, FillBuffer) else 1]


def copied_operands(kernel: Instruction[Kernel]) -> dict[int, int]:
    """The operands that results of a kernel begin with, by the number of the result: it updates these."""
    block, count = kernel.regions[0].entry, len(kernel.operands)
    numbers = {buffer: number for number, buffer in enumerate(block.arguments)}
    end = count + len(kernel.results)
    found: dict[int, int] = {}
    for one in block.instructions:
        if isinstance(one.op, CopyBuffer):
            source, target = [numbers.get(buffer, end) for buffer in one.operands]
            if source < count <= target < end:
                found[target - count] = source
    return found


def _index_type(name: str, type: Type) -> TensorType:
    if not isinstance(type, TensorType) or type.dtype != I64 or type.rank > 1:
        raise DTypeError(f"{name} takes an i64 or a vector of them, not {type}")
    return type
