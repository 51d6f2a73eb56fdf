"""Aligned memory, of this process and of `malloc`."""

from __future__ import annotations

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir import ALIGNMENT
from nnkit.jit.emit.alignment import allocate_aligned, emit_aligned, emit_malloc
from nnkit.jit.emit.writer import I64, ModuleWriter
from nnkit.jit.llvm import compile_module


@given(st.integers(1, 1000))
def test_memory_of_the_process_begins_at_a_multiple(size: int) -> None:
    memory = allocate_aligned(size)
    assert memory.nbytes == size and memory.ctypes.data % ALIGNMENT == 0 and not memory.any()


def test_malloc_leaves_room_for_what_is_aligned() -> None:
    module = ModuleWriter()
    w = module.function("f", [], I64)
    block = emit_malloc(w, 100)
    arena = emit_aligned(w, block)
    moved = w.sub(w.ptrtoint(arena), w.ptrtoint(block))
    w.call_void("free", [block])
    w.ret(moved)
    compiled = compile_module(module.text())
    for _ in range(20):
        assert 0 <= ctypes.CFUNCTYPE(ctypes.c_int64)(compiled.address("f"))() < ALIGNMENT
