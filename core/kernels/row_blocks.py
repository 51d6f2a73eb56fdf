"""Kernels that compute matrix products and the nests over their rows by blocks of rows.

Attention is a product, whose rows are scores, a softmax of each, and a product with these:

    loop b {                                   matrices of the batch
        loop i by 32 {                         *blocks* of rows
            scores = q[i : i + 32] · kᵀ        tiles, in a buffer of 32 rows
            loop r from 0 upto 32 { … }        passes over row i + r (`rows`)
            y[i : i + 32] = weights · v        tiles
        }
    }

What is made of a block and read there alone is never larger than a block.  A product that sums over rows, as that of
a gradient does, adds what a block gives to its result.

1. A product of a block is written and tiled like any other, with buffers of its own; then its loads and stores are
   redirected to where its rows lie.
2. What is multiplied with transposed is copied once for a matrix, row by row as tiles read it (`pack`).
3. Threads share blocks of rows, or matrices of the batch, in a few runs, each of which has buffers of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import Any, Final

from ..compute.bodies import base_of
from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction, Value
from ..ir.instruction import Emitter
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.literal import splat
from ..ops.nest import Access, Output, build_nest, identity_access
from ..types import PointerType, Shape, TensorType, scalar
from .access_ops import buffer_of
from .build import KernelBuilder
from .indices import BufferAccess, IndexSum, access_of, move_access
from .loops import inside
from .pack import Panel, write_panel
from .products import Epilogue, build_product
from .row_writer import Rows, RowWriter
from .rows import RowPlan, operands_of, write_passes
from .tile_sizes import Registers
from .tiles import tile_once

_NONE: Final = IndexSum(0, {})

_NEAR: Final = 16 * 1024
"""Bytes of a right operand whose columns all tiles of a block go over, one after the other: half of a near cache."""

_LEAST_VECTORS: Final = 4
"""Columns of those: as many as tiles have."""


@dataclass(frozen=True)
class RowBlockPlan:
    """Nests over rows, with products before them that make what they read, and products behind that read their rows.

    The last axis of `rows` goes by blocks of `size`.  Results in `local` are read by nothing else; one that has
    another's name there lies in its place.  So many `runs` are shared by threads: of blocks, or of the first axis of
    the batch.
    """

    rows: Shape
    nests: RowPlan
    before: Sequence[Instruction[MatrixProduct]]
    behind: Sequence[Instruction[MatrixProduct]]
    local: Mapping[Value, Value]
    size: int
    runs: int = 1
    shares_blocks: bool = False

    @property
    def products(self) -> Sequence[Instruction[MatrixProduct]]:
        return (*self.before, *self.behind)

    def operands(self) -> list[Value]:
        """What the kernel reads."""
        made = {*self.local, *self.outputs()}
        found = [*operands_of(self.nests), *(x for one in self.products for x in one.operands)]
        return list(dict.fromkeys(x for x in found if base_of(x) not in made))

    def outputs(self) -> list[Value]:
        """What it makes."""
        kept = [x for x in self.nests.outputs if x not in self.local]
        return [*kept, *(product.result for product in self.behind)]


@dataclass(frozen=True)
class VectorUnit:
    """What the writer has to know of the target."""

    vector_bytes: int
    registers: int
    has_fma: bool
    unrolls: bool = True
    """Whether several steps of sums are written one after the other."""

    def registers_of(self, type: TensorType) -> Registers:
        """The vector registers, for elements of a tensor."""
        lanes = max(1, self.vector_bytes // type.dtype.bytes)
        return Registers(self.registers, lanes, self.unrolls)


def build_row_blocks(b: Emitter, plan: RowBlockPlan, unit: VectorUnit) -> tuple[Value, ...]:
    """Emit the kernel of a plan; its results are `plan.outputs()`.

    Raises: IllegalRewrite when a nest cannot be a part of it.
    """
    operands, outputs = plan.operands(), plan.outputs()
    build = KernelBuilder([x.tensor for x in operands], [x.tensor for x in outputs])
    buffers = dict(zip([*operands, *outputs], [*build.operands, *build.outputs], strict=True))
    writer = _BlockWriter(build, plan, unit, buffers)
    writer.allocate()
    writer.write()
    return build.kernel(b, *operands)


@dataclass(frozen=True)
class _View:
    """A matrix in a buffer: the indices before its last two, and what is added to those."""

    buffer: Value
    first: tuple[IndexSum, ...] = ()
    corner: tuple[IndexSum, ...] = ()
    stride: int = 0
    """Of a buffer that has all rows in its last axis: how far apart they are."""


@dataclass
class _BlockWriter:
    """Writes the loops around blocks, and a block."""

    build: KernelBuilder
    plan: RowBlockPlan
    unit: VectorUnit
    buffers: Mapping[Value, Value]
    rooms: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The buffers of a block, by the value that lies there."""
    room_of_row: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Those of a row."""
    turned: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Those of right operands that are transposed."""
    sums: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Those of products over rows, where runs of blocks have one each."""
    batch: list[IndexSum] = field(default_factory=list[IndexSum])
    run: IndexSum = _NONE

    def allocate(self) -> None:
        """The buffers of blocks, rows and packed operands, of each run."""
        plan = self.plan
        matrices = 1 if plan.shares_blocks else plan.runs
        for product in plan.products:
            result = product.result.tensor
            if product.op.transpose_a and plan.shares_blocks and plan.runs > 1:
                shape = (plan.runs, *result.shape[-2:])
                self.sums[product.result] = self.build.scratch(result.with_shape(shape))
            if product.op.transpose_b:
                right = product.operands[1]
                columns, rows = right.tensor.shape[-2:]
                shape = (matrices, rows * self._width(right, columns))
                self.turned[right] = self.build.scratch(right.tensor.with_shape(shape))
        for value, place in plan.local.items():
            if place is value:
                self.rooms[value] = self._room(value, plan.runs, plan.size, value.tensor.shape[-1])
        for value, home in plan.nests.homes.items():
            if home is None:
                shape = (plan.runs, plan.nests.length_of(value))
                self.room_of_row[value] = self.build.scratch(value.tensor.with_shape(shape))

    def _room(self, like: Value, runs: int, rows: int, columns: int) -> Value:
        """A buffer for so many rows of each run."""
        shape = (runs, rows, self._width(like, columns))
        return self.build.scratch(like.tensor.with_shape(shape))

    def _width(self, like: Value, columns: int) -> int:
        """How far apart rows lie, in whole vectors.

        One vector is left out: rows 4 KB apart exclude each other from the nearest cache.
        """
        lanes = self.unit.registers_of(like.tensor).lanes
        return (-(-columns // lanes) + 1) * lanes

    def write(self) -> None:
        """The loops over the batch, and over blocks."""
        plan, build = self.plan, self.build
        with ExitStack() as loops:
            for extent in plan.rows[:-1]:
                shared = plan.runs > 1 and not plan.shares_blocks and self.run is _NONE
                if extent == 1:
                    self.batch.append(_NONE)
                elif shared:
                    each = extent // plan.runs
                    run = loops.enter_context(build.loop(plan.runs, grain=1))
                    self.run = IndexSum(0, {run.index: 1})
                    matrix = loops.enter_context(build.loop(each))
                    self.batch.append(IndexSum(0, {run.index: each, matrix.index: 1}))
                else:
                    matrix = loops.enter_context(build.loop(extent))
                    self.batch.append(IndexSum(0, {matrix.index: 1}))
            self._write_matrix()

    @property
    def _matrix_run(self) -> IndexSum:
        """The run that a matrix belongs to, the one and only if runs are of blocks."""
        return _NONE if self.plan.shares_blocks else self.run

    def _write_matrix(self) -> None:
        """All rows of a matrix."""
        plan, build = self.plan, self.build
        summed = [product.result for product in plan.behind if product.op.transpose_a]
        for result in summed:
            if result in self.sums:
                with build.loop(plan.runs) as run:
                    first = (IndexSum(0, {run.index: 1}),)
                    self._write_zeros(result, _View(self.sums[result], first))
            else:
                self._write_zeros(result, self._matrix_of(result, result.tensor))
        for product in plan.products:
            if product.op.transpose_b:
                self._write_turned(product.operands[1], product.result.tensor)
        blocks, left = divmod(plan.rows[-1], plan.size)
        length = blocks * plan.size
        if plan.shares_blocks:
            each = length // plan.runs
            with build.loop(plan.runs, grain=1) as run:
                self.run = IndexSum(0, {run.index: 1})
                with build.loop(each, step=plan.size) as block:
                    self._write_block(IndexSum(0, {run.index: each, block.index: 1}), plan.size)
            self.run = _NONE
        else:
            with build.loop(length, step=plan.size) as block:
                self._write_block(IndexSum(0, {block.index: 1}), plan.size)
        if left:
            self._write_block(IndexSum(length, {}), left)
        for result, parts in self.sums.items():
            self._write_total(result, parts)

    def _write_block(self, start: IndexSum, count: int) -> None:
        """So many rows from one on."""
        plan = self.plan
        for product in plan.before:
            self._write_product(product, start, count)
        with self.build.loop(count) as row:
            at = IndexSum(0, {row.index: 1})
            write_passes(plan.nests, self._row_writer(start, at))
        for product in plan.behind:
            self._write_product(product, start, count)

    # Rows.

    def _row_writer(self, start: IndexSum, at: IndexSum) -> RowWriter:
        plan = self.plan
        writer = RowWriter(self.build, self.unit.vector_bytes, self.unit.has_fma)
        writer.buffers.update(self.buffers)
        writer.indices += [*self.batch, start.plus(at)]
        for result in plan.nests.outputs:
            if result not in plan.local:
                shape = result.tensor.shape
                writer.rows[result] = Rows(self.buffers[result], shape, is_whole=True)
        for value, place in plan.local.items():
            room, shape = self.rooms[place], value.tensor.shape[-1:]
            writer.rows[value] = Rows(room, shape, is_whole=False, first=(self.run, at))
        for value, home in plan.nests.homes.items():
            if home is None:
                room, shape = self.room_of_row[value], (plan.nests.length_of(value),)
                writer.rows[value] = Rows(room, shape, is_whole=False, first=(self.run,))
            else:
                writer.rows[value] = writer.rows[home]
        return writer

    # Products.

    def _write_product(
        self, product: Instruction[MatrixProduct], start: IndexSum, count: int
    ) -> None:
        """What a block of rows gives: rows of the result, or something that is added to it."""
        op, (left, right) = product.op, product.operands
        flat = replace(op, transpose_b=False)
        x = Value(_matrix(left.tensor, count))
        y = Value(_matrix(right.tensor, count if op.transpose_a else None))
        if op.transpose_b:
            y = Value(y.tensor.with_shape(y.tensor.shape[::-1]))
        b = Builder(Block())
        added, has_fma = self._added(flat, x, y), self.unit.has_fma
        build_product(b, flat, (x, y), added, by_rows=False, has_fma=has_fma)
        kernel: Instruction[Any] = b.block.instructions[-1]
        registers, k = self.unit.registers_of(y.tensor), y.tensor.shape[0]
        vectors = max(_LEAST_VECTORS, _NEAR // (k * registers.lanes * y.tensor.dtype.bytes))
        tile_once(kernel, registers, depth=k, block_columns=vectors * registers.lanes)
        result = product.result.tensor
        views = [self._rows_of(left, start, result)]
        if op.transpose_a:
            views += [
                self._rows_of(right, start, result),
                *[self._matrix_of(product.result, result)] * 2,
            ]
        else:
            packed = self.turned.get(right) if op.transpose_b else None
            matrix = self._matrix_of(right, result)
            if packed is not None:
                stride = self._width(right, right.tensor.shape[-2])
                matrix = _View(packed, (self._matrix_run,), stride=stride)
            views += [matrix]
            views += [self._rows_of(product.result, start, result)]
        body = kernel.regions[0].entry
        self._inline(body.instructions[:-1], dict(zip(body.arguments, views, strict=True)))

    def _write_turned(self, right: Value, result: TensorType) -> None:
        """Pack a right operand."""
        packed = self.turned[right]
        columns, rows = right.tensor.shape[-2:]
        matrix = Value(PointerType(right.tensor.with_shape((columns, rows))))
        whole = buffer_of("kernel", packed.type)
        room = Value(PointerType(whole.with_shape(whole.shape[1:])))
        b = Builder(Block())
        lanes, stride = self.unit.registers_of(right.tensor).lanes, self._width(right, columns)
        panel = Panel(matrix, _NONE, _NONE, rows, columns, lanes, 1, 0, stride)
        write_panel(b, panel, room, ())
        views = {matrix: self._matrix_of(right, result), room: _View(packed, (self._matrix_run,))}
        self._inline(b.block.instructions, views)

    def _added(self, op: MatrixProduct, x: Value, y: Value) -> Epilogue | None:
        """That a sum over rows is added to what is there."""
        if not op.transpose_a:
            return None
        type = op.infer(x.tensor, y.tensor)
        point = Access(identity_access(type.shape))
        reads = [(Value(type), point), (Value(type), point)]
        b = Builder(Block())
        outputs = [Output(type, point.indices)]
        build_nest(b, type.shape, reads, outputs, lambda body, _, read: [body.emit(Add(), *read)])
        nest: Instruction[Any] = b.block.instructions[-1]
        return Epilogue(nest, 0)

    def _rows_of(self, value: Value, start: IndexSum, result: TensorType) -> _View:
        """A matrix with a row for each: in the room of a block, or from a row on.

        All matrices of the batch may share it, or some, as the axes of the product's result say.
        """
        base = base_of(value)
        if base in self.plan.local:
            return _View(self.rooms[self.plan.local[base]], (self.run,))
        known = value if value in self.buffers else base
        shape, rows = known.tensor.shape, self.plan.rows
        if long_axes(shape[:-1]) == long_axes(rows):
            first = self._along(shape[:-2])
        elif math.prod(shape[:-1]) != math.prod(rows):
            first = self._matrix_of(known, result).first
        else:
            first = ()
            for index, extent in zip(reversed(self.batch), _sizes(rows), strict=True):
                start = start.plus(index, extent)
        return _View(self.buffers[known], first, (start, _NONE))

    def _along(self, shape: Shape) -> tuple[IndexSum, ...]:
        """The indices of the batch, along axes that there are."""
        loops = iter([index for index in self.batch if index is not _NONE])
        return tuple([_NONE if extent == 1 else next(loops) for extent in shape])

    def _matrix_of(self, value: Value, result: TensorType) -> _View:
        """The matrix of a value that a batch has, of which the result of a product has the axes."""
        if value in self.sums:
            return _View(self.sums[value], (self.run,))
        around = () if self._is_flat(result) else self._along(result.shape[:-2])
        shape = value.tensor.shape[:-2]
        own = around[len(around) - len(shape) :]
        first = tuple([i if n > 1 else _NONE for i, n in zip(own, shape, strict=True)])
        return _View(self.buffers[value], first)

    def _is_flat(self, result: TensorType) -> bool:
        """Whether the matrices of the batch lie below each other as one."""
        return len(result.shape) == 2

    def _inline(self, instructions: Sequence[Instruction], views: Mapping[Value, _View]) -> None:
        """Append the body of a kernel, whose buffers are these."""
        for access in filter(None, map(access_of, inside(Block([], list(instructions))))):
            view = views.get(access.buffer)
            if view is not None:
                _redirect(access, view)
        self.build.append(instructions)

    def _write_zeros(self, result: Value, view: _View) -> None:
        """Begin a sum over rows."""
        for place, type in self._vectors_of(result):
            zero = self.build.emit(splat(type, 0))
            self._store(zero, view, place)

    def _write_total(self, result: Value, parts: Value) -> None:
        """Add up what the runs came to."""
        whole = replace(self, sums={})._matrix_of(result, result.tensor)
        for place, type in self._vectors_of(result):
            total = self._load(_View(parts, (_NONE,)), place, type)
            for run in range(1, self.plan.runs):
                part = self._load(_View(parts, (IndexSum(run, {}),)), place, type)
                total = self.build.emit(Add(), total, part)
            self._store(total, whole, place)

    def _vectors_of(self, result: Value) -> Iterator[tuple[list[IndexSum], TensorType]]:
        """Vectors of a matrix, and the elements that are left of its rows, each in loops that are open meanwhile."""
        build, dtype = self.build, result.tensor.dtype
        rows, columns = result.tensor.shape[-2:]
        lanes = self.unit.registers_of(result.tensor).lanes
        with build.loop(rows) as row:
            for lower, count, width in _runs(columns, lanes):
                type = TensorType((width,), dtype) if width > 1 else scalar(dtype)
                with build.loop(lower + count * width, lower=lower, step=width) as column:
                    yield [IndexSum(0, {index: 1}) for index in (row.index, column.index)], type

    def _load(self, view: _View, place: Sequence[IndexSum], type: TensorType) -> Value:
        lanes = type.shape[0] if type.rank else 0
        steps = _steps(view, type)
        return self.build.load(view.buffer, *view.first, *place, lanes=lanes, steps=steps)

    def _store(self, value: Value, view: _View, place: Sequence[IndexSum]) -> None:
        steps = _steps(view, value.tensor)
        self.build.store(value, view.buffer, *view.first, *place, steps=steps)


def _steps(view: _View, type: TensorType) -> tuple[int, ...]:
    return (*(0 for _ in view.first), 0, 1) if type.rank else ()


def _redirect(access: BufferAccess, view: _View) -> None:
    """Touch the same element of what the buffer is a view of."""
    corner = view.corner or (_NONE,) * len(access.indices)
    own = [index.plus(moved) for index, moved in zip(access.indices, corner, strict=True)]
    steps = access.steps
    if view.stride:
        own, steps = [own[1].plus(own[0], view.stride)], (steps[1] + steps[0] * view.stride,)
    move_access(access, view.buffer, [*view.first, *own], (*(0 for _ in view.first), *steps))


def _matrix(type: TensorType, count: int | None) -> TensorType:
    """The last two axes, of so many rows."""
    rows, columns = type.shape[-2:]
    return type.with_shape((rows if count is None else count, columns))


def _runs(extent: int, lanes: int) -> Iterator[tuple[int, int, int]]:
    """Whole vectors, and the others one by one: from where, how many, and of which width."""
    whole = extent // lanes
    if whole:
        yield 0, whole, lanes
    if extent % lanes:
        yield whole * lanes, extent % lanes, 1


def long_axes(shape: Shape) -> Shape:
    """The extents of more than one."""
    return tuple([extent for extent in shape if extent > 1])


def _sizes(rows: Shape) -> Iterator[int]:
    """How many rows an index of each axis but the last is worth, the last ones first."""
    size = 1
    for extent in reversed(rows[1:]):
        size *= extent
        yield size
