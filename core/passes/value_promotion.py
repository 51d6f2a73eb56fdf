"""Memory to values: what is only loaded and stored needs no memory.

    %p = allocateStack f32 count 1
    store %x: f32 to %p: *f32
    if %c: bool {                        %v = if %c: bool -> f32 {
    'then():                             'then():
        store %y: f32 to %p: *f32            yield %y: f32
        yield                            } else {
    } else { … }                         'else(): yield %x: f32 }
    %v = load %p: *f32

1. An allocation is a *cell* if it has room for one value and its pointer is only loaded from and stored to.
2. One walk in the order of execution keeps the current value of every cell.  A load is that value; a store
   makes another one current.
3. A choice that stores to a cell yields the cell's value as one more result; a loop that does carries it.
   The cells that an instruction stores to inside are found beforehand, from the inside outwards.

Memory is undefined at first, and so is a cell.
Source: Cytron et al. 1991; in structured control flow no dominance frontier is needed.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..analysis.alias import is_kept
from ..ir import Block, Builder, Effect, Function, Instruction, MemoryUse, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..ops import Undefined
from ..ops.flows import add_flows, add_yields, is_condition, structured
from ..ops.memory import pointee_of
from .base import FunctionPass


@dataclass(frozen=True)
class ValuePromotion(FunctionPass):
    """Keeps in values what `allocateStack` was used for, if its pointer goes nowhere else.

    Requires: structured control flow; functions with several blocks are left alone.
    Preserves: results and effects.
    Cost: linear, times the number of cells that loops and choices store to, and once more for each level of
        cells that hold pointers to cells.
    Source: Cytron et al. 1991.
    """

    name: ClassVar[str] = "value-promotion"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or len(body.blocks) != 1:
            return False
        if not any(i.op.stack_values() for i in walk(body)):
            return False
        changed = False
        # a cell that held the pointer to another one is gone then, and the other may be one too
        while cells := _cells(body):
            promotion = _Promotion(cells, _stored(body, cells))
            run_nested(promotion.block(body.entry))
            analyses.forget(function, preserved=Analysis.FLOW)
            changed = True
        return changed


def _cells(body: Region) -> set[Value]:
    """Pointers to memory for one value that is only loaded and stored, and not stored by a condition."""
    cells = {
        i.result
        for i in walk(body)
        if i.op.stack_values() == 1 and all(_is_access(user, i.result) for user in i.result.uses)
    }
    # a condition yields nothing but whether to go on
    for instruction in walk(body):
        for number, region in enumerate(instruction.regions):
            if is_condition(instruction, number):
                inside = list(walk(region))
                made = {result for i in inside for result in i.results}
                stored = {use.pointer for i in inside if (use := _stored_by(i))}
                cells -= stored - made
    return cells


def _is_access(user: Instruction, pointer: Value) -> bool:
    """Whether it is nothing but a load from the place, or a store to it."""
    values = [use.value for use in user.op.memory_uses(user)]
    return bool(values) and None not in values and not is_kept(pointer, user)


def _stored_by(instruction: Instruction) -> MemoryUse | None:
    uses = instruction.op.memory_uses(instruction)
    return next((use for use in uses if use.effect & Effect.WRITE), None)


def _stored(body: Region, cells: set[Value]) -> dict[Instruction, dict[Value, None]]:
    """For every instruction with bodies, the cells from outside of it that are stored to inside."""
    found: dict[Instruction, dict[Value, None]] = {}
    holders: list[tuple[Instruction | None, Instruction]] = []
    pending: list[tuple[Instruction | None, Block]] = [(None, body.entry)]
    while pending:
        holder, block = pending.pop()
        for instruction in block.instructions:
            if instruction.regions:
                holders.append((holder, instruction))
                found.setdefault(instruction, {})
                pending.extend((instruction, inner.entry) for inner in instruction.regions)
            elif holder and (use := _stored_by(instruction)) and use.pointer in cells:
                found[holder][use.pointer] = None
    own: dict[Instruction | None, set[Value]] = {}
    for instruction in found:
        own[instruction] = {
            i.result
            for region in instruction.regions
            for i in region.entry.instructions
            if i.op.stack_values()
        }
    for holder, instruction in reversed(holders):
        for cell in own[instruction]:
            found[instruction].pop(cell, None)
        if holder is not None:
            found[holder].update(found[instruction])
    return found


@dataclass
class _Promotion:
    """The walk: `current` has the value of every cell where the walk stands."""

    cells: set[Value]
    stored: dict[Instruction, dict[Value, None]]
    current: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def block(self, block: Block) -> Nested:
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instruction in old:
            use = next(iter(instruction.op.memory_uses(instruction)), None)
            if not self.cells.isdisjoint(instruction.results):
                b.location = instruction.location
                self.current[instruction.result] = b.emit(Undefined(pointee_of(instruction.result)))
            elif use is None or use.pointer not in self.cells:
                if instruction.op.is_structured:
                    yield from self.structured(instruction)
                block.instructions.append(instruction)
            elif use.effect & Effect.WRITE:
                assert use.value is not None
                self.current[use.pointer] = use.value
                instruction.erase()
            else:
                instruction.result.replace_all_uses_with(self.current[use.pointer])
                instruction.erase()

    def structured(self, instruction: Instruction) -> Nested:
        """Give the instruction the cells that it stores to: as operands of a loop, and as results."""
        cells = list(self.stored[instruction])
        before = [self.current[cell] for cell in cells]
        flows = add_flows(instruction, structured(instruction).updated, before)
        for number, region in enumerate(instruction.regions):
            self.current.update(zip(cells, before, strict=True))
            for cell, flow in zip(cells, flows, strict=True):
                for body, position in flow.arguments:
                    if body == number:
                        self.current[cell] = region.entry.arguments[position]
            yield self.block(region.entry)
            add_yields(instruction, number, flows, [self.current[cell] for cell in cells])
        for cell, flow in zip(cells, flows, strict=True):
            assert flow.result is not None
            self.current[cell] = instruction.results[flow.result]
