"""Splits long rows that elementwise nests share, so that what passes between them needs little room.

    loops 2048 x 2048 of %x …     →     loops 8192 x 512 of (shapeCast %x to 8192 x 512) …

A long chain of elementwise functions is several nests, with many tensors between one and the next.  As a group over
rows these have room for one row each (`block_groups.fold_row_groups`), unless rows are so long that this is no room to
have on the stack.  Where no nest asks in which row or column it is, they are as well nests over shorter rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ..ir import Block, Builder, Instruction, Value
from ..ops.movement import reshaped
from ..ops.nest import Access, Nest, Output, identity_access, is_nest
from ..types import Shape
from .block_groups import LEAST_FOLDED, LEAST_ROWS, MOST_FOLDED_ROW
from .switches import is_enabled

_LEAST_ROW: Final = 128
"""Elements of a shorter row, at least: with fewer, the heads of loops count."""


def shorten_rows(block: Block) -> None:
    """Split the rows of runs of elementwise nests of a block, where that lets them be folded."""
    if not all(map(is_enabled, ("long-rows", "contract", "blocks"))):
        return
    old, block.instructions = block.instructions, []
    for run in _runs(old):
        shape = _shorter(run) if len(run) > 1 else None
        if shape is None:
            block.instructions += run
        else:
            _write(Builder(block), run, shape)


def _runs(instructions: Sequence[Instruction[Any]]) -> Iterator[list[Instruction[Any]]]:
    """Elementwise nests over the same rows that follow each other; all else by itself."""
    run: list[Instruction[Any]] = []
    for instruction in instructions:
        is_flat = is_nest(instruction) and _is_flat(instruction)
        if run and not (is_flat and instruction.op.extents == run[0].op.extents):
            yield run
            run = []
        run.append(instruction)
        if not is_flat:
            yield run
            run = []
    if run:
        yield run


def _is_flat(instruction: Instruction[Nest]) -> bool:
    """Whether each point of a nest over rows reads and writes its own element of each tensor, wherever it is."""
    nest, inner = instruction.op, instruction.regions[0].entry
    if len(nest.extents) != 2 or any(argument.uses for argument in inner.arguments[:2]):
        return False
    point = identity_access(nest.extents)
    whole = Access(point)
    return all(
        not value.tensor.rank or (access == whole and value.tensor.shape == nest.extents)
        for value, access in zip(instruction.operands, nest.accesses, strict=True)
    ) and all(
        written == Output(written.type.with_shape(nest.extents), point) for written in nest.outputs
    )


def _shorter(run: Sequence[Instruction[Nest]]) -> Shape | None:
    """The rows to go by instead, if those there are take too much room for what only the run reads."""
    rows, columns = run[0].op.extents
    members = set(run)
    saved = sum(
        value.tensor.bytes
        for instruction in run
        for value in instruction.results
        if value.uses and members.issuperset(value.uses)
    )
    if saved < LEAST_FOLDED or saved // rows <= MOST_FOLDED_ROW:
        return None
    for parts in range(2, columns // _LEAST_ROW + 1):
        count = rows * parts
        if columns % parts == 0 and count >= LEAST_ROWS and saved // count <= MOST_FOLDED_ROW:
            return count, columns // parts
    return None


def _write(b: Builder, run: Sequence[Instruction[Nest]], shape: Shape) -> None:
    """The same nests over rows of another length, on the same bodies."""
    casts: dict[Value, Value] = {}

    def cast(value: Value) -> Value:
        if value not in casts:
            casts[value] = reshaped(b, value, shape) if value.tensor.rank else value
        return casts[value]

    for instruction in run:
        b.location = instruction.location
        nest = instruction.op
        outputs = [replace(o, type=o.type.with_shape(shape)) for o in nest.outputs]
        op = replace(nest, extents=shape, outputs=tuple(outputs))
        operands = [cast(value) for value in instruction.operands]
        made = b.emit_many(op, operands, instruction.regions)
        instruction.regions = ()
        for old, new in zip(instruction.results, made, strict=True):
            casts[old] = new
    members = set(run)
    for instruction in run:
        for old in instruction.results:
            if not members.issuperset(old.uses):
                old.replace_with(reshaped(b, casts[old], old.tensor.shape))
    for instruction in reversed(run):
        instruction.erase()
