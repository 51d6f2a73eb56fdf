"""Arenas of kernels that may give up the GIL: each call has its own, and gives it back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnkit.jit.emit.arena_header import OWNER
from nnkit.jit.entry import ArrayNode, Signature, bind, entry_text
from nnkit.jit.llvm import compile_module

from .programs import Array, Compiler, Memory, explain, refuse

SIZE = 256
X = ArrayNode("i64", ())
SIGNATURE = Signature((X,), X)
RECURSES = """
declare void @again(i64)
define i64 @kernel(ptr %in, ptr %out, ptr %arena) {
entry:
  %mine = getelementptr i8, ptr %arena, i64 248
  %n = load i64, ptr %in
  store i64 %n, ptr %mine
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %inner, label %done
inner:
  %m = sub i64 %n, 1
  call void @again(i64 %m)
  br label %done
done:
  %kept = load i64, ptr %mine
  store i64 %kept, ptr %out
  %negative = icmp slt i64 %kept, 0
  %code = select i1 %negative, i64 1, i64 0
  store i64 %kept, ptr %arena
  ret i64 %code
}
"""
"""A kernel that keeps its argument in the last word of the arena while it calls the program again with one less."""


class Recursive:
    """The program, and the words of its own arena."""

    def __init__(self, native: bool) -> None:

        self.depths: list[int] = []

        def again(n: int) -> None:
            self.depths.append(n)
            assert int(self.call(np.array(n, np.int64))) == n

        prototype = ctypes.PYFUNCTYPE(None, ctypes.c_int64)
        self.callback = prototype(again)
        address = ctypes.cast(self.callback, ctypes.c_void_p).value
        assert address is not None
        entry = entry_text(SIGNATURE, "kernel", "entry", native=native, private_arena=SIZE)
        module = compile_module(RECURSES + entry.text, {**entry.symbols, "again": address})
        self.memory = Memory(SIZE)
        self.call: Callable[[Array], Any] = bind(
            module.address(entry.name),
            signature=SIGNATURE,
            arena=self.memory.address,
            fallback=refuse,
            explain=explain,
            keep_alive=(module, self.memory),
            native=native,
            private_arena=SIZE,
        )

    @property
    def owner(self) -> int:
        return self.memory.words(OWNER // 8 + 1)[-1]


def test_calls_inside_of_calls_have_arenas_of_their_own(compiler: Compiler) -> None:
    program = Recursive(compiler.native)
    for depth in (0, 1, 20, 3):
        program.depths.clear()
        assert int(program.call(np.array(depth, np.int64))) == depth
        assert program.depths == [*range(depth - 1, -1, -1)]
        assert program.owner == 0


def test_a_failure_gives_the_arena_back(compiler: Compiler) -> None:
    program = Recursive(compiler.native)
    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            program.call(np.array(-7, np.int64))
        assert caught.value.args[:2] == (1, -7)
        assert program.owner == 0
    assert int(program.call(np.array(2, np.int64))) == 2
