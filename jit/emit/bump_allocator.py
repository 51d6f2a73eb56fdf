"""A bump allocator: memory in chunks that grow, all freed when the kernel returns.

Three words of the arena's header hold the next free address, the end of the current chunk, and the chunk itself; a
chunk begins with the address of the one before it, its size, and that of all chunks up to it.

`malloc` promises memory that the machine does not have, and the system ends the process that uses it.  So a run has
no more than the process's word `MOST_KEPT` says, where the process is known.
"""

from __future__ import annotations

from typing import Final

from ..runtime.process import MOST_KEPT, WORDS
from .arena_header import BUMP_ALLOCATOR
from .writer import I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant

# the three words of the arena's header
_NEXT, _END, _CHUNK = BUMP_ALLOCATOR, BUMP_ALLOCATOR + 8, BUMP_ALLOCATOR + 16
# offsets of the words that a chunk begins with
_BEFORE, _SIZE, _TOTAL = 0, 8, 16
_HEAD = 32
"""Bytes of the three words, and of one to spare: what follows is aligned as the chunk."""

_ALIGNMENT = 16
"""That of `malloc`: any tensor's element, and a vector of SSE2."""

_FIRST_CHUNK = 1 << 16
"""Bytes: below the 128 KiB from which glibc's `malloc` asks the system, so that programs that allocate little are
quick."""

_LARGEST_CHUNK = 1 << 26
"""Bytes: chunks double up to this, so that there are few, and no more than so many are left over."""

ALLOCATE: Final = "nnkit.cell"
FREE_CHUNKS: Final = "nnkit.release"


def begin_allocations(w: FunctionWriter, report: Register) -> None:
    """Start without any chunk."""
    for offset in (_NEXT, _END, _CHUNK):
        w.store(constant(I64, 0), w.offset(report, offset))


def end_allocations(module: ModuleWriter, w: FunctionWriter, report: Register) -> None:
    """Free all chunks."""
    free_chunks(module, w, w.load(w.offset(report, _CHUNK), PTR))


def bump_allocate(
    module: ModuleWriter, w: FunctionWriter, report: Register, size: Register, *, is_limited: bool
) -> Register:
    """Allocate `size` bytes, aligned to 16; null if there is no memory: `allocated_bytes` says how much there was.

    `is_limited` is whether the process is known, whose word says how much memory a run may have.
    """
    if not module.has(ALLOCATE):
        _write_allocate(module, is_limited)
    return w.call(ALLOCATE, PTR, [report, size])


def allocated_bytes(w: FunctionWriter, report: Register) -> Register:
    """The bytes of all chunks, after an allocation that failed; else a word without a meaning."""
    return w.load(w.offset(report, _NEXT), I64)


def free_chunks(module: ModuleWriter, w: FunctionWriter, first: Register) -> None:
    """Free a list of blocks, each of which begins with the address of the next."""
    if not module.has(FREE_CHUNKS):
        _write_free_chunks(module)
    w.call_void(FREE_CHUNKS, [first])


def _write_allocate(module: ModuleWriter, is_limited: bool) -> None:
    w = module.function(ALLOCATE, [Argument(PTR), Argument(I64)], PTR, linkage="internal")
    report, size = w.parameters
    rounded = w.and_(w.add(size, constant(I64, _ALIGNMENT - 1)), constant(I64, -_ALIGNMENT))
    start = w.load(w.offset(report, _NEXT), I64)
    following = w.add(start, rounded)
    end = w.load(w.offset(report, _END), I64)
    fits, full = w.new_label("fits"), w.new_label("full")
    w.branch_if(w.icmp("ugt", following, end), full, fits, rarely=True)
    w.begin(fits)
    w.store(following, w.offset(report, _NEXT))
    w.ret(w.inttoptr(start))
    w.begin(full)
    limit = module.external(WORDS) if is_limited else None
    _write_chunk(w, report, rounded, limit and w.load(w.offset(limit, MOST_KEPT), I64))


def _write_chunk(
    w: FunctionWriter, report: Register, size: Register, limit: Register | None
) -> None:
    """Allocate a chunk of twice the size of the last, or more where that is needed; the first allocation in it."""
    before = w.load(w.offset(report, _CHUNK), PTR)
    is_first, other = w.new_label("first"), w.new_label("other")
    ask = w.new_label("ask")
    w.branch_if(w.icmp("eq", before, constant(PTR, 0)), is_first, other)
    w.begin(is_first)
    w.branch(ask)
    w.begin(other)
    last = w.load(w.offset(before, _SIZE), I64)
    twice = w.add(last, last)
    allocated = w.load(w.offset(before, _TOTAL), I64)
    w.branch(ask)
    w.begin(ask)
    wanted, kept = w.phi(I64), w.phi(I64)
    wanted.add_incoming(constant(I64, _FIRST_CHUNK), is_first)
    wanted.add_incoming(twice, other)
    kept.add_incoming(constant(I64, 0), is_first)
    kept.add_incoming(allocated, other)
    most = constant(I64, _LARGEST_CHUNK)
    usual = w.select(w.icmp("ult", wanted.register, most), wanted.register, most)
    least = w.add(size, constant(I64, _HEAD))
    whole = w.select(w.icmp("ult", usual, least), least, usual)
    total = w.add(kept.register, whole)
    missing, done = w.new_label("missing"), w.new_label("done")
    if limit is not None:
        within = w.new_label("within")
        w.branch_if(w.icmp("ugt", total, limit), missing, within, rarely=True)
        w.begin(within)
    chunk = w.call("malloc", PTR, [whole])
    w.branch_if(w.icmp("eq", chunk, constant(PTR, 0)), missing, done, rarely=True)
    w.begin(missing)  # the next free address is needed no more
    w.store(kept.register, w.offset(report, _NEXT))
    w.ret(constant(PTR, 0))
    w.begin(done)
    w.store(before, w.offset(chunk, _BEFORE))
    w.store(whole, w.offset(chunk, _SIZE))
    w.store(total, w.offset(chunk, _TOTAL))
    w.store(chunk, w.offset(report, _CHUNK))
    number = w.ptrtoint(chunk)
    start = w.add(number, constant(I64, _HEAD))
    w.store(w.add(start, size), w.offset(report, _NEXT))
    w.store(w.add(number, whole), w.offset(report, _END))
    w.ret(w.inttoptr(start))


def _write_free_chunks(module: ModuleWriter) -> None:
    w = module.function(FREE_CHUNKS, [Argument(PTR)], None, linkage="internal")
    (first,) = w.parameters
    head, body, done = (w.new_label(hint) for hint in ("head", "body", "done"))
    before = w.block
    w.branch(head)
    w.begin(head)
    current = w.phi(PTR)
    current.add_incoming(first, before)
    w.branch_if(w.icmp("eq", current.register, constant(PTR, 0)), done, body)
    w.begin(body)
    following = w.load(current.register, PTR)
    w.call_void("free", [current.register])
    current.add_incoming(following, body)
    w.branch(head)
    w.begin(done)
    w.ret()
