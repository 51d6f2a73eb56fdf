"""Memory that begins at a multiple of `ALIGNMENT`, as arenas and constants do."""

from __future__ import annotations

import numpy as np

from ...core.ir import ALIGNMENT
from ...core.types import Array
from .writer import I64, PTR, FunctionWriter, Register, constant


def allocate_aligned(size: int) -> Array:
    """Zeros of this process, at least one byte of them."""
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    return memory[first : first + size]


def emit_malloc(w: FunctionWriter, size: int) -> Register:
    """`malloc` of `size` bytes wherever in them `emit_aligned` begins; null if there is no memory."""
    return w.call("malloc", PTR, [constant(I64, size + ALIGNMENT)])


def emit_aligned(w: FunctionWriter, block: Register) -> Register:
    """The first aligned address in what `emit_malloc` has given."""
    last = w.ptrtoint(w.offset(block, ALIGNMENT - 1))
    return w.inttoptr(w.and_(last, constant(I64, -ALIGNMENT)))
