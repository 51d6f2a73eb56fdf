"""Builds the bodies of kernels: loops by `with`, loads and stores at sums of indices.

build = KernelBuilder([x.type, w.type], [TensorType((64, 16), F32)])
(a, b), (c,) = build.operands, build.outputs
with build.loop(64) as rows, build.loop(16) as columns:
    i, j = rows.index, columns.index
    with build.loop(784, carrying=[build.constant(F32, 0)]) as inner:
        (s,) = inner.carried
        u, v = build.load(a, i, inner.index), build.load(b, inner.index, j)
        inner.yields(build.emit(Fma(), u, v, s))
    build.store(inner.results[0], c, i, j)
(product,) = build.kernel(b, x, w)
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeAlias

from ..ir import Builder
from ..ir.instruction import Block, Emitter, Instruction, Op, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..ops.nest import Affine, Yield
from ..types import DType, PointerType, TensorType, Type, scalar
from .access_ops import LoadAt, PrefetchAt, StoreAt, StreamInto, buffer_of
from .guarded_ops import (
    CheckIndex,
    CopyBuffer,
    FillBuffer,
    LoadWhere,
    ReshapeBuffer,
    StoreWhere,
)
from .indices import IndexSum, linear_of, maps_of
from .loops import make_index, make_loop
from .ops import AffineIndex, AllocateLocal, BoundedLoop, CountedLoop, Kernel, Loop

AnyIndex: TypeAlias = Value | int | IndexSum


@dataclass
class LoopUnderConstruction:
    """A loop while its body is built, and its results afterwards."""

    index: Value
    carried: Sequence[Value] = ()
    yielded: Sequence[Value] = ()
    results: Sequence[Value] = ()
    loop: Instruction | None = None

    def yields(self, *values: Value) -> None:
        """What the iteration gives to the next, a value for each that is carried."""
        self.yielded = values


@dataclass
class KernelBuilder:
    """The body of a kernel of operands and results of these types; `emit` appends where the last open loop is."""

    operand_types: Sequence[TensorType]
    output_types: Sequence[TensorType]
    operands: list[Value] = field(init=False)
    """The buffers."""
    outputs: list[Value] = field(init=False)
    using: list[Value] = field(default_factory=list[Value])
    """Buffers that it works with."""
    block: Block = field(init=False)
    """The body."""
    _builder: Builder = field(init=False)

    def __post_init__(self) -> None:
        self.operands = [
            Value(PointerType(type), f"x{k}") for k, type in enumerate(self.operand_types)
        ]
        self.outputs = [
            Value(PointerType(type), f"y{k}") for k, type in enumerate(self.output_types)
        ]
        self.block = Block([*self.operands, *self.outputs], name="body")
        self._builder = Builder(self.block)

    def kernel(
        self,
        b: Emitter,
        *operands: Value,
        overwriting: tuple[tuple[int, int], ...] = (),
        copies: int = 0,
    ) -> tuple[Value, ...]:
        """Append the kernel, whose body is done, to a function; its results.

        Threads have so many `copies` of what it works with, or share that if it is 0.
        """
        self.block.instructions.append(Instruction(Yield(), (), ()))
        self.block.arguments += self.using
        scratch = tuple(buffer_of("kernel", buffer.type) for buffer in self.using)
        private = (copies,) * len(scratch) if copies else ()
        op = Kernel(tuple(self.output_types), overwriting, scratch, private)
        return b.emit_many(op, operands, (Region([self.block]),))

    def emit(self, op: Op, *operands: Value) -> Value:
        """Append an op of one result."""
        return self._builder.emit(op, *operands)

    def emit_typed(self, op: Op, type: Type, *operands: Value) -> Value:
        """The same where the type of the result is known: asking the op takes longer than all else."""
        instruction = Instruction(op, operands, ())
        result = Value(type, None, instruction)
        instruction.results = (result,)
        self._builder.block.instructions.append(instruction)
        return result

    def _act(self, op: Op, *operands: Value) -> None:
        """Append an op without results."""
        self._builder.block.instructions.append(Instruction(op, operands, ()))

    def constant(self, dtype: DType, number: Any) -> Value:
        """Append a scalar constant."""
        return self.emit(splat(scalar(dtype), number))

    @contextmanager
    def loop(
        self,
        upper: int,
        *,
        lower: int = 0,
        step: int = 1,
        grain: int = 0,
        carrying: Sequence[Value] = (),
    ) -> Generator[LoopUnderConstruction]:
        """Append a loop; what is emitted under `with` stands in its body."""
        with self._loop(Loop(lower, upper, step, grain), (), carrying) as made:
            yield made

    @contextmanager
    def bounded_loop(
        self,
        first: Value,
        stop: Value,
        upper: int,
        *,
        lower: int = 0,
        carrying: Sequence[Value] = (),
    ) -> Generator[LoopUnderConstruction]:
        """The same where the bounds are computed, within `lower` upto `upper`."""
        with self._loop(BoundedLoop(lower, upper), (first, stop), carrying) as made:
            yield made

    @contextmanager
    def _loop(
        self, op: CountedLoop, bounds: Sequence[Value], carrying: Sequence[Value]
    ) -> Generator[LoopUnderConstruction]:
        around = self._builder.block
        carried = [Value(value.type, value.name) for value in carrying]
        made = LoopUnderConstruction(make_index(), carried)
        body = Block([made.index, *carried], name="loop")
        self._builder.block = body
        yield made
        body.instructions.append(Instruction(Yield(), tuple(made.yielded), ()))
        self._builder.block = around
        made.loop = make_loop(op, (*bounds, *carrying), body, carrying)
        made.results = made.loop.results
        around.instructions.append(made.loop)

    def append(self, instructions: Iterable[Instruction]) -> None:
        """Append instructions that have been made elsewhere."""
        self._builder.block.instructions += instructions

    def scratch(self, type: TensorType) -> Value:
        """One more buffer that the kernel works with, beside operands and results."""
        self.using.append(Value(PointerType(type), f"s{len(self.using)}"))
        return self.using[-1]

    def local(self, type: TensorType) -> Value:
        """Append a buffer of the kernel's own."""
        return self.emit(AllocateLocal(type))

    def load(
        self,
        buffer: Value,
        *indices: AnyIndex,
        lanes: int = 0,
        steps: tuple[int, ...] = (),
        active: int = 0,
    ) -> Value:
        """Append the load of an element, or of a vector."""
        maps, coordinates = _maps(indices)
        type = TensorType((lanes,) if lanes else (), buffer_of("loadAt", buffer.type).dtype)
        return self.emit_typed(LoadAt(maps, lanes, steps, active), type, buffer, *coordinates)

    def store(
        self,
        value: Value,
        buffer: Value,
        *indices: AnyIndex,
        steps: tuple[int, ...] = (),
        active: int = 0,
    ) -> None:
        """Append the store of an element, or of a vector."""
        maps, coordinates = _maps(indices)
        self._act(StoreAt(maps, steps, active), value, buffer, *coordinates)

    def load_where(
        self,
        condition: Value,
        buffer: Value,
        *indices: AnyIndex,
        lanes: int = 0,
        steps: tuple[int, ...] = (),
        active: int = 0,
    ) -> Value:
        """The same where a condition holds; zeros elsewhere."""
        maps, coordinates = _maps(indices)
        type = TensorType((lanes,) if lanes else (), buffer_of("loadWhere", buffer.type).dtype)
        op = LoadWhere(maps, lanes, steps, active)
        return self.emit_typed(op, type, condition, buffer, *coordinates)

    def store_where(
        self,
        condition: Value,
        value: Value,
        buffer: Value,
        *indices: AnyIndex,
        steps: tuple[int, ...] = (),
        active: int = 0,
    ) -> None:
        """The same where a condition holds."""
        maps, coordinates = _maps(indices)
        op = StoreWhere(maps, value.tensor.size if value.tensor.rank else 0, steps, active)
        self._act(op, condition, value, buffer, *coordinates)

    def check(self, index: Value, extent: int, *, active: int = 0) -> None:
        """Append that the program stops unless an index is inside of an axis."""
        self._act(CheckIndex(extent, active), index)

    def fill(self, buffer: Value, number: Value) -> None:
        """Append that all elements of a buffer become a number."""
        self._act(FillBuffer(), buffer, number)

    def copy(self, source: Value, target: Value) -> None:
        """Append that a buffer is copied to another."""
        self._act(CopyBuffer(), source, target)

    def stream(self, source: Value, target: Value, index: AnyIndex) -> None:
        """Append that a buffer is copied to the elements of another from an index on, past the caches."""
        maps, coordinates = _maps((index,))
        self._act(StreamInto(maps), source, target, *coordinates)

    def reshape(self, buffer: Value, type: TensorType) -> Value:
        """Append that a buffer has the axes of `type`; nothing if it has them."""
        if buffer_of("reshapeBuffer", buffer.type) == type:
            return buffer
        return self.emit_typed(ReshapeBuffer(type), PointerType(type), buffer)

    def prefetch(self, buffer: Value, *indices: AnyIndex) -> None:
        """Append that an element is brought to the nearest cache."""
        maps, coordinates = _maps(indices)
        self._builder.emit_many(PrefetchAt(maps), (buffer, *coordinates))

    def index_value(self, index: AnyIndex) -> Value:
        """Append a sum of indices as a value of i64."""
        maps, coordinates = _maps((index,))
        return self.emit(AffineIndex(maps[0]), *coordinates)


def _maps(indices: Sequence[AnyIndex]) -> tuple[tuple[Affine, ...], tuple[Value, ...]]:
    return maps_of([_linear(index) for index in indices])


def _linear(index: AnyIndex) -> IndexSum:
    if isinstance(index, int):
        return IndexSum(index, {})
    return linear_of(index) if isinstance(index, Value) else index
