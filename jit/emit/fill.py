"""Initialises buffers that a nest accumulates into or updates, and folds compensation terms in afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

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
from .values import ZMM_BYTES
from .writer import I1, I8, I64, FunctionWriter, Register, constant

_ElementRule: TypeAlias = Callable[[Sequence[Register]], Sequence[Register]]
"""What is loaded of each buffer to what is stored there: nothing to those at the end, if there are fewer."""


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

    def fold(values: Sequence[Register]) -> Sequence[Register]:
        value, total, rest = values
        return constant(value.type, 0), *add_compensated(w, total, rest, value)

    _write_elementwise(w, type, (base, total, rest), fold)


def write_corrected(
    w: FunctionWriter, base: Register, total: Register, rest: Register, type: TensorType
) -> None:
    """The elements at `base` become the sums at `total` with what rounding had cut off."""

    def correct(values: Sequence[Register]) -> Sequence[Register]:
        return [corrected(w, *values[1:])]

    _write_elementwise(w, type, (base, total, rest), correct)


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


def _write_elementwise(
    w: FunctionWriter, type: TensorType, bases: Sequence[Register], write: _ElementRule
) -> None:
    """Loops over the elements of several buffers of one type: vectors, and what is left as the part of one."""
    lanes = min(ZMM_BYTES // type.dtype.bytes, 1 << max(type.size.bit_length() - 1, 0))
    left = type.size % lanes

    def at(index: Register, lanes: Lanes) -> None:
        stored = memory_type(type.dtype)
        spots = [
            Pointers(type.dtype, element_address(w, base, stored, index), 1, None, None, True)
            for base in bases
        ]
        values = write([load_elements(w, spot, lanes) for spot in spots])
        for spot, value in zip(spots, values, strict=False):
            store_elements(w, spot, value, lanes)

    whole = constant(I64, type.size - left)
    with w.loop(constant(I64, 0), whole, constant(I64, lanes)) as loop:
        at(loop.index, Lanes(lanes, lanes))
    if left:
        at(whole, Lanes(1 << (left - 1).bit_length(), left))


def _write_bytes(w: FunctionWriter, base: Register, byte: int, count: int) -> None:
    if count:
        arguments = [base, constant(I8, byte), constant(I64, count), constant(I1, 0)]
        w.call_void("llvm.memset.p0.i64", arguments)
