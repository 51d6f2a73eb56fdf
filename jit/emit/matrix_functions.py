"""Emits functions of matrices as calls of the LAPACK, one after the other for the matrices of a batch.

The LAPACK has matrices column by column: it reads the transpose of ours.  Its routines work in place, on copies in the
result or in scratch buffers.  A matrix that is not finite is not given to it; where it reports a failure, as for a
singular matrix, the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...core.ir import Instruction, Op
from ...core.lazy_dataclass import dataclass
from ...core.ops.decomposition import Eigh, Orthonormalize, Svd
from ...core.ops.linear_systems import Cholesky, LogDeterminant, Solve, TriangularSolve
from ...core.ops.matrix_form import MatrixFunction
from ...core.types import F64, TensorType
from .element_access import element_address, offset_bytes
from .elements import register_type
from .indices import multiply_constant
from .writer import I1, I8, I64, FunctionWriter, LLVMType, Register, constant, llvm_type

LAPACK: Final = "nnkit.lapack."
"""Before the name of a routine of the LAPACK, its name in our modules."""

LAPACK_STACK: Final = 4 << 20
"""Bytes of the stack that its routines may take: those of the OpenBLAS of NumPy that solve equations end a thread of 2
MiB, from Python too, and run in 3."""


def write_matrix_function(
    w: FunctionWriter,
    instruction: Instruction[MatrixFunction],
    bases: Sequence[Register],
    integer_bits: int,
) -> None:
    """Write the function of a batch of matrices; `bases` are operands, the result and scratch buffers."""
    op, operands, result = instruction.op, instruction.operands, instruction.result.tensor
    batch = operands[0].tensor.shape[:-2]
    if result.size == 0:
        return
    types = [x.tensor.with_shape(x.tensor.shape[len(batch) :]) for x in operands]
    types.append(result.with_shape(result.shape[len(batch) :]))
    integer = llvm_type("i64" if integer_bits == 64 else "i32")
    count = math.prod(batch)
    with w.loop(constant(I64, 0), constant(I64, count), constant(I64, 1)) as loop:
        moved = [
            element_address(
                w, base, register_type(type.dtype), multiply_constant(w, loop.index, type.size)
            )
            for base, type in zip(bases, types, strict=False)
        ]
        each = [*moved, *bases[len(types) :]]
        _write_one(_Call(w, op, tuple(types), tuple(each), integer))


@dataclass(frozen=True, slots=True)
class _Call:
    """What the routines for one matrix are given."""

    w: FunctionWriter
    op: Any
    types: tuple[TensorType, ...]
    bases: tuple[Register, ...]
    integer: LLVMType

    @property
    def number(self) -> LLVMType:
        return register_type(self.types[0].dtype)

    @property
    def result(self) -> Register:
        return self.bases[len(self.types) - 1]

    @property
    def scratch(self) -> tuple[Register, ...]:
        return self.bases[len(self.types) :]

    def place(self, value: int) -> Register:
        """The address of an integer."""
        slot = self.w.allocate(self.integer)
        self.w.store(constant(self.integer, value), slot)
        return slot

    def letter(self, letter: str) -> Register:
        """The address of a character."""
        slot = self.w.allocate(I8)
        self.w.store(constant(I8, ord(letter)), slot)
        return slot

    def routine(
        self, name: str, arguments: Sequence[Register], info: Register, letters: int
    ) -> None:
        """Call a routine; Fortran has the lengths of characters behind all else."""
        prefix = "d" if self.types[0].dtype is F64 else "s"
        lengths = [constant(I64, 1)] * letters
        self.w.call_void(f"{LAPACK}{prefix}{name}", [*arguments, info, *lengths])

    def copy(self, target: Register, source: Register, type: TensorType) -> None:
        """Copy a matrix."""
        size = constant(I64, type.bytes)
        self.w.call_void("llvm.memcpy.p0.p0.i64", [target, source, size, constant(I1, 0)])

    def part(self, base: Register, elements: int) -> Register:
        """The address so many elements further."""
        return offset_bytes(self.w, base, elements * self.types[0].dtype.bytes)

    def at(self, base: Register, index: Register) -> Register:
        """The address of an element."""
        return element_address(self.w, base, self.number, index)


def _write_one(call: _Call) -> None:
    """The function of one matrix, NaN if that is not finite or the LAPACK reports a failure."""
    w, a = call.w, call.types[0]
    info = w.allocate(call.integer)
    none = constant(call.integer, 0)
    w.store(constant(call.integer, 1), info)
    if a.size == 0:
        w.store(none, info)
        _WRITERS[type(call.op)](call, info)
    else:
        with w.when(_is_finite(call, a.size)):
            w.store(none, info)
            _WRITERS[type(call.op)](call, info)
    failed = w.icmp("ne", w.load(info, call.integer), none)
    with w.when(failed, rarely=True, hint="failed"):
        nan = constant(call.number, math.nan)
        size = constant(I64, call.types[-1].size)
        with w.loop(constant(I64, 0), size, constant(I64, 1)) as loop:
            w.store(nan, call.at(call.result, loop.index))


def _is_finite(call: _Call, size: int) -> Register:
    """Whether the sum of x · 0 over all elements is 0."""
    w, zero = call.w, constant(call.number, 0)
    with w.loop(constant(I64, 0), constant(I64, size), constant(I64, 1), [zero]) as loop:
        x = w.load(call.at(call.bases[0], loop.index), call.number)
        loop.carry(w.fadd(loop.values[0], w.fmul(x, zero)))
    return w.fcmp("ord", loop.results[0], zero)


def _succeeded(call: _Call, info: Register) -> Register:
    return call.w.icmp("eq", call.w.load(info, call.integer), constant(call.integer, 0))


def _write_cholesky(call: _Call, info: Register) -> None:
    """Upper to the LAPACK is lower here; what is above the diagonal becomes 0."""
    w, n = call.w, call.types[0].shape[-1]
    call.copy(call.result, call.bases[0], call.types[0])
    order = call.place(n)
    call.routine("potrf", [call.letter("U"), order, call.result, order], info, 1)
    one, end = constant(I64, 1), constant(I64, n)
    with w.loop(constant(I64, 0), end, one) as row:
        start = multiply_constant(w, row.index, n)
        with w.loop(w.add(row.index, one), end, one) as column:
            w.store(constant(call.number, 0), call.at(call.result, w.add(start, column.index)))


def _write_factors(call: _Call, info: Register) -> Register:
    """Triangular factors of a copy of the first operand, in the first scratch buffer; the order."""
    order = call.place(call.types[0].shape[-1])
    factors, pivots = call.scratch
    call.copy(factors, call.bases[0], call.types[0])
    call.routine("getrf", [order, order, factors, order, pivots], info, 0)
    return order


def _write_solve(call: _Call, info: Register) -> None:
    order = _write_factors(call, info)
    with call.w.when(_succeeded(call, info)):
        call.copy(call.result, call.bases[1], call.types[1])
        sides, way = (
            call.place(call.types[1].shape[-2]),
            call.letter("N" if call.op.transposed else "T"),
        )
        given = [way, order, sides, *_interleaved(call, order), call.result, order]
        call.routine("getrs", given, info, 1)


def _interleaved(call: _Call, order: Register) -> list[Register]:
    factors, pivots = call.scratch
    return [factors, order, pivots]


def _write_triangular_solve(call: _Call, info: Register) -> None:
    op = call.op
    call.copy(call.result, call.bases[1], call.types[1])
    order, sides = call.place(call.types[0].shape[-1]), call.place(call.types[1].shape[-2])
    letters = ["L" if op.upper else "U", "N" if op.transposed else "T", "U" if op.unit else "N"]
    given = [*map(call.letter, letters), order, sides, call.bases[0], order, call.result, order]
    call.routine("trtrs", given, info, 3)


def _write_log_determinant(call: _Call, info: Register) -> None:
    """The product of the signs, and the sum of the logarithms, of the pivots; singular ones are no failure."""
    w, n, number = call.w, call.types[0].shape[-1], call.number
    _write_factors(call, info) if n else None
    w.store(constant(call.integer, 0), info)
    one = constant(I64, 1)
    first = [constant(number, 1), constant(number, 0)]
    with w.loop(constant(I64, 0), constant(I64, n), one, first) as loop:
        factors, pivots = call.scratch
        pivot = w.load(call.at(factors, multiply_constant(w, loop.index, n + 1)), number)
        row = w.load(element_address(w, pivots, call.integer, loop.index), call.integer)
        place = w.add(loop.index, one)
        there = place if call.integer.bits == 64 else w.trunc(place, "i32")
        zero = constant(number, 0)
        unit = w.copysign(constant(number, 1), pivot)
        sign = w.select(w.fcmp("oeq", pivot, zero), zero, unit)
        sign = w.select(w.icmp("eq", row, there), sign, w.fneg(sign))
        log = w.intrinsic("log", number, [w.fabs(pivot)])
        loop.carry(w.fmul(loop.values[0], sign), w.fadd(loop.values[1], log))
    w.store(w.fadd(loop.results[0], constant(number, 0)), call.result)  # −0 becomes 0
    w.store(loop.results[1], call.part(call.result, 1))


def _write_orthonormalize(call: _Call, info: Register) -> None:
    k, m = call.types[0].shape
    call.copy(call.result, call.bases[0], call.types[0])
    scales, work = call.scratch
    rows, columns, length = call.place(m), call.place(k), call.place(_elements(call, 1))
    call.routine("geqrf", [rows, columns, call.result, rows, scales, work, length], info, 0)
    made = rows if call.op.complete else columns
    given = [rows, made, columns, call.result, rows, scales, work, length]
    call.routine("orgqr", given, info, 0)


def _write_eigh(call: _Call, info: Register) -> None:
    """Lower here is upper to the LAPACK; its columns, the eigenvectors, are our rows."""
    n = call.types[0].shape[-1]
    vectors = call.part(call.result, n)
    call.copy(vectors, call.bases[0], call.types[0])
    work, integers = call.scratch
    order, sizes = call.place(n), [call.place(_elements(call, number)) for number in (0, 1)]
    given = [call.letter("V"), call.letter("U"), order, vectors, order, call.result]
    call.routine("syevd", [*given, work, sizes[0], integers, sizes[1]], info, 2)


def _write_svd(call: _Call, info: Register) -> None:
    """To the LAPACK the matrix is v · diag(s) · uᵀ: its left vectors are our right ones."""
    m, n = call.types[0].shape
    k = min(m, n)
    copy, work, integers = call.scratch
    call.copy(copy, call.bases[0], call.types[0])
    wide, full = (m, True) if call.op.full else (k, False)
    left, right = call.part(call.result, k), call.part(call.result, k + m * wide)
    rows, columns, count, length = map(call.place, (n, m, wide, _elements(call, 1)))
    given = [
        call.letter("A" if full else "S"),
        rows,
        columns,
        copy,
        rows,
        call.result,
        right,
        rows,
        left,
        count,
    ]
    call.routine("gesdd", [*given, work, length, integers], info, 1)


def _elements(call: _Call, number: int) -> int:
    """How many elements a scratch buffer has."""
    sizes: Sequence[tuple[int, bool]] = call.op.workspace(call.types[0])
    return sizes[number][0]


_WRITERS: Final[Mapping[type[Op], Callable[[_Call, Register], None]]] = {
    Cholesky: _write_cholesky,
    Solve: _write_solve,
    TriangularSolve: _write_triangular_solve,
    LogDeterminant: _write_log_determinant,
    Orthonormalize: _write_orthonormalize,
    Eigh: _write_eigh,
    Svd: _write_svd,
}

LAPACK_CALLS: Final = tuple(_WRITERS)
"""The ops that this module writes."""
