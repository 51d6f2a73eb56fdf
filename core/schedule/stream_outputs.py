"""Has large results written past the caches, whole lines at a time.

A store to a line that is in no cache waits for the line, to change a part of it: a result that is larger than the
caches is read once, for nothing, before it is written.  So its elements are stored in a small buffer in the nearest
cache first, some KiB of neighbours, and written from there (`kernels/stage_stores`).

1. Results that lie where an operand did are left alone: their lines are in the caches, as they have been read.
2. Rows that are filled a few numbers at a time are staged whatever is computed: each store waits for its line.
3. Vectors that lie side by side are staged if little is computed and as much is read as is written.  Else other
   instructions run while stores wait; and of a result that is only written, the system has often cleared new pages
   just now, which are in the caches.  Their operands are not fetched ahead: that would stand in a queue with the lines.
4. Iterations of few elements are taken several at a time (`kernels/split`); of those with many elements it is the loops
   inside that are staged, unless the result is read there again.

docs/performance.md has measurements ("Rows of large results past the caches").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..compute.bodies import base_of
from ..ir import ALIGNMENT, Block, Instruction, Place, Value
from ..ir.placement import output
from ..kernels.access_ops import buffer_of
from ..kernels.dependence import accesses_in, root_of
from ..kernels.errors import IllegalRewrite
from ..kernels.indices import IndexSum
from ..kernels.loops import body_of, is_loop, loop_op, loops_of
from ..kernels.ops import Kernel, Loop, vector_cost
from ..kernels.prefetch import drop_fetches
from ..kernels.split import split
from ..kernels.stage_stores import LoopRows, stage_stores, step_of, stored_rows, stores_of_rows
from ..lazy_dataclass import dataclass
from .switches import is_enabled

LEAST_STREAMED: Final = 16 * 1024 * 1024
"""Bytes of a tensor from which it is written past the caches: little would be there still when it is read."""

_MOST_STAGED: Final = 16 * 1024
"""Bytes of rows that are stored in the nearest cache first: half of it, where it is smallest."""

_STAGED: Final = 4 * 1024
"""The same of vectors side by side, where any number of lines will do: of more, reads and writes take turns."""

_MOST_COST: Final = 8.0
"""Additions of vectors for each line that count as little: f32 in memory, eight multiplications and additions take 0.75
of their time past the caches, twelve 1.02, and exp (15) 1.03."""


def stream_outputs(
    instructions: Iterable[Instruction],
    places: Mapping[Value, Place],
    replaced: Sequence[Value | None],
) -> None:
    """Change kernels that make large results elsewhere than in the place of an operand that they read.

    `places` are where results lie, `replaced` the arguments that lie in outputs until these are made.
    """
    if not is_enabled("stream"):
        return
    known = {x: output(number) for number, x in enumerate(replaced) if x is not None}
    known.update(places)
    for instruction in instructions:
        if not isinstance(instruction.op, Kernel):
            continue
        block = instruction.regions[0].entry
        inputs = block.arguments[: len(instruction.operands)]
        where = [known.get(base_of(x)) for x in instruction.operands]
        read = sum(x.tensor.bytes for x in instruction.operands)
        for result, buffer in zip(instruction.results, block.arguments[len(where) :], strict=False):
            size = result.tensor.bytes
            there = [x for x, place in zip(inputs, where, strict=True) if place == known[result]]
            if size >= LEAST_STREAMED and not any(_is_read(block, x) for x in there):
                _Stream(buffer, reads_as_much=read >= size).write(block, {})


@dataclass(frozen=True)
class _Stream:
    """A result that is written past the caches."""

    buffer: Value
    reads_as_much: bool
    """Whether the operands are as large."""

    def write(self, block: Block, around: Mapping[Value, Loop]) -> None:
        """Stage what the loops of a block store; `around` are the indices of others."""
        for loop in filter(is_loop, loops_of(block)):
            outer, body, is_staged = loop, body_of(loop), False
            for rows in sorted(stored_rows(loop, self.buffer), key=lambda rows: -rows.stride):
                found = self._staged(block, outer, rows, around)
                if found is not None:
                    outer, is_staged = found, True
            if not is_staged and not _is_read(body, self.buffer):
                self.write(body, {**around, body.arguments[0]: loop_op(loop)})

    def _staged(
        self, block: Block, loop: Instruction, rows: LoopRows, around: Mapping[Value, Loop]
    ) -> Instruction | None:
        """The loop that copies rows of its iterations, or of several ones; None if it would gain nothing."""
        op, element = loop_op(loop), buffer_of("streamInto", self.buffer.type).dtype.bytes
        size = element * op.step * rows.stride
        if size > _MOST_STAGED:
            return None
        try:
            stores = stores_of_rows(loop, self.buffer, rows)
        except IllegalRewrite:
            return None
        count = 1
        if all(one.lanes and step_of(one) == 1 for one in stores):
            first = element * _divisor(rows.first.plus(rows.stride * op.lower), around)
            count = _STAGED // size
            is_cheap = vector_cost(loop) * ALIGNMENT <= _MOST_COST * size
            if not (is_cheap and self.reads_as_much and 0 < count <= op.count):
                return None
            # parts of lines would wait for them
            if min(size % ALIGNMENT, ALIGNMENT % size) or first % ALIGNMENT:
                return None
            drop_fetches(body_of(loop), lambda _: True)
        outer = split(block, loop, count).outer if count > 1 else loop
        stage_stores(outer, self.buffer, rows)
        return outer


def _divisor(index: IndexSum, around: Mapping[Value, Loop]) -> int:
    """What divides an index, whatever iterations loops are at."""
    found = index.constant
    for value, coefficient in index.terms.items():
        op = around.get(value)
        found = math.gcd(found, coefficient * (math.gcd(op.lower, op.step) if op else 1))
    return found


def _is_read(block: Block, buffer: Value) -> bool:
    """Whether something in a block loads elements of a buffer; a copy of it to where it lies is none."""
    found = accesses_in(block.instructions).accesses
    return any(root_of(x.buffer, ()) is buffer and not x.is_store and x.indices for x in found)
