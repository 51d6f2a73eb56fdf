"""Takes reads at indices that are read, and that are the same for a row, out of nests over rows.

Such a read is one per row, and may fail where the index is outside: as a nest of its own it is done before, and what
is left has affine indices only (`kernels.row_nests`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..ir import Block, Builder, Instruction
from ..ops.nest import (
    Access,
    Affine,
    Loaded,
    Nest,
    Output,
    axes_in,
    build_nest,
    identity_access,
    is_nest,
)
from ..types import Shape, TensorType


def separate_row_gathers(block: Block, rows: Collection[Shape]) -> None:
    """Split nests of a block that go through such rows."""
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        if (
            is_nest(instruction)
            and instruction.op.extents[:-1] in rows
            and _has_row_gathers(instruction.op)
        ):
            b.location = instruction.location
            _separate(b, instruction, instruction.op)
        block.instructions.append(instruction)


def _has_row_gathers(op: Nest) -> bool:
    """Whether it reads at indices that are read, and all of these, and they alone, are the same for a row."""
    own = len(op.extents) - 1
    if 0 in op.extents:  # nothing is read, and no check fails
        return False
    found = False
    for access in op.accesses:
        if _is_gather(access):
            found = True
            if own in _axes(op, access):
                return False
    writes = [index for written in op.outputs for index in written.indices]
    return found and all(isinstance(index, Affine) for index in writes)


def _separate(b: Builder, instruction: Instruction, op: Nest) -> None:
    """Make what its gathers read operands of the nest; they are nests of their own."""
    rows = op.extents[:-1]
    operands, accesses = list(instruction.operands), list(op.accesses)
    for number, access in enumerate(op.accesses):
        if not _is_gather(access):
            continue
        needed = _read_first(op.accesses, number)
        places = {old: new for new, old in enumerate(needed)}
        reads = [(instruction.operands[n], _renumbered(op.accesses[n], places)) for n in needed]
        type = TensorType(rows, operands[number].tensor.dtype)
        output = Output(type, identity_access(rows))
        (operands[number],) = build_nest(b, rows, reads, [output], lambda _, __, read: read[-1:])
        accesses[number] = Access(identity_access(rows))
    instruction.op = replace(op, accesses=tuple(accesses))
    instruction.set_operands(operands)


def _is_gather(access: Access) -> bool:
    return any(isinstance(index, Loaded) for index in access.indices)


def _read_first(accesses: Sequence[Access], number: int) -> list[int]:
    """An operand and those that it is read at, in order."""
    found, pending = {number}, [number]
    while pending:
        for index in accesses[pending.pop()].indices:
            if isinstance(index, Loaded) and index.operand not in found:
                found.add(index.operand)
                pending.append(index.operand)
    return sorted(found)


def _axes(op: Nest, access: Access) -> frozenset[int]:
    """The axes that decide where is read."""
    found = axes_in(access.indices)
    for index in access.indices:
        if isinstance(index, Loaded):
            found |= _axes(op, op.accesses[index.operand])
    return found


def _renumbered(access: Access, places: dict[int, int]) -> Access:
    indices = tuple(
        Loaded(places[index.operand]) if isinstance(index, Loaded) else index
        for index in access.indices
    )
    return Access(indices, access.bounds)
