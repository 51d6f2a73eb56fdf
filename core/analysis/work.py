"""What one instruction costs: operations on elements, and bytes that are read and written.

1. The *flops* of an instruction are what its op says, or those of its loop nests: points of the box, times what the
   body does at one and what combining does.  Elementwise functions count by their cost, so that division and `exp`
   are dearer than a sum.  Integers count like floats; moving elements is no flop.
2. Its *bytes* are those of the tensors it reads and writes.  Views, literals, and putting tensors into tuples,
   move none; what takes a part of a tensor reads that part only.
"""

from __future__ import annotations

from typing import TypeAlias

from ..errors import NNKitError
from ..ir import Builder, Instruction, Op, Value
from ..types import Type

Nested: TypeAlias = "tuple[Op, tuple[Type, ...]]"
"""What loop nests follow from: an op, and the types of its operands."""


def flops_of(instruction: Instruction, nests: dict[Nested, int]) -> int:
    """Operations on elements, bodies aside; `nests` remembers what loop nests have been asked for."""
    known = instruction.op.flops(instruction)
    if known is not None:
        return known
    key = instruction.op, tuple(x.type for x in instruction.operands)
    if key not in nests:
        nests[key] = _flops_of_nests(*key)
    return nests[key]


def _flops_of_nests(op: Op, types: tuple[Type, ...]) -> int:
    """What the loop nests do that `op` means; 0 for what has none."""
    b = Builder()
    try:
        op.nest(b, *map(Value, types))
    except NNKitError:
        return 0
    return sum(i.op.flops(i) or 0 for i in b.block.instructions)
