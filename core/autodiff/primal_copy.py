"""Copies a primal's body into a derivative, which is grown on the copy: the primal itself is never changed."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import clone_region, walk
from ..lazy_dataclass import dataclass
from .activity import Activity, Mask, check_flow, straight_line
from .shadows import check_memory

Origin: TypeAlias = "Value | str | tuple[Origin, ...]"
"""What a value is a copy of: a value, or what was saved of one or beside it, which the words tell apart."""


@dataclass
class PrimalCopy:
    """The body of `primal` in a new block, and which of its values are `active`: depend on what is wanted.

    `results` are the copies of the results.
    """

    primal: Function
    builder: Builder = field(default_factory=lambda: Builder(Block(name="entry")))
    origins: dict[Value, Origin] = field(default_factory=dict[Value, Origin])
    active: set[Value] = field(default_factory=set[Value])
    results: tuple[Value, ...] = ()
    silent: dict[Instruction, str] = field(default_factory=dict[Instruction, str])
    """What tells instructions without results apart, which use memory, in all copies."""
    uses_memory: bool = False

    @property
    def arguments(self) -> list[Value]:
        """The parameters."""
        return self.builder.block.arguments


def copy_primal(primal: Function, wanted: Mask, activity: Activity) -> PrimalCopy:
    """A copy whose active values are those that depend on the parameters in `wanted`.

    Raises: UnsupportedError for several blocks, and for control flow or memory that the derivative would have
        to pass through.
    """
    copy = PrimalCopy(primal)
    masks = activity.of_values(primal)

    def is_active(value: Value) -> bool:
        return bool(masks.get(value, 0) & wanted)

    straight_line(primal)
    assert primal.body is not None
    copy.uses_memory = activity.uses_memory(primal)
    if copy.uses_memory:
        check_memory(primal.body, is_active, in_reverse=True)
    for instruction in walk(primal.body):
        check_flow(instruction, is_active)
    values: dict[Value, Value] = {}
    region = clone_region(primal.body, values)
    copy.builder.block = region.entry
    if copy.uses_memory:
        silent = (i for i in walk(region) if not i.results)
        copy.silent = {instruction: f"silent {number}" for number, instruction in enumerate(silent)}
    returned = copy.builder.block.instructions.pop()
    copy.results = tuple(returned.operands)
    returned.erase()
    copy.origins = {values[value]: value for value in masks}
    copy.active = {values[value] for value, mask in masks.items() if mask & wanted}
    return copy
