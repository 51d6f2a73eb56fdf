"""Matrix products as kernels: three loops, with what is computed of each element behind the innermost.

C = op(A) · op(B), or what a nest makes of C element by element (the *epilogue*: bias, activation, its derivative,
an update of parameters), which is then never stored itself:

    loop i { loop j { sum = loop k carrying sum { sum + a · b }; store f(sum, …) } }

What an epilogue reduces along rows is carried by the loop over columns, and stored behind it:

    loop i { total = loop j carrying total { sum = …; total + f(sum, …) }; store total }

What takes long to compute lets sums go through a local buffer, so that tiles may do so first (`tiles`):

    loop i { loop j { sum = loop k …; store sum to t; load t; store f(sum, …) } }

Sums over many products run in chunks that start afresh (`CHUNK`), as those of a BLAS do.  Of a sum in parts, these are
the outermost loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import clone_instructions
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add, Multiply
from ..ops.combinator import Combinator
from ..ops.literal import Literal, splat
from ..ops.nest import Access, Affine, Bounds, Nest, Output, Yield, coordinate, identity_access
from ..types import F32, F64, I64, PointerType, Shape, TensorType, scalar
from .access_ops import LoadAt, StoreAt
from .bodies import factors_of
from .ops import AllocateLocal, Fma, Kernel, Loop
from .vectorise import COMBINING

CHUNK = 512
"""Products that are added one by one: the error of a sum of k is at most (CHUNK + k / CHUNK) units of rounding of
Σ|x · y|.  A BLAS adds some 400."""


@dataclass(frozen=True)
class Epilogue:
    """A nest that makes its results of a product, element by element, or of its rows; `position` is that operand."""

    nest: Instruction[Nest]
    position: int

    @property
    def reduced(self) -> tuple[int, ...]:
        """The numbers of the results that rows are reduced to."""
        outputs = self.nest.op.outputs
        return tuple(n for n, written in enumerate(outputs) if written.combinator is not None)


def build_product(
    b: Builder,
    op: MatrixProduct,
    operands: Sequence[Value],
    epilogue: Epilogue | None = None,
    *,
    by_rows: bool = True,
    has_fma: bool = True,
    staged: bool = False,
) -> tuple[Value, ...]:
    """Emit the kernel of a product, or of an epilogue in the product's place; its results.

    The loop over rows is around that over columns, or the other way round, where no rows are reduced.  Without
    `has_fma` the machine multiplies and adds in two instructions.  With `staged` sums go through a local buffer.
    """
    x, y = operands
    assert by_rows or epilogue is None or not epilogue.reduced
    result = op.infer(x.tensor, y.tensor)
    others = _others(epilogue)
    outputs = [result] if epilogue is None else [o.type for o in epilogue.nest.op.outputs]
    body = Builder(Block(name="body"), b.location)
    buffers = [body.argument(PointerType(value.tensor)) for value in (x, y, *others)]
    targets = [body.argument(PointerType(type)) for type in outputs]
    emit = _ElementWriter(
        op, result, epilogue, buffers, targets, op.summed(x.tensor), has_fma, staged
    )
    emit.write(body, (x.tensor, y.tensor), by_rows=by_rows)
    body.emit_many(Yield(), [])
    kernel = Kernel(tuple(outputs), emit.overwritten())
    return b.emit_many(kernel, [x, y, *others], [Region([body.block])])


def _others(epilogue: Epilogue | None) -> list[Value]:
    """The operands of an epilogue besides the product."""
    if epilogue is None:
        return []
    operands = epilogue.nest.operands
    return [x for number, x in enumerate(operands) if number != epilogue.position]


@dataclass(frozen=True)
class _ElementWriter:
    """Writes the loops; coordinates are those of the result, axis by axis."""

    op: MatrixProduct
    result: TensorType
    epilogue: Epilogue | None
    buffers: Sequence[Value]
    targets: Sequence[Value]
    count: int
    """Of the products that are summed."""
    has_fma: bool
    staged: bool

    def write(self, b: Builder, types: tuple[TensorType, TensorType], *, by_rows: bool) -> None:
        """The loops over the batch, over rows, and over columns."""
        rank = self.result.rank
        axes = [axis for axis in range(rank - 2) if self.result.shape[axis] > 1]
        indices: dict[int, Value] = {}
        builders = [b]
        last = (rank - 2, rank - 1) if by_rows else (rank - 1, rank - 2)
        for axis in (*axes, *last):
            inner = Builder(Block(name="loop"), b.location)
            indices[axis] = inner.argument(scalar(I64), _NAMES.get(axis - rank, "b"))
            builders.append(inner)
        carried, totals = self._reduced, self._write_element(builders[-1], indices, types)
        extents = [self.result.shape[axis] for axis in (*axes, *last)]
        row = {axis: indices[axis] for axis in (*axes, *last[:-1])}
        for extent, outer, inner in reversed(
            list(zip(extents, builders[:-1], builders[1:], strict=True))
        ):
            inner.emit_many(Yield(), totals)
            starts = [self._identity(outer, number) for number in carried]
            made = outer.emit_many(Loop(0, extent), starts, [Region([inner.block])])
            self._store(outer, zip(carried, made, strict=True), row)
            carried, totals = (), []

    @property
    def _reduced(self) -> tuple[int, ...]:
        return () if self.epilogue is None else self.epilogue.reduced

    def _identity(self, b: Builder, number: int) -> Value:
        """What a reduction to a result begins with."""
        written = self._output(number)
        return b.emit(splat(scalar(written.type.dtype), written.fill))

    def _output(self, number: int) -> Output:
        assert self.epilogue is not None
        return self.epilogue.nest.op.outputs[number]

    def _store(
        self, b: Builder, results: Iterable[tuple[int, Value]], indices: dict[int, Value]
    ) -> None:
        """Write an element of each of the numbered results of an epilogue."""
        places, at = self._places(indices), [indices[axis] for axis in sorted(indices)]
        for number, value in results:
            where = _moved(self._output(number).indices, places)
            b.emit_many(StoreAt(where), [value, self.targets[number], *at])

    def _places(self, indices: dict[int, Value]) -> list[Affine]:
        """The axes of the result in the coordinates of loops."""
        used = sorted(indices)
        return [
            coordinate(used.index(axis)) if axis in indices else Affine()
            for axis in range(self.result.rank)
        ]

    def _write_element(
        self, b: Builder, indices: dict[int, Value], types: tuple[TensorType, TensorType]
    ) -> list[Value]:
        """What is computed of an element of the product; the totals of rows with it."""
        totals = [b.argument(scalar(self._output(number).type.dtype)) for number in self._reduced]
        product = self._sum(b, indices, types)
        at, places = [indices[axis] for axis in sorted(indices)], self._places(indices)
        if self.epilogue is None:
            b.emit_many(StoreAt(tuple(places)), [product, self.targets[0], *at])
            return totals
        if self.staged:
            room = b.emit(AllocateLocal(product.tensor))
            b.emit_many(StoreAt(()), [product, room])
            product = b.emit(LoadAt(()), room)
        nest, position = self.epilogue.nest, self.epilogue.position
        arguments = nest.regions[0].entry.arguments
        rank = len(nest.op.extents)
        values = {
            argument: indices.get(axis) or _zero(b)
            for axis, argument in enumerate(arguments[:rank])
        }
        buffers = iter(self.buffers[2:])
        for number, access in enumerate(nest.op.accesses):
            argument = arguments[rank + number]
            if number == position:
                values[argument] = product
            else:
                where = _moved(access.indices, places)
                values[argument] = b.emit(LoadAt(where), next(buffers), *at)
        *inner, end = nest.regions[0].entry.instructions
        factors = {n: self._factors_of(n, end.operands[n]) for n in self._reduced}
        fused = {end.operands[n] for n, found in factors.items() if found is not None}
        clone_instructions(b.block, [i for i in inner if i.result not in fused], values)
        made = [values.get(value, value) for value in end.operands]
        self._store(b, [(n, x) for n, x in enumerate(made) if n not in factors], indices)
        combined: list[Value] = []
        for (number, found), total in zip(factors.items(), totals, strict=True):
            if found is not None:
                x, y = [values.get(value, value) for value in found]
                combined.append(b.emit(Fma(), x, y, total))
            else:
                op = COMBINING[self._combinator(number)]
                combined.append(b.emit(op, total, made[number]))
        return combined

    def _combinator(self, number: int) -> Combinator:
        """What rows are reduced to a result by."""
        combinator = self._output(number).combinator
        assert combinator is not None
        return combinator

    def _factors_of(self, number: int, value: Value) -> tuple[Value, Value] | None:
        """Those of a product that is added to the total of a row in the instruction that multiplies."""
        is_sum = self._combinator(number) is Combinator.ADD
        return factors_of(value) if is_sum and self.has_fma else None

    def _sum(
        self, b: Builder, indices: dict[int, Value], types: tuple[TensorType, TensorType]
    ) -> Value:
        """The sum over k, in chunks if it is long."""
        k, first = self.count, self.op.first
        zero = b.emit(Literal(scalar(self.result.dtype), bytes(self.result.dtype.bytes)))
        length = chunk_length(k)
        if length == k:
            return self._chunk(b, indices, types, [], k, zero, first)
        whole = k - k % length
        inner = Builder(Block(name="loop"), b.location)
        start = inner.argument(scalar(I64), "k0")
        total = inner.argument(zero.type)
        chunk = self._chunk(inner, indices, types, [start], length, zero, first)
        inner.emit_many(Yield(), [inner.emit(Add(), total, chunk)])
        (made,) = b.emit_many(Loop(0, whole, length), [zero], [Region([inner.block])])
        if whole < k:
            rest = self._chunk(b, indices, types, [], k - whole, zero, first + whole)
            made = b.emit(Add(), made, rest)
        return made

    def _chunk(
        self,
        b: Builder,
        indices: dict[int, Value],
        types: tuple[TensorType, TensorType],
        starts: Sequence[Value],
        length: int,
        zero: Value,
        first: int,
    ) -> Value:
        """A sum of so many products: those from index `first`, or so many behind a computed one, on."""
        inner = Builder(Block(name="loop"), b.location)
        k = inner.argument(scalar(I64), "k")
        total = inner.argument(zero.type)
        at = [*(indices[axis] for axis in sorted(indices)), *starts, k]
        numbers = {axis: n for n, axis in enumerate(sorted(indices))}
        summed = Affine(first)
        for number in range(len(numbers), len(at)):
            summed = summed + coordinate(number)
        if self.op.parts > 1:
            summed = summed + coordinate(numbers[0]) * self.count
        rank = self.result.rank
        sides = zip(
            types, (rank - 2, rank - 1), (self.op.transpose_a, self.op.transpose_b), strict=True
        )
        x, y = (
            inner.emit(
                LoadAt(
                    _matrix_indices(type.shape, self.result, numbers, kept, summed, number, flip)
                ),
                self.buffers[number],
                *at,
            )
            for number, (type, kept, flip) in enumerate(sides)
        )
        inner.emit_many(Yield(), [self._added(inner, x, y, total)])
        return b.emit_many(Loop(0, length), [zero], [Region([inner.block])])[0]

    def _added(self, b: Builder, x: Value, y: Value, total: Value) -> Value:
        """The total with one product more."""
        if self.has_fma:
            return b.emit(Fma(), x, y, total)
        return b.emit(Add(), total, b.emit(Multiply(), x, y))

    def overwritten(self) -> tuple[tuple[int, int], ...]:
        """Pairs of an operand and a result that may have one buffer: each element is read just before it is written."""
        if self.epilogue is None:
            return ()
        nest = self.epilogue.nest.op
        own = [n for n in range(len(nest.accesses)) if n != self.epilogue.position]
        whole = Access(identity_access(self.result.shape))
        return tuple(
            (2 + place, number)
            for place, n in enumerate(own)
            for number, written in enumerate(nest.outputs)
            if nest.accesses[n] == whole and self.epilogue.nest.operands[n].tensor == written.type
        )


_NAMES = {-1: "j", -2: "i"}
"""What the indices of columns and rows are called in the text."""


def chunk_length(k: int) -> int:
    """How many products are added one by one: all, or a divisor of k, or nearly so."""
    if k <= CHUNK:
        return k
    count = -(-k // CHUNK)
    for chunks in range(count, 2 * count):
        if k % chunks == 0:
            return k // chunks
    return -(-k // count)


def is_product(instruction: Instruction) -> TypeGuard[Instruction[MatrixProduct]]:
    """Whether this is a matrix product."""
    return isinstance(instruction.op, MatrixProduct)


def is_epilogue(nest: Nest, shape: Shape) -> bool:
    """Whether a nest over a product of this shape reads inside, and writes each element of its results at its point."""
    return _reads_inside(nest, shape) and all(_is_at_point(x, shape) for x in nest.outputs)


def is_epilogue_of_rows(nest: Nest, shape: Shape) -> bool:
    """Whether a nest is the same, but for results that rows are reduced to, of which there are some."""
    dtypes = {written.type.dtype for written in nest.outputs if written.combinator is not None}
    return (
        _reads_inside(nest, shape)
        and bool(dtypes)
        and dtypes <= {F32, F64}
        and all(_is_at_point(x, shape) or _is_of_row(x, shape) for x in nest.outputs)
    )


def _reads_inside(nest: Nest, shape: Shape) -> bool:
    return nest.extents == shape and all(
        access.bounds is Bounds.INSIDE and all(isinstance(i, Affine) for i in access.indices)
        for access in nest.accesses
    )


def _is_at_point(written: Output, shape: Shape) -> bool:
    return (
        (written.combinator, written.init, written.within) == (None, None, None)
        and written.indices == identity_access(shape)
        and written.type.shape == shape
    )


def _is_of_row(written: Output, shape: Shape) -> bool:
    """Whether a result is what rows are reduced to."""
    return (
        (written.init, written.within, written.bounds) == (None, None, Bounds.INSIDE)
        and written.indices == identity_access(shape)[:-1]
        and written.type.shape == shape[:-1]
    )


def _matrix_indices(
    shape: Shape,
    result: TensorType,
    numbers: dict[int, int],
    kept: int,
    summed: Affine,
    side: int,
    flip: bool,
) -> tuple[Affine, ...]:
    """Where an operand is read: its batch axes, which broadcast, then row and k or k and column."""
    skipped = result.rank - len(shape)
    batch = [
        coordinate(numbers[axis + skipped])
        if extent > 1 and axis + skipped in numbers
        else Affine()
        for axis, extent in enumerate(shape[:-2])
    ]
    own = coordinate(numbers[kept])
    matrix = (own, summed) if side == 0 else (summed, own)
    return (*batch, *(matrix[::-1] if flip else matrix))


def _moved(indices: Sequence[object], places: Sequence[Affine]) -> tuple[Affine, ...]:
    """Indices of a nest in the coordinates of the kernel."""
    return tuple(index.substitute(places) for index in indices if isinstance(index, Affine))


def _zero(b: Builder) -> Value:
    return b.emit(Literal(scalar(I64), bytes(8)))
