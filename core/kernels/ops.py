"""The ops of a kernel: loops with decided bounds, loads and stores at affine indices, vectors.

    %c = kernel of %x: <64 x 784 x f32>, %w: <784 x 16 x f32> writing <64 x 16 x f32> {
    'body(%a: *<64 x 784 x f32>, %b: *<784 x 16 x f32>, %c: *<64 x 16 x f32>):
        loop from 0 upto 64 by 1 {
        'loop(%i: i64):
            %zero = literal 0: <16 x f32>
            %sum = loop from 0 upto 784 by 1 carrying %zero: <16 x f32> {
            'loop(%k: i64, %s: <16 x f32>):
                %u = loadAt %a: *<64 x 784 x f32> at (d0, d1) of %i: i64, %k: i64
                %v = loadAt %b: *<784 x 16 x f32> at (d0, 0) lanes 16 steps (0, 1) of %k: i64
                %t = fma %u: f32, %v: <16 x f32>, %s: <16 x f32>
                yield %t: <16 x f32>
            }
            storeAt %sum: <16 x f32> to %c: *<64 x 16 x f32> at (d0, 0) steps (0, 1) of %i: i64
            yield
        }
        yield
    }

A kernel is a value like any other: it reads its operands and makes its results.  Inside, all of them are *buffers*,
pointers `*<… x T>` of static shape, operands first.  A result holds anything until it is written; a buffer of an
operand is not written, unless a result is made in its place.

Values inside are scalars and vectors: a vector of 16 lanes is a `<16 x f32>`, and the elementwise ops of the IR
compute with it, a scalar among its operands counting for each lane.  Indices are i64; those of a load or store are
affine in its *coordinates*, the last operands, which the text calls d0, d1, ….
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self, TypeGuard

import numpy as np

from ..errors import DTypeError, RankError, ShapeError
from ..ir.effect import Effect
from ..ir.instruction import Instruction, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.flows import ControlPath, FlowLayout, KnownDecider, Role, Structured
from ..ops.forms import Pointwise
from ..ops.fused import fused_multiply_add
from ..ops.nest import Affine
from ..stage import Stage, Stages
from ..types import (
    F32,
    F64,
    I64,
    Array,
    PointerType,
    TensorType,
    Type,
    broadcast_shapes,
    scalar,
)
from .access_ops import (
    LoadAt,
    PrefetchAt,
    StoreAt,
    StreamInto,
    _check_coordinates,
)

_SCHEDULE: Stages = frozenset({Stage.SCHEDULE})


@dataclass(frozen=True)
class Kernel(Pure):
    """Runs its body once, on the buffers of its operands and of its results, which the body writes.

    `overwriting` are pairs (operand, result) that may have one buffer, if the operand is dead afterwards: each element
    is read before it is written, and at the same index.  `using` are buffers that it works with; of some of them each
    thread has one of its own: `private` says how many copies there are of each, 0 where all threads share it.  What a
    thread has written to its copy is there until its part of a parallel loop ends; no more threads run the loop than
    there are copies.
    """

    name: ClassVar[str] = "kernel"
    syntax: ClassVar[str] = (
        "kernel [of {operands*}] writing {outputs} [overwriting {overwriting}] [using {using}]"
        " [private {private}]"
    )
    stages: ClassVar[Stages] = _SCHEDULE
    bodies: ClassVar[tuple[str, ...]] = ("",)
    outputs: tuple[Type, ...] = ()
    overwriting: tuple[tuple[int, int], ...] = ()
    using: tuple[Type, ...] = ()
    private: tuple[int, ...] = ()

    def infer(self, *operands: TensorType) -> tuple[Type, ...]:
        for operand, result in self.overwriting:
            if not (0 <= operand < len(operands) and 0 <= result < len(self.outputs)):
                raise ShapeError(f"a kernel has no operand {operand} or no result {result}")
            if operands[operand] != self.outputs[result]:
                raise ShapeError(
                    f"a {self.outputs[result]} cannot lie in the place of a {operands[operand]}"
                )
        return self.outputs

    def scratch(self, instruction: Instruction) -> tuple[int, ...]:
        return tuple(
            max(copies, 1) * copy_bytes(type)
            for type, copies in zip(self.using, self.copies, strict=True)
            if isinstance(type, TensorType)
        )

    @property
    def copies(self) -> tuple[int, ...]:
        """How many threads have one of each of the buffers `using`, 0 where all share it."""
        return self.private or (0,) * len(self.using)

    def flops(self, instruction: Instruction) -> int:
        return sum(count * _lanes(i) for count, i in executed(instruction) if _is_computed(i))

    def nanoseconds(self, instruction: Instruction) -> float:
        return body_nanoseconds(instruction)


_LINE = 64
"""Bytes of a cache line: threads do not share those of what is private."""


def copy_bytes(type: TensorType) -> int:
    """From a private buffer of one thread to that of the next one."""
    return -(-type.bytes // _LINE) * _LINE


_INSTRUCTION = 0.15
"""Nanoseconds of an instruction of a vector or scalar: two begin per cycle, at 3.3 GHz."""

_REGISTER = 64
"""Bytes of a wide register."""


@dataclass(frozen=True)
class CountedLoop(Structured):
    """The form of loops over `indices`, one after the other.

    What is carried is given to the body behind the index, replaced by what the body yields, and its result at the end.
    """

    stages: ClassVar[Stages] = _SCHEDULE
    bodies: ClassVar[tuple[str, ...]] = ("",)
    layouts = MappingProxyType(
        {
            Role.INDEX: FlowLayout(arguments=(0,)),
            Role.CARRIED: FlowLayout(operands=1, arguments=(0,), yields=(0,), has_result=True),
        }
    )
    paths: ClassVar[tuple[ControlPath, ...]] = ((None, 0), (None, None), (0, 0), (0, None))
    is_loop: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    lower: int = 0
    upper: int = 0

    @property
    @abc.abstractmethod
    def indices(self) -> range:
        """Those of its iterations, or what they are some of."""

    @property
    def count(self) -> int:
        """How many iterations it has, at most."""
        indices = self.indices  # len(indices) may overflow
        return max(0, -((indices.start - indices.stop) // indices.step))

    def roles(self, operands: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
        yield Role.INDEX, scalar(I64)
        yield from ((Role.CARRIED, type) for type in operands[self.layouts[Role.INDEX].operands :])

    def with_roles(self, roles: Sequence[tuple[Role, Type]]) -> Self:
        return replace(self)

    def trips(self, *deciders: KnownDecider) -> int | None:
        return self.count


@dataclass(frozen=True)
class Loop(CountedLoop):
    """Runs its body for the indices `lower`, `lower + step`, … below `upper`, one after the other.

    What it carries is given to the body behind the index, replaced by what the body yields, and its result at the end.
    Where the iterations are independent, a loop that carries nothing may be `parallel`: up to so many iterations at a
    time are run by one thread (0 for a loop of one thread).
    """

    name: ClassVar[str] = "loop"
    syntax: ClassVar[str] = (
        "loop from {lower} upto {upper} by {step} [parallel {grain}] [carrying {carried*}]"
    )
    step: int = 1
    grain: int = 0

    @property
    def indices(self) -> range:
        return range(self.lower, self.upper, self.step)

    def infer(self, *carried: Type) -> tuple[Type, ...]:
        if self.step < 1:
            raise ShapeError(f"a loop steps forward, not by {self.step}")
        if self.grain < 0 or (self.grain and carried):
            raise ShapeError(f"a parallel loop carries nothing, not {len(carried)} values")
        return self.result_types(carried)

    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        return ()

    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        if self.count:
            yield None, 0
            yield 0, None
        if self.count > 1:
            yield 0, 0
        if not self.count:
            yield None, None


@dataclass(frozen=True)
class BoundedLoop(CountedLoop):
    """Runs its body for those of the indices `lower`, `lower + 1`, … below `upper` that lie from `first` upto `stop`.

    These bounds are computed: where a triangle of a matrix is gone through, or nothing is to be done.  Whatever they
    are, the indices are some of `lower` … `upper` - 1, which is what says that loads and stores stay in their buffers.
    """

    name: ClassVar[str] = "boundedLoop"
    syntax: ClassVar[str] = (
        "boundedLoop {first} upto {stop} within {lower} upto {upper} [carrying {carried*}]"
    )
    layouts = MappingProxyType(
        {**CountedLoop.layouts, Role.INDEX: FlowLayout(operands=2, arguments=(0,))}
    )

    @property
    def indices(self) -> range:
        return range(self.lower, self.upper)

    def infer(self, first: Type, stop: Type, *carried: Type) -> tuple[Type, ...]:
        for bound in (first, stop):
            if bound != scalar(I64):
                raise DTypeError(f"a boundedLoop counts in i64, not in {bound}")
        return self.result_types((first, stop, *carried))

    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        return instruction.operands[:2]

    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        first, stop = deciders
        begin = self.lower if first is None else max(self.lower, first)
        end = self.upper if stop is None else min(self.upper, stop)
        if end > begin:
            yield None, 0
            yield 0, None
        if end > begin + 1:
            yield 0, 0
        if first is None or stop is None or end <= begin:
            yield None, None


class Fma(Pointwise):
    """x · y + z with one rounding, of f32 or f64; scalars among vectors count for each lane."""

    name: ClassVar[str] = "fma"
    syntax: ClassVar[str] = "fma {x}, {y}, {z}"
    stages: ClassVar[Stages] = _SCHEDULE
    cost: ClassVar[int] = 1

    def infer(self, x: TensorType, y: TensorType, z: TensorType) -> TensorType:
        if x.dtype not in (F32, F64) or not x.dtype == y.dtype == z.dtype:
            raise DTypeError(
                f"fma takes three numbers of f32 or of f64, not {x.dtype}, {y.dtype} and {z.dtype}"
            )
        return TensorType(broadcast_shapes([x.shape, y.shape, z.shape]), x.dtype)

    def evaluate(self, x: Array, y: Array, z: Array) -> Array:
        return fused_multiply_add(x, y, z)


@dataclass(frozen=True)
class ReduceLanes(Pure):
    """The lanes of a vector combined: the first half with the second, that again by halves, until one is left."""

    name: ClassVar[str] = "reduceLanes"
    syntax: ClassVar[str] = "reduceLanes {x} by {combinator}"
    stages: ClassVar[Stages] = _SCHEDULE
    combinator: Combinator = Combinator.ADD

    def infer(self, x: TensorType) -> TensorType:
        if x.rank != 1 or x.shape[0] & (x.shape[0] - 1) or not x.shape[0]:
            raise RankError(f"reduceLanes takes a vector of 2, 4, 8, … lanes, not {x}")
        return scalar(x.dtype)

    def evaluate(self, x: Array) -> Array:
        while x.shape[0] > 1:
            half = x.shape[0] // 2
            x = self.combinator.reduce(np.stack([x[:half], x[half:]]), (0,))
        return np.asarray(x[0])


@dataclass(frozen=True)
class Shuffle(Pure):
    """Lanes of x and y, chosen by constants: of n lanes, 0 … n - 1 are those of x, n … 2n - 1 those of y."""

    name: ClassVar[str] = "shuffle"
    syntax: ClassVar[str] = "shuffle {x}, {y} lanes {chosen}"
    stages: ClassVar[Stages] = _SCHEDULE
    chosen: tuple[int, ...]

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        if x.rank != 1 or x != y:
            raise RankError(f"shuffle takes two vectors of one type, not {x} and {y}")
        if not self.chosen or not all(0 <= lane < 2 * x.shape[0] for lane in self.chosen):
            raise ShapeError(f"shuffle: lanes {list(self.chosen)} are not all of two {x}")
        return x.with_shape((len(self.chosen),))

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.concatenate([x, y])[list(self.chosen)]


@dataclass(frozen=True)
class AffineIndex(Pure):
    """A number that is affine in i64 coordinates: what loops that were split call their old index."""

    name: ClassVar[str] = "affineIndex"
    syntax: ClassVar[str] = "affineIndex {expression} [of {coordinates*}]"
    stages: ClassVar[Stages] = _SCHEDULE
    expression: Affine

    def infer(self, *coordinates: Type) -> TensorType:
        _check_coordinates(self.name, (self.expression,), coordinates)
        return scalar(I64)

    def evaluate(self, *coordinates: Array) -> Array:
        return np.asarray(self.expression.evaluate(coordinates), np.int64)


@dataclass(frozen=True)
class LaneNumbers(Pure):
    """The vector 0, step, 2 · step, … of i64: what the lanes add to a coordinate."""

    name: ClassVar[str] = "laneNumbers"
    syntax: ClassVar[str] = "laneNumbers {lanes} by {step}"
    stages: ClassVar[Stages] = _SCHEDULE
    lanes: int = 1
    step: int = 1

    def infer(self) -> TensorType:
        return TensorType((self.lanes,), I64)

    def evaluate(self) -> Array:
        return np.arange(self.lanes, dtype=np.int64) * self.step


@dataclass(frozen=True)
class AllocateLocal(Op):
    """A buffer of the kernel's own, on the stack, whose elements hold anything until they are written."""

    name: ClassVar[str] = "allocateLocal"
    syntax: ClassVar[str] = "allocateLocal {type}"
    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = _SCHEDULE
    effect: ClassVar[Effect] = Effect.ALLOCATE
    type: TensorType

    def infer(self) -> PointerType:
        return PointerType(self.type)

    def evaluate(self) -> Array:
        return np.zeros(self.type.shape, self.type.dtype.numpy)


KERNEL: tuple[type[Op], ...] = (
    *(Kernel, Loop, BoundedLoop, LoadAt, StoreAt, PrefetchAt, StreamInto, AllocateLocal),
    *(Fma, ReduceLanes, Shuffle, AffineIndex, LaneNumbers),
)
"""The ops that only kernels have, and the kernel itself."""


def is_kernel(instruction: Instruction) -> TypeGuard[Instruction[Kernel]]:
    """Whether it is a kernel."""
    return isinstance(instruction.op, Kernel)


def executed(kernel: Instruction) -> Iterator[tuple[int, Instruction]]:
    """Every instruction of a kernel, with how often it is run, at most."""
    pending = [(1, region.entry) for region in kernel.regions]
    while pending:
        count, block = pending.pop()
        for instruction in block.instructions:
            yield count, instruction
            if isinstance(instruction.op, CountedLoop):
                inner = count * instruction.op.count
                pending += [(inner, region.entry) for region in instruction.regions]


def body_nanoseconds(instruction: Instruction) -> float:
    """About how long the body of a kernel or of a loop takes, run once."""
    return _INSTRUCTION * sum(
        count * _registers(one) for count, one in executed(instruction) if not one.regions
    )


def vector_cost(instruction: Instruction) -> int:
    """What is computed in a loop costs so many additions of vectors (`Pointwise.cost`)."""
    return sum(count * _registers(one) * one.op.cost for count, one in executed(instruction))


def _is_computed(instruction: Instruction) -> bool:
    return bool(instruction.results) and not isinstance(instruction.op, LoadAt | AffineIndex)


def _lanes(instruction: Instruction) -> int:
    return instruction.results[0].tensor.size


def _registers(instruction: Instruction) -> int:
    """How many registers the widest of its vectors takes, of a machine with wide ones."""
    most = _REGISTER
    for value in (*instruction.operands, *instruction.results):
        type = value.type
        if isinstance(type, TensorType) and type.shape:  # scalars are most of them
            most = max(most, type.bytes)
    return -(-most // _REGISTER)
