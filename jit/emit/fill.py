"""Fills buffers and copies them."""

from __future__ import annotations

from ...core.ops.literal import Literal
from ...core.types import TensorType
from .element_access import element_address, offset_bytes
from .elements import memory_type, pack, splat_element
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


def _write_bytes(w: FunctionWriter, base: Register, byte: int, count: int) -> None:
    if count:
        arguments = [base, constant(I8, byte), constant(I64, count), constant(I1, 0)]
        w.call_void("llvm.memset.p0.i64", arguments)
