"""Dead code elimination: of instructions, of results and carried values, of blocks and their arguments."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses, Analysis, Effects
from ..analysis.effects import KEPT
from ..analysis.liveness import erase_dead
from ..ir import Block, Function, Instruction, Region, Value
from ..ir.surgery import drop_operands, walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.flows import (
    Flow,
    Role,
    flows_of,
    keep_flows,
    never_ends,
    sources_of,
    targets_of,
)
from ..ops.terminators import decider_of
from .base import FunctionPass
from .edges import EdgesInto, edges_into, keep_arguments

_ALWAYS = (Role.DECISION, Role.INDEX)


@dataclass(frozen=True)
class DeadCode(FunctionPass):
    """Removes what neither results nor effects depend on, and blocks that cannot be reached.

    Results of `if` and `for`, values that loops carry only for themselves, and arguments of blocks go one by
    one.  A loop that nothing needs goes even if it might not end; only `while true` stays.

    Requires: nothing.
    Preserves: results, and effects other than reading; an index out of range, or memory used wrongly, goes
        unnoticed if nothing needs what it would read.
    Cost: linear.
    """

    name: ClassVar[str] = "dce"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW

    def run(self, function: Function, analyses: Analyses) -> bool:
        return remove_dead(function, analyses)


def remove_dead(function: Function, analyses: Analyses) -> bool:
    """Remove what `function` does not need; whether there was anything.

    Without bodies uses say all.  With them, what is needed is marked from what must happen backwards, as loops
    carry values around that only they use.  Blocks that cannot be reached are forgotten, nothing else is.
    """
    if function.body is None:
        return False
    entry = function.body.entry
    if len(function.body.blocks) == 1 and not any(i.regions for i in entry.instructions):
        return erase_dead(entry, analyses.effects)
    changed = remove_unreachable(function, analyses)
    needs = _Needs(function.body, analyses.effects)
    needs.mark()
    return needs.sweep() or changed


def remove_unreachable(function: Function, analyses: Analyses) -> bool:
    """Remove the blocks that the entry does not reach, and forget them; whether there were any."""
    body = function.body
    if body is None or len(body.blocks) == 1:
        return False
    gone = set(analyses.flow(function).unreachable)
    if gone:
        drop_operands(walk(Region([*gone])))
        body.blocks[:] = [block for block in body.blocks if block not in gone]
        analyses.forget(function, preserved=Analysis.EFFECTS)
    return bool(gone)


@dataclass(eq=False)
class _Needs:
    """What is known to be needed, and what to look at next."""

    region: Region
    effects: Effects
    values: set[Value] = field(default_factory=set[Value])
    instructions: set[Instruction] = field(default_factory=set[Instruction])
    flows: dict[Value, tuple[Instruction, Flow]] = field(
        default_factory=dict[Value, "tuple[Instruction, Flow]"]
    )
    """The flow that a result of a structured instruction, or an argument of its bodies, belongs to."""
    flowing: set[tuple[Instruction, int]] = field(default_factory=set[tuple[Instruction, int]])
    """The numbers of the flows that are needed."""
    pending: list[Value | Instruction] = field(default_factory=list["Value | Instruction"])
    arguments: dict[Value, tuple[Block, int]] = field(
        default_factory=dict[Value, "tuple[Block, int]"]
    )
    """Where an argument of a block of the function itself stands."""
    stays: dict[Instruction | None, list[Instruction]] = field(
        default_factory=dict["Instruction | None", "list[Instruction]"]
    )
    """What must happen if the instruction whose body it stands in does."""

    def __post_init__(self) -> None:
        self.edges: EdgesInto = edges_into(self.region)
        parents: dict[Instruction, Instruction | None] = {}
        found: set[Instruction] = set()
        owners: dict[Block, Instruction] = {}
        for block in walk_blocks(self.region):
            owner = owners.get(block)
            if owner is None:
                self.arguments.update({x: (block, k) for k, x in enumerate(block.arguments)})
            for instruction in block.instructions:
                if instruction.regions:
                    parents[instruction] = owner
                    for region in instruction.regions:
                        owners.update(dict.fromkeys(region.blocks, instruction))
                for flow in flows_of(instruction):
                    self.flows.update(
                        dict.fromkeys(targets_of(instruction, flow), (instruction, flow))
                    )
                if instruction.op.is_terminator:
                    if owner is None or not owner.op.is_structured:
                        self.stays.setdefault(owner, []).append(instruction)
                elif self._must_happen(instruction):
                    self._keep(instruction, owner, parents, found)

    def _keep(
        self,
        instruction: Instruction,
        owner: Instruction | None,
        parents: dict[Instruction, Instruction | None],
        found: set[Instruction],
    ) -> None:
        """What must happen, and therefore whatever it happens in."""
        while instruction not in found:
            found.add(instruction)
            self.stays.setdefault(owner, []).append(instruction)
            if owner is None:
                return
            instruction, owner = owner, parents[owner]

    def _must_happen(self, instruction: Instruction) -> bool:
        if not instruction.regions:
            return not self.effects.is_removable(instruction)
        # what must happen in its bodies keeps it
        return bool(instruction.op.effect & KEPT) or never_ends(instruction)

    def mark(self) -> None:
        """Find all that is needed."""
        self.pending += self.stays.get(None, [])
        while self.pending:
            current = self.pending.pop()
            if isinstance(current, Value):
                if current not in self.values:
                    self.values.add(current)
                    self._need_value(current)
            elif current not in self.instructions:
                self.instructions.add(current)
                self._need_instruction(current)

    def _need_instruction(self, instruction: Instruction) -> None:
        if instruction.successors:
            # arguments of successors are needed one by one
            decider = decider_of(instruction)
            self.pending += () if decider is None else (decider,)
        elif not instruction.op.is_structured:
            self.pending += instruction.operands
        for flow in flows_of(instruction):
            if flow.role in _ALWAYS:
                self._need_flow(instruction, flow)
        self.pending += self.stays.get(instruction, [])

    def _need_value(self, value: Value) -> None:
        if value.producer is not None:
            self.pending.append(value.producer)
        if value in self.flows:
            self._need_flow(*self.flows[value])
        elif value in self.arguments:
            block, index = self.arguments[value]
            for edge in self.edges.get(block, ()):
                self.pending += edge.arguments[index : index + 1]

    def _need_flow(self, instruction: Instruction, flow: Flow) -> None:
        if (instruction, flow.number) not in self.flowing:
            self.flowing.add((instruction, flow.number))
            self.pending += sources_of(instruction, flow)

    def sweep(self) -> bool:
        """Remove the rest; whether there was any."""
        changed = False
        for block in walk_blocks(self.region):
            instructions = block.instructions
            kept = [i for i in instructions if i in self.instructions or i.op.is_terminator]
            if len(kept) < len(instructions):
                for instruction in instructions:
                    if instruction not in self.instructions and not instruction.op.is_terminator:
                        instruction.drop_all_references()
                block.instructions[:] = kept
                changed = True
            for instruction in kept:
                flows = flows_of(instruction)
                needed = [f for f in flows if (instruction, f.number) in self.flowing]
                changed = keep_flows(instruction, needed) or changed
        for block in self.region.blocks[1:]:
            edges = self.edges[block]
            if not any(edge.is_by_case for edge in edges):
                kept_arguments = [k for k, x in enumerate(block.arguments) if x in self.values]
                changed = keep_arguments(block, edges, kept_arguments) or changed
        return changed
