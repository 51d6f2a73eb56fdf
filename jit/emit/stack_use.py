"""What compiled code takes of the stack of a thread, and how much of that is left.

A thread may have as little as 64 KiB, and nothing warns of its end: so code that takes much asks first.

1. The entry asks for what a call takes, but for the recursions of the program (`stack_use`); where there is too little,
   Python makes the call on another stack.
2. A function that the program calls asks for its own frame, and those of the functions that are parts of it.
"""

from __future__ import annotations

import re
from typing import Final

from ...core.lazy_dataclass import dataclass
from ..runtime.process import STACK, STACK_KEY, WORDS
from .writer import I32, PTR, FunctionWriter, ModuleWriter, Register, constant

STACK_BYTES: Final = 1 << 20
"""How much of the stack the calls of a program may take, where nothing better is known: code by `dlc` does not ask the
system.  Main threads have 8 MiB on Linux and 1 MiB on Windows, others 8, 1 and 0.5 (macOS); musl gives 128 KiB."""

STACK_LIMIT: Final = "nnkit.stack.limit"
"""A function of programs that ask, which has Python find the end of the stack when a thread first runs one."""

SMALL: Final = 8 << 10
"""Bytes that nobody asks for: half of what `core.thread_stack` leaves of the smallest stacks."""

_CALLED: Final = re.compile(r"@([\w.$-]+)")
"""The functions that are named in a line, also those that are handed to another one."""


def stack_use(module: ModuleWriter, name: str, *, but: frozenset[str] = frozenset()) -> int:
    """Bytes of the frames of a function and of those of its module that it calls, without those of `but`."""
    frames = {function.name: function.frame.bytes for function in module.functions}
    if sum(frames.values()) <= SMALL:
        return sum(frames.values())
    called = {
        function.name: {
            symbol
            for symbol in _CALLED.findall("\n".join(function.lines))
            if symbol in frames and symbol not in {function.name, *but}
        }
        for function in module.functions
    }
    most: dict[str, int] = {}
    pending = [name]
    while pending:
        each = pending[-1]
        waiting = called[each].difference(most, pending)
        if waiting:
            pending += waiting
        else:
            most[each] = frames[each] + max((most.get(x, 0) for x in called[each]), default=0)
            pending.pop()
    return most[name]


@dataclass(frozen=True, eq=False)
class StackCheck:
    """The line of a function that says how far down it is going to reach."""

    w: FunctionWriter
    line: int

    def settle(self, module: ModuleWriter, but: frozenset[str]) -> None:
        """Have it count all frames but those of functions that check themselves, once these are written."""
        taken = stack_use(module, self.w.name, but=but)
        if taken > SMALL:
            line = self.w.lines[self.line]
            self.w.lines[self.line] = line.removesuffix(" 0") + f" {-taken}"


def stack_limit(module: ModuleWriter, w: FunctionWriter, stack_bytes: int) -> Register:
    """The address below which the stack of this thread must not reach; so far below here if that is unknown."""
    if not module.has(STACK_LIMIT):
        _write_stack_limit(module, stack_bytes)
    return w.call(STACK_LIMIT, PTR, [])


def frame_address(w: FunctionWriter, taken: int = 0) -> Register:
    """Where the frame of this function begins, so many bytes further down."""
    frame = w.call("llvm.frameaddress.p0", PTR, [constant(I32, 0)])
    return w.value(PTR, f"getelementptr i8, {frame.typed}, i64 {-taken if taken else 0}")


def _write_stack_limit(module: ModuleWriter, stack_bytes: int) -> None:
    """`ptr limit()`: the stack limit that the thread has cached, or queries now."""
    w = module.function(STACK_LIMIT, [], PTR, linkage="internal")
    key = w.load(w.offset(module.external(WORDS), STACK_KEY), I32)
    kept = w.call("pthread_getspecific", PTR, [key])
    first, known = w.new_label("first"), w.new_label("known")
    w.branch_if(w.icmp("eq", kept, constant(PTR, 0)), first, known, rarely=True)
    w.begin(first)
    found = w.call(STACK, PTR, [])
    unknown = w.icmp("eq", found, constant(PTR, 0))
    w.ret(w.select(unknown, frame_address(w, stack_bytes), found))
    w.begin(known)
    w.ret(kept)
