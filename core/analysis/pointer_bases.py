"""Which memory a pointer leads into: the bases of pointers, through steps and structured control flow.

1. `elementPointer`, `offset` and `projectBox` are steps: their result leads into what their first operand leads into.
2. What a structured instruction passes on comes from its operands and yields, of which there may be several.
3. All else is a *base*.  Of memory that is allocated here, or that a parameter leads to, it is *known*: nothing else
   leads there, as long as its pointers go nowhere but into loads, stores, copies, calls by name and what 1 and 2 say.

`core.analysis.alias` asks of a pair of pointers whether they may be the same; this asks of one what there is of it.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from ..ir import Effect, Instruction, Op, Region, Value
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..ops.flows import flows_of, sources_of, targets_of
from ..types import BoxType, PointerType, Type


@dataclass(frozen=True, eq=False)
class PointerBases:
    """What is known of the pointers in the body of a function; it holds until instructions change."""

    region: Region
    _known: dict[Value, tuple[Value, ...]] = field(default_factory=dict[Value, "tuple[Value, ...]"])

    @cached_property
    def flowing(self) -> dict[Value, list[Value]]:
        """For pointers that structured instructions pass on, what they are made of."""
        return {
            target: sources_of(instruction, flow)
            for instruction in walk(self.region)
            for flow in flows_of(instruction)
            if leads_to_memory(flow.type)
            for target in targets_of(instruction, flow)
        }

    def of(self, pointer: Value) -> tuple[Value, ...]:
        """The bases of `pointer`, of which it has several if control flow chooses."""
        if pointer not in self._known:
            found: dict[Value, None] = {}
            seen, pending = {pointer}, [pointer]
            while pending:
                current = pending.pop()
                if is_step(current.op):
                    assert current.producer is not None
                    sources = [current.producer.operands[0]]
                else:
                    sources = self.flowing.get(current, [])
                    if not sources:
                        found[current] = None
                new = [x for x in sources if x not in seen]
                seen.update(new)
                pending += new
            self._known[pointer] = tuple(found)
        return self._known[pointer]

    def is_known(self, base: Value) -> bool:
        """Whether nothing but what comes from this base leads to its memory, unless its pointers go elsewhere."""
        return is_allocation(base.producer) or base in self.region.entry.arguments


def leads_to_memory(type: Type) -> bool:
    """Whether values of this type lead to memory that others may lead to, too."""
    return isinstance(type, PointerType | BoxType)


def uses_memory(region: Region) -> bool:
    """Whether a body acts on memory, or may have others do so: quicker than to ask all values."""
    return any(leads_to_memory(x.type) for x in region.entry.arguments) or any(
        i.op.acts_on_shadows
        or (i.op.called is not None and any(leads_to_memory(x.type) for x in i.operands))
        for i in walk(region)
    )


def is_step(op: Op | None) -> bool:
    """Whether the result leads into the memory of the first operand, and nothing is done with that."""
    return op is not None and op.acts_on_shadows and op.effect is Effect.NONE


def is_allocation(instruction: Instruction | None) -> bool:
    """Whether it makes the memory that its result leads to."""
    if instruction is None:
        return False
    return instruction.op.acts_on_shadows and bool(instruction.op.effect & Effect.ALLOCATE)
