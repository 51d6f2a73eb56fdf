"""Matrix products by the BLAS, with loops over the batch around them.

Row-major C = op(A) · op(B) is one `gemm`.  When only A has a batch, its matrices lie below each other, and the whole
batch is one product.

The number of the BLAS's threads is the process's affair.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from ...core.errors import InternalError
from ...core.lazy_dataclass import dataclass
from ...core.schedule.arena import aligned
from ...core.schedule.ops import Gemm, blas_nanoseconds, is_one_product, sizes_of
from ...core.types import Shape, TensorType
from ..runtime.blas import PLAIN, ROW_MAJOR, TRANSPOSED, Blas
from .element_access import element_address, offset_bytes
from .elements import register_type
from .fill import write_corrected, write_folded, write_zeros
from .indices import multiply_constant
from .polls import Polls
from .writer import I32, I64, FunctionWriter, LLVMType, Register, constant, llvm_type

SYMBOL: Final = "nnkit.blas."
"""Before the name of a function of the BLAS, its name in our modules."""

MOST_IN_ONE_CALL: Final = 50_000_000
"""Nanoseconds, about, that one call of the BLAS may take in code that polls: longer products are divided. A quarter of
`polls.PERIOD`, so that signals are handled in time though an estimate be four times too short."""


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix product: m x k by k x n, each operand perhaps stored transposed; `chunk` of k at a time, or all."""

    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    chunk: int = 0

    @property
    def strides(self) -> tuple[int, int]:
        """Elements of A and B from one of k to the next."""
        return self.m if self.transpose_a else 1, 1 if self.transpose_b else self.n

    @property
    def row_strides(self) -> tuple[int, int, int]:
        """Elements of A, B and C from one row of C to the next."""
        return 1 if self.transpose_a else self.k, 0, self.n

    @property
    def column_strides(self) -> tuple[int, int, int]:
        """Elements of A, B and C from one column of C to the next."""
        return 0, self.k if self.transpose_b else 1, 1

    @property
    def leading(self) -> tuple[int, int]:
        """Elements from row to row as A and B are stored."""
        return self.m if self.transpose_a else self.k, self.k if self.transpose_b else self.n


def write_gemm(
    w: FunctionWriter,
    op: Gemm,
    a_type: TensorType,
    b_type: TensorType,
    bases: Sequence[Register],
    blas: Blas,
    polls: Polls | None = None,
) -> None:
    """Write a batch of products; `bases` are the addresses of A, B and C, and of corrections if there are any.

    `polls` are for products that take long.
    """
    result = op.infer(a_type, b_type)
    m, n, k = sizes_of(op, a_type, b_type)
    product = Product(m, n, k, op.transpose_a, op.transpose_b, op.chunk)
    if result.size == 0:
        return
    if k == 0:
        write_zeros(w, bases[2], result.bytes)
        return
    writer = _ProductWriter(w, product, result, blas, polls)
    if is_one_product(op, b_type):
        writer.write(bases)
        return
    batch_a, batch_b, batch = a_type.shape[:-2], b_type.shape[:-2], result.shape[:-2]
    sizes = (m * k, k * n, m * n)
    with _loops(w, batch) as coordinates:
        moved = [
            _moved(w, base, result, coordinates, shape, size)
            for base, shape, size in zip(bases[:3], (batch_a, batch_b, batch), sizes, strict=True)
        ]
        writer.write([*moved, *bases[3:]])


@contextmanager
def _loops(w: FunctionWriter, extents: Shape) -> Generator[list[Register]]:
    with ExitStack() as stack:
        yield [
            constant(I64, 0)
            if extent == 1
            else stack.enter_context(
                w.loop(constant(I64, 0), constant(I64, extent), constant(I64, 1))
            ).index
            for extent in extents
        ]


def _moved(
    w: FunctionWriter,
    base: Register,
    result: TensorType,
    coordinates: Sequence[Register],
    batch: Shape,
    size: int,
) -> Register:
    """Where the matrix of an operand with this batch shape begins."""
    element = llvm_type(register_type(result.dtype).scalar)
    for coordinate, extent in zip(reversed(coordinates), reversed(batch), strict=False):
        if extent > 1:
            base = element_address(w, base, element, multiply_constant(w, coordinate, size))
        size *= extent
    return offset_bytes(w, base, 0)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A part of C, of so many rows and columns, made of `count` of k; the bases of A, B and C are its own."""

    rows: int
    columns: int
    count: int
    bases: tuple[Register, Register, Register]


@dataclass(frozen=True, slots=True)
class _ProductWriter:
    """Writes single products of one type."""

    w: FunctionWriter
    product: Product
    result: TensorType
    blas: Blas
    polls: Polls | None

    def write(self, bases: Sequence[Register]) -> None:
        """One product."""
        if self.product.chunk:
            self._write_chunks(bases)
        else:
            a, b, c = bases
            self._write_tiles(self.product.k, (a, b, c))

    def _write_chunks(self, bases: Sequence[Register]) -> None:
        """A sum of products over parts of k, added with compensation in the order of k."""
        w, product = self.w, self.product
        a, b, c, total = bases
        type = self.result.with_shape((product.m, product.n))
        rest = offset_bytes(w, total, aligned(type.bytes))
        write_zeros(w, total, 2 * aligned(type.bytes))
        whole = product.k - product.k % product.chunk

        def write(first: Register, count: int) -> None:
            moved = (
                element_address(w, base, self._number, multiply_constant(w, first, stride))
                for base, stride in zip((a, b), product.strides, strict=True)
            )
            self._write_tiles(count, (*moved, c))
            write_folded(w, c, total, rest, type)

        with w.loop(constant(I64, 0), constant(I64, whole), constant(I64, product.chunk)) as loop:
            write(loop.index, product.chunk)
        if whole < product.k:
            write(constant(I64, whole), product.k - whole)
        write_corrected(w, c, total, rest, type)

    def _write_tiles(self, count: int, bases: tuple[Register, ...]) -> None:
        """The product over `count` of k: in calls of the BLAS that do not take long, if there are polls."""
        w, product = self.w, self.product
        a, b, c = bases
        total = blas_nanoseconds(product.m * product.n * count, self.result.dtype)
        if self.polls is not None:
            self.polls.spend(min(total, MOST_IN_ONE_CALL))
        if self.polls is None or total <= MOST_IN_ONE_CALL:
            self._write_call(_Tile(product.m, product.n, count, (a, b, c)))
            return
        by_rows = product.m >= product.n
        extent = product.m if by_rows else product.n
        length = max(1, extent * MOST_IN_ONE_CALL // total)
        strides = product.row_strides if by_rows else product.column_strides

        def write(first: Register, extent: int) -> None:
            moved = [
                element_address(w, base, self._number, multiply_constant(w, first, stride))
                if stride
                else base
                for base, stride in zip((a, b, c), strides, strict=True)
            ]
            rows, columns = (extent, product.n) if by_rows else (product.m, extent)
            self._write_call(_Tile(rows, columns, count, (moved[0], moved[1], moved[2])))

        whole = extent - extent % length
        with w.loop(constant(I64, 0), constant(I64, whole), constant(I64, length)) as loop:
            self.polls.spend(total * length // extent)
            write(loop.index, length)
        if whole < extent:
            write(constant(I64, whole), extent - whole)

    def _write_call(self, tile: _Tile) -> None:
        """One call of the C interface."""
        product, number = self.product, self._number
        integer = llvm_type("i64" if self.blas.integer_bits == 64 else "i32")
        a, b, c = tile.bases
        transposed = map(_transposition, (product.transpose_a, product.transpose_b))
        sizes = [constant(integer, size) for size in (tile.rows, tile.columns, tile.count)]
        one, zero = constant(number, 1), constant(number, 0)
        leading_a, leading_b, leading_c = (
            constant(integer, size) for size in (*product.leading, product.n)
        )
        operands = [one, a, leading_a, b, leading_b, zero, c, leading_c]
        self.w.call_void(
            f"{SYMBOL}{self._letter}gemm",
            [constant(I32, ROW_MAJOR), *transposed, *sizes, *operands],
        )

    @property
    def _number(self) -> LLVMType:
        return register_type(self.result.dtype)

    @property
    def _letter(self) -> str:
        letter = {"f32": "s", "f64": "d"}.get(self.result.dtype.name)
        if letter is None:
            raise InternalError(f"the BLAS has no product of {self.result.dtype}")
        return letter


def _transposition(transposed: bool) -> Register:
    return constant(I32, TRANSPOSED if transposed else PLAIN)
