"""Fills buffers and copies them."""

from __future__ import annotations

from ...core.ir import ALIGNMENT
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


def write_stream(w: FunctionWriter, source: Register, target: Register, type: TensorType) -> None:
    """Copy a tensor to elements that begin anywhere, by whole lines of memory, past the caches.

    Such stores may come later than those behind them.  Whoever tells another thread of them has a locked instruction
    or a barrier in between, as the pool and the GIL do.

    What is before the first line and behind the last one goes by itself: a line of which a part is stored in the other
    way has to come to the caches first, and leaves them again.
    """
    if type.bytes < 2 * ALIGNMENT:
        write_copy(w, source, target, type)
        return
    element = memory_type(type.dtype)
    align = type.dtype.bytes
    line = element.with_lanes(ALIGNMENT // align)
    first, step, last = (constant(I64, n) for n in (0, align, type.bytes))
    to_line = w.sub(constant(I64, ALIGNMENT), w.ptrtoint(target))
    before = w.and_(to_line, constant(I64, ALIGNMENT - 1))
    left = w.and_(w.sub(last, before), constant(I64, ALIGNMENT - 1))
    behind = w.sub(last, left)
    for begin, end in ((first, before), (behind, last)):
        with w.loop(begin, end, step, most=ALIGNMENT // align) as loop:
            moved = w.load(element_address(w, source, I8, loop.index), element, align=align)
            w.store(moved, element_address(w, target, I8, loop.index), align=align)
    lines = type.bytes // ALIGNMENT
    with w.loop(before, behind, constant(I64, ALIGNMENT), guarded=False, most=lines) as loop:
        there = element_address(w, source, I8, loop.index)
        moved = w.load(there, line, align=align)
        to = element_address(w, target, I8, loop.index)
        w.store(moved, to, align=ALIGNMENT, nontemporal=True)


def _write_bytes(w: FunctionWriter, base: Register, byte: int, count: int) -> None:
    if count:
        arguments = [base, constant(I8, byte), constant(I64, count), constant(I1, 0)]
        w.call_void("llvm.memset.p0.i64", arguments)
