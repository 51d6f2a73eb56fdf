"""Matrix products by the BLAS, with loops over the batch around them.

Row-major C = op(A) · op(B) is one `gemm`, or a `gemv` when C has one row or column.  When only A has a
batch, its matrices lie below each other, and the whole batch is one product.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from ...core.errors import InternalError
from ...core.schedule.arena import aligned
from ...core.schedule.ops import Gemm, is_one_product, sizes_of
from ...core.types import Shape, TensorType
from ..runtime.blas import PLAIN, ROW_MAJOR, TRANSPOSED, Blas
from .elements import register_type
from .fill import write_corrected, write_folded, write_zeros
from .indices import multiply_constant
from .memory import shift, step
from .writer import I32, I64, FunctionWriter, LType, Register, constant, ltype

SYMBOL: Final = "nnkit.blas."
"""Before the name of a function of the BLAS, its name in our modules."""


THREADED_WORK: Final = 64 * 1024 * 1024
"""Multiplications from which a product may use several threads.

Below, threads that spin for each other gain little on an idle machine, and cost a hundredfold when another
process wants one of the cores.
"""


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
) -> None:
    """Write a batch of products; `bases` are the addresses of A, B and C, and of corrections if there are any."""
    result = op.infer(a_type, b_type)
    m, n, k = sizes_of(op, a_type, b_type)
    product = Product(m, n, k, op.transpose_a, op.transpose_b, op.chunk)
    if result.size == 0:
        return
    if k == 0:
        write_zeros(w, bases[2], result.bytes)
        return
    if is_one_product(op, b_type):
        _write_product(w, product, result, bases, blas)
        return
    batch_a, batch_b, batch = a_type.shape[:-2], b_type.shape[:-2], result.shape[:-2]
    sizes = (m * k, k * n, m * n)
    with _loops(w, batch) as coordinates:
        moved = [
            _moved(w, base, result, coordinates, shape, size)
            for base, shape, size in zip(bases[:3], (batch_a, batch_b, batch), sizes, strict=True)
        ]
        _write_product(w, product, result, [*moved, *bases[3:]], blas)


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
    element = ltype(register_type(result.dtype).scalar)
    for coordinate, extent in zip(reversed(coordinates), reversed(batch), strict=False):
        if extent > 1:
            base = step(w, base, element, multiply_constant(w, coordinate, size))
        size *= extent
    return shift(w, base, 0)


def _write_product(
    w: FunctionWriter, product: Product, result: TensorType, bases: Sequence[Register], blas: Blas
) -> None:
    letter = {"f32": "s", "f64": "d"}.get(result.dtype.name)
    if letter is None:
        raise InternalError(f"the BLAS has no product of {result.dtype}")
    call = _Call(w, register_type(result.dtype), ltype("i64" if blas.integer_bits == 64 else "i32"))
    with _one_thread(w, blas, product.m * product.n * product.k < THREADED_WORK):
        if product.chunk:
            _write_chunks(w, call, letter, product, result, bases)
        else:
            _write_call(w, call, letter, product, product.k, result, bases)


def _write_chunks(
    w: FunctionWriter,
    call: _Call,
    letter: str,
    product: Product,
    result: TensorType,
    bases: Sequence[Register],
) -> None:
    """Write the product as a sum of products over parts of k, added with compensation in the order of k."""
    a, b, c, total = bases
    type = result.with_shape((product.m, product.n))
    rest = shift(w, total, aligned(type.bytes))
    write_zeros(w, total, 2 * aligned(type.bytes))
    whole = product.k - product.k % product.chunk

    def write(first: Register, count: int) -> None:
        moved = [
            step(w, base, call.number, multiply_constant(w, first, stride))
            for base, stride in zip((a, b), product.strides, strict=True)
        ]
        _write_call(w, call, letter, product, count, result, [*moved, c])
        write_folded(w, c, total, rest, type)

    with w.loop(constant(I64, 0), constant(I64, whole), constant(I64, product.chunk)) as loop:
        write(loop.index, product.chunk)
    if whole < product.k:
        write(constant(I64, whole), product.k - whole)
    write_corrected(w, c, total, rest, type)


@contextmanager
def _one_thread(w: FunctionWriter, blas: Blas, wanted: bool) -> Generator[None]:
    """What is written inside runs with one thread of the BLAS, where that can be said."""
    if not wanted or "set_num_threads" not in blas.addresses:
        yield
        return
    threads = w.call(f"{SYMBOL}get_num_threads", I32, [])
    w.call_void(f"{SYMBOL}set_num_threads", [constant(I32, 1)])
    yield
    w.call_void(f"{SYMBOL}set_num_threads", [threads])


def _write_call(
    w: FunctionWriter,
    call: _Call,
    letter: str,
    product: Product,
    count: int,
    result: TensorType,
    bases: Sequence[Register],
) -> None:
    """One call for `count` of k, from where the bases of A and B are."""
    a, b, c = bases
    m, n = product.m, product.n
    leading_a, leading_b = product.leading
    if n == 1:
        rows, columns = (count, m) if product.transpose_a else (m, count)
        write_zeros(w, c, m * result.dtype.bytes)
        call.gemv(f"{letter}gemv", product.transpose_a, rows, columns, a, leading_a, b, c)
    elif m == 1:
        rows, columns = (n, count) if product.transpose_b else (count, n)
        write_zeros(w, c, n * result.dtype.bytes)
        call.gemv(f"{letter}gemv", not product.transpose_b, rows, columns, b, leading_b, a, c)
    else:
        call.gemm(f"{letter}gemm", product, count, a, b, c)


@dataclass(frozen=True, slots=True)
class _Call:
    """Calls of the C interface, with arguments of the types it wants."""

    w: FunctionWriter
    number: LType
    integer: LType

    def gemm(
        self, name: str, product: Product, count: int, a: Register, b: Register, c: Register
    ) -> None:
        """C = op(A) · op(B), over `count` of k."""
        order = [
            constant(I32, ROW_MAJOR),
            *map(_transposition, (product.transpose_a, product.transpose_b)),
        ]
        sizes = [self._integer(size) for size in (product.m, product.n, count)]
        leading_a, leading_b = map(self._integer, product.leading)
        one, zero = constant(self.number, 1), constant(self.number, 0)
        self.w.call_void(
            SYMBOL + name,
            [*order, *sizes, one, a, leading_a, b, leading_b, zero, c, self._integer(product.n)],
        )

    def gemv(
        self,
        name: str,
        transposed: bool,
        m: int,
        n: int,
        a: Register,
        leading: int,
        x: Register,
        y: Register,
    ) -> None:
        """y = op(A) · x, A being stored as m x n with so many elements from row to row.

        What is in y counts for nothing, but a BLAS may multiply it by 0: the caller has set it to 0.
        """
        order = [constant(I32, ROW_MAJOR), _transposition(transposed)]
        sizes = [self._integer(size) for size in (m, n)]
        one, zero, apart = constant(self.number, 1), constant(self.number, 0), self._integer(1)
        self.w.call_void(
            SYMBOL + name,
            [*order, *sizes, one, a, self._integer(leading), x, apart, zero, y, apart],
        )

    def _integer(self, value: int) -> Register:
        return constant(self.integer, value)


def _transposition(transposed: bool) -> Register:
    return constant(I32, TRANSPOSED if transposed else PLAIN)
