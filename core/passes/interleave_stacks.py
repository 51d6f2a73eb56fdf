"""Interleaving of what a loop stacks: the rows of one round lie side by side, as the fields of a record do.

    … for %i upto 8191 carrying … stacking <8191 x 14>, <8191 x 14>, …       … stacking <8191 x 854>
        yield %c, %e, %f, …                                                      %r = concatenate %e, %f, … along 0
                                                                                 yield %c, %r
    … for %i upto 8191 …                                           becomes   … for %i upto 8191 …
        %a = gather %0.1: <8191 x 14> at %j                                      %q = gather %0.1: <8191 x 854> at %j
        %b = gather %0.2: <8191 x 14> at %j                                      %a = slice %q from 0 upto 14
        …                                                                        %b = slice %q from 14 upto 28

A loop that is differentiated keeps for each round what the derivative will need of it, and a layer of an LSTM keeps ten
vectors.  With six layers, round after round goes through memory at sixty places, and back again: more than the machine
follows, each on a page of its own.  Side by side they are one place.

Source: arrays of structures: Hennessy & Patterson, Computer Architecture, 2nd edition, §5.3 (merging arrays).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, Final

from ..analysis import Analyses, Analysis
from ..ir import Block, Builder, Function, Instruction, Op, Region, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import Concatenate, ShapeCast, Slice
from ..ops.flows import (
    Flow,
    Role,
    add_flows,
    add_yields,
    flows_in,
    flows_of,
    keep_flows,
    yields_of_bodies,
)
from ..ops.indexing import index_of_entry
from ..types import DType, TensorType
from .base import FunctionPass

LEAST_STACKS: Final = 16
"""Of one element type: the machine follows so many places. With 10 of 7 MB the gradient of an LSTM took 1.12 of its
time interleaved, with 20 of 2 MB 0.77, with 60 of 1 MB 0.6."""

LEAST_BYTES: Final = 8 << 20
"""Of all of them: what the caches hold is read at any place. 7 MB took 0.96 of the time, 14 MB 0.42."""

MOST_BYTES: Final = 4 << 10
"""Of an element: one that fills a page is a stream of its own."""


@dataclass(frozen=True)
class InterleaveStacks(FunctionPass):
    """Stacks what a `for` yields as one tensor, whose rows have the elements of a round side by side.

    Taken are stacked tensors that are only read one element at a time, if there are 16 or more of an element type,
    which are 8 MiB together, and an element has 4 KiB at most.

    Requires: structured control flow; loops between blocks are left alone.
    Preserves: every bit of what the evaluator computes; nests that fuse otherwise behind it may round otherwise.
    Cost: linear.
    Source: Hennessy & Patterson, Computer Architecture, 2nd edition, §5.3 (merging arrays).
    """

    name: ClassVar[str] = "interleave-stacks"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        parts: dict[Value, _Part] = {}
        for block in walk_blocks(function.body):
            for instruction in block.instructions:
                for stacked in _groups(instruction):
                    parts |= _interleave(instruction, stacked)
        if parts:
            _read_parts(function.body, parts)
        return bool(parts)


@dataclass(frozen=True, slots=True)
class _Part:
    """Where the elements of a tensor are that was stacked: in the rows of `whole`, from `start` on."""

    whole: Value
    start: int


def _groups(loop: Instruction) -> list[list[Value]]:
    """What a loop stacks that shall lie side by side."""
    found: dict[DType, list[Value]] = defaultdict(list)
    for flow in flows_in(loop, Role.STACKED):
        stacked, element = _result(loop, flow), flow.inner_type
        is_short = isinstance(element, TensorType) and element.bytes <= MOST_BYTES
        if is_short and _is_read_by_elements(stacked):
            found[stacked.tensor.dtype].append(stacked)
    return [
        group
        for group in found.values()
        if len(group) >= LEAST_STACKS and sum(x.tensor.bytes for x in group) >= LEAST_BYTES
    ]


def _result(loop: Instruction, flow: Flow) -> Value:
    assert flow.result is not None
    return loop.results[flow.result]


def _is_read_by_elements(stacked: Value) -> bool:
    """Whether something reads it, and all that does takes one element at an index."""
    return bool(stacked.uses) and all(index_of_entry(user) is not None for user in stacked.uses)


def _interleave(loop: Instruction, stacked: Sequence[Value]) -> dict[Value, _Part]:
    """Stack these together; each of them, which the loop makes no more, is a part of the new one."""
    flows = {_result(loop, flow): flow for flow in flows_in(loop, Role.STACKED)}
    elements = [x for one in stacked for x in yields_of_bodies(loop, flows[one])]
    b = Builder(Block(), loop.location)
    row = b.emit(Concatenate(0), *(b.emit(ShapeCast((x.tensor.size,)), x) for x in elements))
    loop.regions[0].entry.instructions[-1:-1] = b.block.instructions
    gone = {flows[one].number for one in stacked}
    keep_flows(loop, [flow for flow in flows_of(loop) if flow.number not in gone])
    type = TensorType((stacked[0].tensor.shape[0], row.tensor.size), row.tensor.dtype)
    added = add_flows(loop, Role.STACKED, [Value(type)])
    add_yields(loop, 0, added, [row])
    whole = _result(loop, added[0])
    starts = accumulate((x.tensor.size for x in elements), initial=0)
    return {one: _Part(whole, start) for one, start in zip(stacked, starts, strict=False)}


def _read_parts(region: Region, parts: dict[Value, _Part]) -> None:
    """Take the elements of tensors that are parts from the rows of the whole, each row once in a block."""
    for block in walk_blocks(region):
        rows: dict[tuple[Value, Value, Op], Value] = {}
        old, block.instructions = block.instructions, []
        for instruction in old:
            op, operands = instruction.op, instruction.operands
            if not operands or operands[0] not in parts:
                block.instructions.append(instruction)
                continue
            part, index, result = parts[operands[0]], operands[1], instruction.result
            b = Builder(block, instruction.location)
            key = part.whole, index, op
            if key not in rows:
                rows[key] = b.emit(op, part.whole, index)
            stop = part.start + result.tensor.size
            element = b.emit(Slice((part.start,), (stop,)), rows[key])
            result.replace_with(b.emit(ShapeCast(result.tensor.shape), element))
            instruction.set_operands(())
