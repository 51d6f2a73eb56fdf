"""Combines chains of `insert` into one aggregate construction.

    %q = insert %a: f32 to %p: $S at #a
    %e = extract #a from %q: $S                 is %a
    %f = extract #b from %q: $S                 is that of %p
    %r = insert %b: f32 to %q: $S at #b         a struct of %a, %b and the other fields of %p

Each `insert` by itself makes all of its aggregate anew (`expand_elements`): with n fields set one after the other that
would be n² instructions.

1. What is extracted from the last state of a chain is what was inserted, or an element of what it began with.
2. An `insert` that then only another needs is not made; where the chain ends, or is looked at as a whole, the
   aggregate is put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import Extract, Insert
from ..ops.leaves import Key, is_leaf, with_parts


def combine_inserts(region: Region) -> bool:
    """Do chains of `insert` in the blocks of a function at once; whether there were any."""
    if sum(_is_insert(instruction) for instruction in walk(region)) < 2:
        return False
    blocks = list(walk_blocks(region))
    changed = [_look_through(block) for block in blocks]
    joined = [_join(block) for block in blocks]
    return any(changed) or any(joined)


@dataclass(eq=False)
class _InsertChain:
    """What an aggregate `base` has become: `parts` are those set since, `last` is all of it."""

    base: Value
    last: Value
    parts: dict[Key, Value] = field(default_factory=dict[Key, Value])


def _look_through(block: Block) -> bool:
    """Step 1; whether anything changed."""
    chains: dict[Value, _InsertChain] = {}
    kept: list[Instruction] = []
    changed = False
    for instruction in block.instructions:
        op = instruction.op
        if isinstance(op, Extract):
            (x,) = instruction.operands
            chain = chains.get(x)
            if chain is not None and chain.last is x:
                changed = True
                part = chain.parts.get(op.keys[0])
                if part is not None and len(op.keys) == 1:
                    instruction.result.replace_all_uses_with(part)
                    instruction.erase()
                    continue
                if part is not None:
                    instruction.op = Extract(op.keys[1:])
                instruction.set_operands([chain.base if part is None else part])
        elif _is_insert(instruction):
            assert isinstance(op, Insert)
            element, x = instruction.operands
            chain = chains.get(x)
            if chain is None or chain.last is not x:
                chain = _InsertChain(x, x)
            chain.parts[op.keys[0]] = element
            chain.last = instruction.result
            chains[instruction.result] = chain
        kept.append(instruction)
    block.instructions[:] = kept
    return changed


def _join(block: Block) -> bool:
    """Step 2; whether anything changed."""
    own = set(block.instructions)
    left_out: dict[Value, Instruction] = {}
    changed = False
    b = Builder()
    for instruction in block.instructions:
        if _is_insert(instruction):
            result = instruction.result
            following = next(iter(result.uses), None)
            if result.has_one_use and following in own and _continues(following, result):
                left_out[result] = instruction
                continue
            if instruction.operands[1] in left_out:
                b.location = instruction.location
                instruction.replace_with(_put_together(b, instruction, left_out))
                changed = True
                continue
        b.block.instructions.append(instruction)
    for instruction in reversed(left_out.values()):
        instruction.erase()
    block.instructions[:] = b.block.instructions
    return changed


def _put_together(b: Builder, last: Instruction, left_out: Mapping[Value, Instruction]) -> Value:
    """The aggregate at the end of a chain."""
    parts: dict[Key, Value] = {}
    update: Instruction | None = last
    base = last.result
    while update is not None:
        assert isinstance(update.op, Insert)
        element, base = update.operands
        parts.setdefault(update.op.keys[0], element)
        update = left_out.get(base)
    return with_parts(b, base, parts)


def _is_insert(instruction: Instruction) -> bool:
    """Whether it sets one element of a tuple, struct or array."""
    op = instruction.op
    if not isinstance(op, Insert) or len(op.keys) != 1:
        return False
    return not is_leaf(instruction.result.type)


def _continues(instruction: Instruction, x: Value) -> bool:
    """Whether it is an update of `x`, with something else."""
    return _is_insert(instruction) and instruction.operands[1] is x
