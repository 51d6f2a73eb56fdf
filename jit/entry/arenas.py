"""Emits the allocation of an arena for each call, in programs that may release the GIL while they run.

The entry owns one arena. A call takes it while nobody has it, which the GIL makes safe to ask; a call that comes
meanwhile, from another thread or from the handler of a signal, allocates one for itself.
"""

from __future__ import annotations

from typing import Final

from ...core.lazy_dataclass import dataclass
from ..emit.alignment import emit_aligned, emit_malloc
from ..emit.arena_header import HOLDS_GIL, NOBODY, OWNER
from ..emit.writer import I64, PTR, FunctionWriter, ModuleWriter, Register, constant
from .access import NULL, QUICKLY_COMPILED

_ALLOCATE: Final = "arena.allocate"


@dataclass(frozen=True, slots=True)
class CallArena:
    """The arena of one call; `block` is what was allocated for it, null for that of the entry."""

    address: Register
    block: Register

    def give_back(self, w: FunctionWriter) -> None:
        """Release the shared arena, or free the call's own."""
        own, private, done = w.new_label("own"), w.new_label("private"), w.new_label("returned")
        w.branch_if(w.icmp("eq", self.block, NULL), own, private)
        w.begin(own)
        w.store(constant(I64, NOBODY), w.offset(self.address, OWNER))
        w.branch(done)
        w.begin(private)
        w.declare("free", None, [PTR])
        w.call_void("free", [self.block], is_rare=True)
        w.branch(done)
        w.begin(done)


def acquire_arena(
    module: ModuleWriter, w: FunctionWriter, own: Register, size: int, failed: str
) -> CallArena:
    """An arena of `size` bytes: `own`, or a new one; without memory, go to the label `failed`."""
    name = f"{w.name}.{_ALLOCATE}"
    if not module.has(name):
        _write_allocate(module, name, size)
    taken, ready = w.new_label("taken"), w.new_label("arena")
    before = w.block
    owner = w.load(w.offset(own, OWNER), I64)
    w.branch_if(w.icmp("ne", owner, constant(I64, NOBODY)), taken, ready, rarely=True)
    w.begin(taken)
    allocated = w.call(name, PTR, [])
    there = w.new_label("allocated")
    w.branch_if(w.icmp("eq", allocated, NULL), failed, there)
    w.begin(there)
    moved = emit_aligned(w, allocated)
    last = w.block
    w.branch(ready)
    w.begin(ready)
    address, block = w.phi(PTR), w.phi(PTR)
    for source, arena, made in ((before, own, NULL), (last, moved, allocated)):
        address.add_incoming(arena, source)
        block.add_incoming(made, source)
    # at once: the kernel may run Python code before it says so itself, to find the end of its stack
    w.store(constant(I64, HOLDS_GIL), w.offset(address.register, OWNER))
    return CallArena(address.register, block.register)


def _write_allocate(module: ModuleWriter, name: str, size: int) -> None:
    """`ptr allocate()`: memory for an arena wherever in it a cache line begins; null with a MemoryError set."""
    w = module.function(name, [], PTR, linkage="internal", attributes=QUICKLY_COMPILED)
    memory = emit_malloc(w, size)
    with w.when(w.icmp("eq", memory, NULL)):
        w.value(PTR, "call ptr @PyErr_NoMemory()")
        w.declare("PyErr_NoMemory", PTR, [])
    w.ret(memory)
