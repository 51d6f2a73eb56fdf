"""Chains of `insert` into one aggregate, done at once.

    %q = insert %a: f32 to %p: $S at #a
    %e = extract #a from %q: $S                 is %a
    %f = extract #b from %q: $S                 is that of %p
    %r = insert %b: f32 to %q: $S at #b         a struct of %a, %b and the other fields of %p

Each `insert` by itself makes all of its aggregate anew (`elements`): with n fields set one after the other that
would be n² instructions.

1. What is extracted from the last state of a chain is what was inserted, or an element of what it began with.
2. An `insert` that then only another needs is not made; where the chain ends, or is looked at as a whole, the
   aggregate is put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import replace_uses, resolve, uses_of, walk, walk_blocks
from ..ops import Aggregate, Extract, Insert
from ..types import ArrayType, StructType, TupleType, elements_of

Key: TypeAlias = int | str
"""The number of an element, or the name of a field."""


def join_updates(region: Region) -> bool:
    """Do chains of `insert` in the blocks of a function at once; whether there were any."""
    if sum(_is_update(instruction) for instruction in walk(region)) < 2:
        return False
    blocks = list(walk_blocks(region))
    replaced: dict[Value, Value] = {}
    changed = [_look_through(block, replaced) for block in blocks]
    replace_uses(region, replaced)
    uses = uses_of(region)
    joined: dict[Value, Value] = {}
    for block in blocks:
        _join(block, uses, joined)
    replace_uses(region, joined)
    return any(changed) or bool(joined)


@dataclass(eq=False)
class _Chain:
    """What an aggregate `base` has become: `parts` are those set since, `last` is all of it."""

    base: Value
    last: Value
    parts: dict[Key, Value] = field(default_factory=dict[Key, Value])


def _look_through(block: Block, replaced: dict[Value, Value]) -> bool:
    """Step 1; whether anything changed."""
    chains: dict[Value, _Chain] = {}
    kept: list[Instruction] = []
    changed = False
    for instruction in block.instructions:
        op = instruction.op
        if isinstance(op, Extract):
            x = resolve(replaced, instruction.operands[0])
            chain = chains.get(x)
            if chain is not None and chain.last is x:
                changed = True
                part = chain.parts.get(op.keys[0])
                if part is not None and len(op.keys) == 1:
                    replaced[instruction.result] = part
                    continue
                if part is not None:
                    instruction.op = Extract(op.keys[1:])
                instruction.operands = (chain.base if part is None else part,)
        elif _is_update(instruction):
            assert isinstance(op, Insert)
            element, x = (resolve(replaced, operand) for operand in instruction.operands)
            chain = chains.get(x)
            if chain is None or chain.last is not x:
                chain = _Chain(x, x)
            chain.parts[op.keys[0]] = element
            chain.last = instruction.result
            chains[instruction.result] = chain
        kept.append(instruction)
    block.instructions[:] = kept
    return changed


def _join(
    block: Block, uses: Mapping[Value, Sequence[Instruction]], joined: dict[Value, Value]
) -> None:
    """Step 2."""
    own = set(block.instructions)
    left_out: dict[Value, Instruction] = {}
    b = Builder()
    for instruction in block.instructions:
        if _is_update(instruction):
            result = instruction.result
            following = uses.get(result, ())
            if len(following) == 1 and following[0] in own and _continues(following[0], result):
                left_out[result] = instruction
                continue
            if instruction.operands[1] in left_out:
                b.location = instruction.location
                joined[result] = whole = _put_together(b, instruction, left_out)
                whole.name = result.name
                continue
        b.block.instructions.append(instruction)
    block.instructions[:] = b.block.instructions


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
    type = base.type
    assert isinstance(type, TupleType | StructType | ArrayType)
    keys: Sequence[Key] = range(len(elements_of(type) or ()))
    if isinstance(type, StructType):
        keys = [name for name, _ in type.fields]
    elements = [parts[k] if k in parts else b.emit(Extract((k,)), base) for k in keys]
    return b.emit(Aggregate(type), *elements)


def _is_update(instruction: Instruction) -> bool:
    """Whether it sets one element of a tuple, struct or array."""
    op = instruction.op
    if not isinstance(op, Insert) or len(op.keys) != 1:
        return False
    return isinstance(instruction.result.type, TupleType | StructType | ArrayType)


def _continues(instruction: Instruction, x: Value) -> bool:
    """Whether it is an update of `x`, with something else."""
    return _is_update(instruction) and instruction.operands[1] is x
