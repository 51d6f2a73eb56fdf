"""Checks in parallel loops: of the blocks of a job that fail, the first one is told, whichever ran first.

    record:  lock | the first block that has failed | the code of its check

A block whose check fails writes itself into the record, unless a block before it is there, and returns.  Blocks behind
one that has failed return at once; those before it run, as one of them may fail, too.  So the error is that of one
thread, which runs the blocks in order.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ...core.lazy_dataclass import dataclass
from .checks import Checks
from .sites import CheckSite
from .writer import I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant

_BLOCK: Final = 8
"""Offset into a record, behind the lock: the first block that has failed."""
_CODE: Final = 16
"""Offset into a record: the code of its check."""
_WORDS: Final = 3
"""Those of a record."""

_NO_BLOCK: Final = -1
"""The greatest number, as blocks are compared without a sign."""

_NOTE: Final = "nnkit.note_failure"


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """The record of a job, and where the details of a failure go, as registers of one function."""

    record: Register
    report: Register

    @classmethod
    def begin(cls, w: FunctionWriter, report: Register) -> FailureRecord:
        """Write an empty one, before the job runs."""
        record = w.allocate(I64, _WORDS, align=8)
        for offset, value in ((0, 0), (_BLOCK, _NO_BLOCK), (_CODE, 0)):
            w.store(constant(I64, value), w.offset(record, offset))
        return cls(record, report)

    @contextmanager
    def block(
        self, module: ModuleWriter, w: FunctionWriter, number: Register, sites: list[CheckSite]
    ) -> Generator[Checks]:
        """The checks of what is written meanwhile: the block of this number."""
        runs, done = w.new_label("runs"), w.new_label("block.done")
        place = w.offset(self.record, _BLOCK)
        failed = w.value(I64, f"load atomic i64, {place.typed} monotonic, align 8")
        w.branch_if(w.icmp("ult", failed, number), done, runs, rarely=True)
        w.begin(runs)
        checks = Checks(sites)
        yield checks
        details = w.allocate(I64, 2, align=8)

        def leave(code: Register) -> None:
            if not module.has(_NOTE):
                _write_note(module)
            w.call_void(_NOTE, [self.record, number, code, details, self.report])
            w.branch(done)

        w.branch(done)
        checks.write_failures(w, details, leave)
        w.begin(done)

    def code(self, w: FunctionWriter) -> Register:
        """When the job is done: the code of the check that failed, or 0."""
        return w.load(w.offset(self.record, _CODE), I64)


def _write_note(module: ModuleWriter) -> None:
    """`note(record, block, code, details, report)`: keep what is of the first block."""
    arguments = [Argument(type) for type in (PTR, I64, I64, PTR, PTR)]
    w = module.function(
        _NOTE, arguments, None, linkage="internal", attributes="nounwind noinline cold"
    )
    record, block, code, details, report = w.parameters
    wait, locked = w.new_label("wait"), w.new_label("locked")
    w.branch(wait)
    w.begin(wait)
    held = w.value(I64, f"atomicrmw xchg {record.typed}, i64 1 acquire, align 8")
    w.branch_if(w.icmp("eq", held, constant(I64, 0)), locked, wait)
    w.begin(locked)
    first = w.offset(record, _BLOCK)
    known = w.value(I64, f"load atomic i64, {first.typed} monotonic, align 8")
    with w.when(w.icmp("ult", block, known), hint="first"):
        w.line(f"store atomic {block.typed}, {first.typed} monotonic, align 8")
        w.store(code, w.offset(record, _CODE))
        for offset in (0, 8):
            w.store(w.load(w.offset(details, offset), I64), w.offset(report, offset))
    w.line(f"store atomic i64 0, {record.typed} release, align 8")
    w.ret()
