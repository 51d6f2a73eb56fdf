"""Loads and stores of kernels at affine indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import DTypeError, IndexOutOfRangeError, RankError, ShapeError
from ..ir.effect import Effect
from ..ir.instruction import Op
from ..lazy_dataclass import dataclass
from ..ops.nest import Affine
from ..stage import Stage, Stages
from ..types import I64, Array, PointerType, TensorType, Type, scalar

_SCHEDULE: Stages = frozenset({Stage.SCHEDULE})


@dataclass(frozen=True)
class IndexedAccess(Op):
    """The form of what reads or writes a buffer at affine indices: of one element, or of one per lane.

    Lane l lies `l · steps[k]` further along axis k.  Of a vector only the first `active` lanes are touched, if that is
    not 0; the others are loaded as zeros.  All that is touched lies inside of the buffer.
    """

    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    first_buffer: ClassVar[int] = 0
    """The place of the buffer among the operands; coordinates stand behind it."""
    indices: tuple[Affine, ...] = ()

    def can_fail(self) -> bool:
        return False


@dataclass(frozen=True)
class LoadAt(IndexedAccess):
    """The element of a buffer at affine indices of the coordinates, or a vector of `lanes` elements."""

    name: ClassVar[str] = "loadAt"
    syntax: ClassVar[str] = (
        "loadAt {buffer} at {indices} [lanes {lanes}] [steps {steps}] [active {active}] [of {coordinates*}]"
    )
    effect: ClassVar[Effect] = Effect.READ
    lanes: int = 0
    steps: tuple[int, ...] = ()
    active: int = 0

    def infer(self, buffer: Type, *coordinates: Type) -> TensorType:
        tensor = buffer_of(self.name, buffer)
        check_access(self.name, tensor, self.indices, self.steps, coordinates)
        check_active(self.name, self.lanes, self.active)
        return TensorType((self.lanes,) if self.lanes else (), tensor.dtype)

    def evaluate(self, buffer: Array, *coordinates: Array) -> Array:
        if not self.lanes:
            return np.array(buffer[require_inside(_positions(self.indices, coordinates), buffer)])
        found = np.zeros(self.lanes, buffer.dtype)
        where = _lane_positions(self, self.lanes, coordinates)
        found[: self.active or self.lanes] = buffer[require_inside(where, buffer)]
        return found


@dataclass(frozen=True)
class StoreAt(IndexedAccess):
    """Writes a scalar to the element of a buffer at affine indices of the coordinates, or a vector to one per lane."""

    name: ClassVar[str] = "storeAt"
    syntax: ClassVar[str] = (
        "storeAt {value} to {buffer} at {indices} [steps {steps}] [active {active}] [of {coordinates*}]"
    )
    effect: ClassVar[Effect] = Effect.WRITE
    first_buffer: ClassVar[int] = 1
    steps: tuple[int, ...] = ()
    active: int = 0

    def infer(self, value: Type, buffer: Type, *coordinates: Type) -> tuple[Type, ...]:
        tensor = buffer_of(self.name, buffer)
        check_access(self.name, tensor, self.indices, self.steps, coordinates)
        if not isinstance(value, TensorType) or value.rank > 1 or value.dtype != tensor.dtype:
            raise DTypeError(f"storeAt writes scalars and vectors of {tensor.dtype}, not {value}")
        if value.rank == 1:
            check_active(self.name, value.shape[0], self.active)
        return ()

    def evaluate(self, value: Array, buffer: Array, *coordinates: Array) -> tuple[()]:
        if not value.ndim:
            buffer[require_inside(_positions(self.indices, coordinates), buffer)] = value
        else:
            where = _lane_positions(self, value.shape[0], coordinates)
            buffer[require_inside(where, buffer)] = value[: self.active or value.shape[0]]
        return ()


@dataclass(frozen=True)
class PrefetchAt(IndexedAccess):
    """Has the element of a buffer at affine indices brought to the nearest cache; what is outside is not touched."""

    name: ClassVar[str] = "prefetchAt"
    syntax: ClassVar[str] = "prefetchAt {buffer} at {indices} [of {coordinates*}]"
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, buffer: Type, *coordinates: Type) -> tuple[Type, ...]:
        tensor = buffer_of(self.name, buffer)
        check_access(self.name, tensor, self.indices, (), coordinates)
        return ()

    def evaluate(self, buffer: Array, *coordinates: Array) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class StreamInto(IndexedAccess):
    """Copies all elements of a buffer, in their order, to those of another from an affine index of the coordinates on.

    Both have one axis.  It writes whole lines of memory, wherever they begin, past the caches (nontemporal stores): for
    what is too much to be read again while it is there.
    """

    name: ClassVar[str] = "streamInto"
    syntax: ClassVar[str] = "streamInto {source} to {buffer} at {indices} [of {coordinates*}]"
    effect: ClassVar[Effect] = Effect.READ | Effect.WRITE
    first_buffer: ClassVar[int] = 1

    def infer(self, source: Type, buffer: Type, *coordinates: Type) -> tuple[Type, ...]:
        copied, tensor = buffer_of(self.name, source), buffer_of(self.name, buffer)
        check_access(self.name, tensor, self.indices, (), coordinates)
        if copied.rank != 1 or tensor.rank != 1 or copied.dtype != tensor.dtype:
            raise DTypeError(f"streamInto cannot copy a {source} to a part of a {buffer}")
        return ()

    def evaluate(self, source: Array, buffer: Array, *coordinates: Array) -> tuple[()]:
        (first,) = _positions(self.indices, coordinates)
        where = require_inside((np.arange(first, first + len(source)),), buffer)
        buffer[where] = source
        return ()


def buffer_of(name: str, type: Type) -> TensorType:
    """The tensor that a buffer of this type holds."""
    if not isinstance(type, PointerType) or not isinstance(type.pointee, TensorType):
        raise DTypeError(f"{name} takes a buffer, the pointer to a tensor, not a {type}")
    return type.pointee


def check_access(
    name: str,
    tensor: TensorType,
    indices: Sequence[Affine],
    steps: tuple[int, ...],
    coordinates: Sequence[Type],
) -> None:
    if len(indices) != tensor.rank:
        raise RankError(f"{name} takes {tensor.rank} indices for {tensor}, not {len(indices)}")
    if steps and len(steps) != tensor.rank:
        raise RankError(f"{name} takes a step for each axis of {tensor}, not {len(steps)}")
    _check_coordinates(name, indices, coordinates)


def _check_coordinates(name: str, indices: Sequence[Affine], coordinates: Sequence[Type]) -> None:
    if any(type != scalar(I64) for type in coordinates):
        raise DTypeError(f"coordinates of {name} are i64, not {', '.join(map(str, coordinates))}")
    used = max((index.terms[-1][0] for index in indices if index.terms), default=-1)
    if used >= len(coordinates):
        raise RankError(f"{name} has {len(coordinates)} coordinates; there is no d{used}")


def check_active(name: str, lanes: int, active: int) -> None:
    if lanes < 0 or not 0 <= active <= lanes:
        raise ShapeError(f"{name}: of {lanes} lanes {active} cannot be active")


def _positions(indices: Sequence[Affine], coordinates: Sequence[Array]) -> tuple[int, ...]:
    return tuple(int(index.evaluate(coordinates)) for index in indices)


def require_inside(where: tuple[Any, ...], buffer: Array) -> tuple[Any, ...]:
    """The positions, all of which are in the buffer: there is nothing beside it, as far as the evaluator knows."""
    for position, extent in zip(where, buffer.shape, strict=True):
        if np.any(np.asarray(position) < 0) or np.any(np.asarray(position) >= extent):
            raise IndexOutOfRangeError(
                f"a kernel touches element {np.asarray(position).tolist()} of an axis of {extent}"
            )
    return where


def _lane_positions(
    op: LoadAt | StoreAt, lanes: int, coordinates: Sequence[Array]
) -> tuple[Array, ...]:
    count = np.arange(op.active or lanes)
    steps = op.steps or (0,) * len(op.indices)
    first = _positions(op.indices, coordinates)
    return tuple(start + count * step for start, step in zip(first, steps, strict=True))
