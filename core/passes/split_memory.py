"""Splits loads and stores of aggregates into those of their leaves."""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses
from ..ir import Builder, Effect, Function, Instruction, MemoryUse
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.leaves import is_leaf, leaves_of, put_together, take_apart
from ..ops.memory import ElementPointer, Load, Store
from .base import FunctionPass


@dataclass(frozen=True)
class SplitMemory(FunctionPass):
    """Loads and stores the leaves of tuples, structs and arrays, each by itself.

    An array of more than 16,384 leaves stays one value.  `differentiate` has this done to what it differentiates, as
    derivatives are of tensors.

    Requires: nothing.
    Preserves: results and effects.
    Cost: linear, times the number of leaves.
    """

    name: ClassVar[str] = "split-memory"

    def run(self, function: Function, analyses: Analyses) -> bool:
        changed = False
        for block in walk_blocks(function.body) if function.body is not None else ():
            if not any(_whole(instruction) for instruction in block.instructions):
                continue
            changed = True
            old, block.instructions = block.instructions, []
            for instruction in old:
                use = _whole(instruction)
                if use is None:
                    block.instructions.append(instruction)
                else:
                    _split(Builder(block, instruction.location), instruction, use)
        return changed


def _whole(instruction: Instruction) -> MemoryUse | None:
    """The use of memory by an instruction that loads or stores an aggregate with leaves."""
    for use in instruction.op.memory_uses(instruction):
        if use.value is not None and not is_leaf(use.value.type, large_arrays=False):
            return use if next(leaves_of(use.value.type), None) is not None else None
    return None


def _split(b: Builder, instruction: Instruction, use: MemoryUse) -> None:
    assert use.value is not None
    whole = use.value
    pointers = [
        b.emit(ElementPointer(leaf.path), use.pointer)
        for leaf in leaves_of(whole.type, large_arrays=False)
    ]
    if use.effect & Effect.WRITE:
        leaves = take_apart(b, whole, large_arrays=False)
        for leaf, pointer in zip(leaves, pointers, strict=True):
            b.emit_many(Store(), [leaf, pointer])
        instruction.erase()
        return
    loaded = (b.emit(Load(), pointer) for pointer in pointers)
    instruction.replace_with(put_together(b, whole.type, loaded, large_arrays=False))
