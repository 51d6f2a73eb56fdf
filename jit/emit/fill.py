"""Initialises buffers that a nest accumulates into or updates, and folds compensation terms in afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.lazy_dataclass import dataclass
from ...core.ops.literal import Literal
from ...core.types import TensorType
from .element_access import (
    Lanes,
    Pointers,
    element_address,
    load_elements,
    offset_bytes,
    store_elements,
)
from .elements import add_compensated, corrected, memory_type, pack, splat_element
from .loops import LoopBody, LoopShape, LoopStep, write_loop
from .values import ZMM_BYTES
from .writer import I1, I8, I64, FunctionWriter, Register, constant


def write_fill(w: FunctionWriter, base: Register, type: TensorType, number: Literal) -> None:
    """Every element becomes a number."""
    dtype, size = type.dtype, type.size
    if len(set(number.data)) == 1:
        _write_bytes(w, base, number.data[0], type.bytes)
        return
    lanes, stored = ZMM_BYTES // dtype.bytes, memory_type(dtype)
    whole = size - size % lanes
    spread = pack(w, w.splat(splat_element(number), lanes), dtype)
    if whole:
        with w.loop(constant(I64, 0), constant(I64, whole), constant(I64, lanes)) as loop:
            w.store(spread, element_address(w, base, stored, loop.index))
    for place in range(whole, size):
        w.store(w.extract(spread, 0), offset_bytes(w, base, place * dtype.bytes))


def write_zeros(w: FunctionWriter, base: Register, bytes: int) -> None:
    """Every byte becomes 0."""
    _write_bytes(w, base, 0, bytes)


def write_folded(
    w: FunctionWriter, base: Register, total: Register, rest: Register, type: TensorType
) -> None:
    """Add the elements at `base`, which become 0, to those at `total`, and what rounding cuts off to `rest`."""
    _write_elementwise(w, _FoldBlock(w, type, (base, total, rest)))


def write_corrected(
    w: FunctionWriter, base: Register, total: Register, rest: Register, type: TensorType
) -> None:
    """The elements at `base` become the sums at `total` with what rounding had cut off."""
    _write_elementwise(w, _AddCorrections(w, type, (base, total, rest)))


def write_copy(w: FunctionWriter, source: Register, target: Register, type: TensorType) -> None:
    """Copy a tensor, unless source and target are one buffer."""
    if source.text == target.text or not type.bytes:
        return
    if type.size == 1:
        element = memory_type(type.dtype)
        # a pointer that was cast may lead anywhere
        w.store(w.load(source, element, align=1), target, align=1)
        return
    size = constant(I64, type.bytes)
    w.call_void("llvm.memcpy.p0.p0.i64", [target, source, size, constant(I1, 0)])


@dataclass(frozen=True, slots=True)
class _Buffers(LoopBody):
    """One step of a loop over the elements of several buffers of one type."""

    w: FunctionWriter
    type: TensorType
    bases: Sequence[Register]

    def spots(self, index: Register) -> list[Pointers]:
        dtype = self.type.dtype
        pointers = (element_address(self.w, base, memory_type(dtype), index) for base in self.bases)
        return [Pointers(dtype, pointer, 1, None, None, True) for pointer in pointers]


class _FoldBlock(_Buffers):
    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        w, spots, lanes = self.w, self.spots(step.index), step.lanes or Lanes()
        value, total, rest = (load_elements(w, at, lanes) for at in spots)
        stored = constant(value.type, 0), *add_compensated(w, total, rest, value)
        for at, register in zip(spots, stored, strict=True):
            store_elements(w, at, register, lanes)
        return list(totals)


class _AddCorrections(_Buffers):
    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        w, spots, lanes = self.w, self.spots(step.index), step.lanes or Lanes()
        total, rest = (load_elements(w, at, lanes) for at in spots[1:])
        store_elements(w, spots[0], corrected(w, total, rest), lanes)
        return list(totals)


def _write_elementwise(w: FunctionWriter, inside: _Buffers) -> None:
    size, bytes = inside.type.size, inside.type.dtype.bytes
    lanes = min(ZMM_BYTES // bytes, 1 << max(size.bit_length() - 1, 0))
    tail = 1 << max(size % lanes - 1, 0).bit_length()
    write_loop(w, LoopShape(size, lanes, tail, is_vector=True), inside, [])


def _write_bytes(w: FunctionWriter, base: Register, byte: int, count: int) -> None:
    if count:
        arguments = [base, constant(I8, byte), constant(I64, count), constant(I1, 0)]
        w.call_void("llvm.memset.p0.i64", arguments)
