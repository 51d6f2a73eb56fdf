"""Emits parallel loops: the iterations as a function of their own, which the threads of the pool call.

    store what the loop reads to a context on the stack
    run(@loop, context, 0, blocks, …)           define @loop(context, block, thread) { load it; the block's iterations }

Which iterations are a block is decided when the program is compiled, so that each element is computed by the same
instructions in the same order whatever runs it: results do not depend on the number of threads.

Where a program polls (`polls`), a job has blocks for some `JOB` nanoseconds, and the thread that calls polls before
each.  Workers never touch Python: an exception is raised between two jobs.

A program that is compiled ahead of time, or with `NNKIT_DISABLE=threads`, knows no pool, and runs all blocks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ...core.lazy_dataclass import dataclass
from ..runtime.pool_code import MOST_BLOCKS, RUN
from .writer import I8, I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant

WAKING: Final = 30_000.0
"""Nanoseconds of a job that is worth waking workers for: that takes the thread that calls 14 µs where cores sleep, too
(4 where they do not), and they come 10 to 50 µs later.  Shorter jobs are shared with workers that are awake."""

BlockBody: TypeAlias = Callable[[FunctionWriter, Sequence[Register], Register, Register], None]
"""Writes a block, from what has been captured, its number, and the thread's, which is less than there are threads."""


@dataclass(frozen=True)
class ParallelLoops:
    """Writes parallel loops into a module, as jobs of the pool."""

    module: ModuleWriter

    def write(
        self,
        w: FunctionWriter,
        blocks: int,
        captured: Sequence[Register],
        body: BlockBody,
        *,
        nanoseconds: float,
        threads: int,
    ) -> None:
        """Run `body` for each of `blocks` blocks, which read the registers that are `captured`, and take so long, on so
        many threads at most."""
        assert blocks <= MOST_BLOCKS
        kept = [register for register in dict.fromkeys(captured) if not register.is_constant]
        inner = self._function(w)
        context, number, thread = inner.parameters
        offsets, size = _layout(kept)
        loaded = {
            register: inner.load(inner.offset(context, offset), register.type, align=_ALIGNMENT)
            for register, offset in zip(kept, offsets, strict=True)
        }
        body(inner, [loaded.get(register, register) for register in captured], number, thread)
        inner.ret()
        shared = w.allocate(I8, max(size, 1))
        for register, offset in zip(kept, offsets, strict=True):
            w.store(register, w.offset(shared, offset), align=_ALIGNMENT)
        wakes = constant(I64, int(nanoseconds >= WAKING))
        self._run(w, inner.name, shared, blocks, [wakes, constant(I64, threads)])

    def _function(self, w: FunctionWriter) -> FunctionWriter:
        stem = f"{w.name}.parallel"
        name = f"{stem}.{self.module.use(stem)}"
        arguments = [Argument(PTR), Argument(I64), Argument(I64)]
        return self.module.function(
            name, arguments, None, linkage="internal", attributes="nounwind noinline"
        )

    def _run(
        self,
        w: FunctionWriter,
        function: str,
        context: Register,
        blocks: int,
        limits: Sequence[Register],
    ) -> None:
        code = Register(f"@{function}", PTR)
        together = w.pacing.job_length(blocks) if w.pacing is not None else 0
        if w.pacing is None or not together:
            bounds = constant(I64, 0), constant(I64, blocks)
            w.call_void(RUN, [code, context, *bounds, *limits])
            return
        start, stop, step = (constant(I64, number) for number in (0, blocks, together))
        pacing, w.pacing = w.pacing, None
        with w.loop(start, stop, step) as loop:
            pacing.poll(together)
            left = w.sub(constant(I64, blocks), loop.index)
            count = w.smin(left, constant(I64, together))
            w.call_void(RUN, [code, context, loop.index, count, *limits])
        w.pacing = pacing


_ALIGNMENT: Final = 8
"""Bytes: what most of what is captured has, addresses and indices; vectors are read once for a block."""


def _layout(registers: Sequence[Register]) -> tuple[list[int], int]:
    """The offsets of registers in a context, and its size."""
    offsets: list[int] = []
    size = 0
    for register in registers:
        offsets.append(size)
        size += -(-register.type.size // _ALIGNMENT) * _ALIGNMENT
    return offsets, size
