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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import replace_uses, resolve, walk
from ..ops import AllocateStack, Load, Store, Structured, Undefined
from ..ops.flows import add_flows, add_yields, is_condition, updated_role
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
        if not any(isinstance(i.op, AllocateStack) for i in walk(body)):
            return False
        changed = False
        # a cell that held the pointer to another one is gone then, and the other may be one too
        while cells := _cells(body, analyses.uses(function)):
            promotion = _Promotion(cells, _stored(body, cells))
            run_nested(promotion.block(body.entry))
            replace_uses(body, promotion.replaced)
            analyses.forget(function, preserved=Analysis.FLOW)
            changed = True
        return changed


def _cells(body: Region, uses: Mapping[Value, Sequence[Instruction]]) -> set[Value]:
    """Pointers to memory for one value that is only loaded and stored, and not stored by a condition."""
    cells = {
        i.result
        for i in walk(body)
        if isinstance(i.op, AllocateStack)
        and i.op.count == 1
        and all(_is_access(user, i.result) for user in uses.get(i.result, ()))
    }
    # a condition yields nothing but whether to go on
    for instruction in walk(body):
        for number, region in enumerate(instruction.regions):
            if is_condition(instruction, number):
                inside = list(walk(region))
                made = {result for i in inside for result in i.results}
                stored = {i.operands[1] for i in inside if isinstance(i.op, Store)}
                cells -= stored - made
    return cells


def _is_access(user: Instruction, pointer: Value) -> bool:
    match user.op:
        case Load():
            return True
        case Store():
            return user.operands[0] is not pointer
        case _:
            return False


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
            elif isinstance(instruction.op, Store) and instruction.operands[1] in cells and holder:
                found[holder][instruction.operands[1]] = None
    own: dict[Instruction | None, set[Value]] = {}
    for instruction in found:
        own[instruction] = {
            i.result
            for region in instruction.regions
            for i in region.entry.instructions
            if isinstance(i.op, AllocateStack)
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
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def block(self, block: Block) -> Nested:
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instruction in old:
            match instruction.op:
                case AllocateStack(type=type) if instruction.result in self.cells:
                    b.location = instruction.location
                    self.current[instruction.result] = b.emit(Undefined(type))
                case Load() if instruction.operands[0] in self.cells:
                    value = self.current[instruction.operands[0]]
                    self.replaced[instruction.result] = resolve(self.replaced, value)
                case Store() if instruction.operands[1] in self.cells:
                    value = resolve(self.replaced, instruction.operands[0])
                    self.current[instruction.operands[1]] = value
                case Structured():
                    yield from self.structured(instruction)
                    block.instructions.append(instruction)
                case _:
                    block.instructions.append(instruction)

    def structured(self, instruction: Instruction) -> Nested:
        """Give the instruction the cells that it stores to: as operands of a loop, and as results."""
        cells = list(self.stored[instruction])
        before = [self.current[cell] for cell in cells]
        flows = add_flows(instruction, updated_role(instruction), before)
        for number, region in enumerate(instruction.regions):
            self.current.update(zip(cells, before, strict=True))
            for cell, flow in zip(cells, flows, strict=True):
                for body, position in flow.arguments:
                    if body == number:
                        self.current[cell] = region.entry.arguments[position]
            yield self.block(region.entry)
            yielded = [resolve(self.replaced, self.current[cell]) for cell in cells]
            add_yields(instruction, number, flows, yielded)
            ending = region.entry.terminator
            ending.operands = tuple(resolve(self.replaced, value) for value in ending.operands)
        for cell, flow in zip(cells, flows, strict=True):
            assert flow.result is not None
            self.current[cell] = instruction.results[flow.result]
