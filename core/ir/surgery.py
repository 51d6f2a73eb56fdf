"""Cutting and joining IR: walk it, copy it, and drop it.

Nothing here recurses: nested regions wait on a list, so neither the length of a program nor the depth of
its nesting becomes depth of Python's stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..location import HasLocation
from .instruction import Block, Instruction, Op, Region, Value
from .module import Function, Module
from .placement import NOT_PLACED, Placement


def walk_blocks(region: Region) -> Iterator[Block]:
    """Every block of the region and of the regions inside it; a block comes before those inside it."""
    pending = [region]
    while pending:
        for block in pending.pop().blocks:
            yield block
            for instruction in block.instructions:
                pending.extend(instruction.regions)


def walk(region: Region) -> Iterator[Instruction]:
    """Every instruction of the region and of the regions inside it."""
    for block in walk_blocks(region):
        yield from block.instructions


def with_bodies(instructions: Iterable[Instruction]) -> Iterator[Instruction]:
    """These instructions and those in the regions inside them."""
    for instruction in instructions:
        yield instruction
        for region in instruction.regions:
            yield from walk(region)


def operands_inside(instructions: Iterable[Instruction]) -> Iterator[Value]:
    """What instructions use, in their bodies too."""
    return (operand for one in with_bodies(instructions) for operand in one.operands)


def replace_operands(instructions: Iterable[Instruction], values: Mapping[Value, Value]) -> None:
    """Use the value of a key of `values` instead of the key, in these instructions only."""
    for instruction in instructions if values else ():
        if any(operand in values for operand in instruction.operands):
            instruction.set_operands([values.get(x, x) for x in instruction.operands])


def drop_operands(instructions: Iterable[Instruction]) -> None:
    """Use nothing any more in instructions that are left out, or made anew around the same bodies."""
    for instruction in instructions:
        instruction.set_operands(())


def make_instruction(
    op: Op,
    operands: Iterable[Value],
    like: Iterable[Value],
    *,
    regions: tuple[Region, ...] = (),
    location: HasLocation | None = None,
    successors: tuple[Block, ...] = (),
    placement: Placement = NOT_PLACED,
) -> Instruction:
    """An instruction in no block yet, with new results of the types and names of `like`."""
    instruction = Instruction(op, tuple(operands), (), regions, location, successors, placement)
    instruction.results = tuple(
        Value(value.type, value.name, instruction, index) for index, value in enumerate(like)
    )
    return instruction


def clone_instructions(
    block: Block, instructions: Iterable[Instruction], values: dict[Value, Value]
) -> None:
    """Append copies of `instructions` to `block`.

    `values` maps old values to new ones: operands found there are replaced, others are kept (they are
    captured from outside), and the results of the copies are added.
    """
    _clone([(block, instructions)], values, {})


def clone_region(region: Region, values: dict[Value, Value]) -> Region:
    """A copy of `region`; `values` is read and extended as by `clone_instructions`."""
    copy, blocks = Region(), dict[Block, Block]()
    _clone(_clone_blocks(region, copy, values, blocks), values, blocks)
    return copy


def clone_function(function: Function, name: str) -> Function:
    """A copy of `function`, called `name`, that shares nothing that can change with it."""
    body = clone_region(function.body, {}) if function.body else None
    return Function(
        name,
        function.type,
        body,
        function.declaration,
        function.attributes,
        function.location,
        function.attribute_locations,
        function.rules,
        function.made_from,
    )


def clone_module(module: Module) -> Module:
    """A copy of `module` that shares nothing that can change with it."""
    functions = {name: clone_function(f, name) for name, f in module.functions.items()}
    return Module(
        module.name,
        module.stage,
        dict(module.structs),
        functions,
        dict(module.enums),
        dict(module.aliases),
        dict(module.variables),
        dict(module.type_locations),
    )


def _clone_blocks(
    source: Region, target: Region, values: dict[Value, Value], blocks: dict[Block, Block]
) -> list[tuple[Block, Iterable[Instruction]]]:
    """Give `target` the blocks of `source`, still empty; which instructions each is to receive."""
    work: list[tuple[Block, Iterable[Instruction]]] = []
    for block in source.blocks:
        arguments = [Value(argument.type, argument.name) for argument in block.arguments]
        values.update(zip(block.arguments, arguments, strict=True))
        blocks[block] = Block(arguments, name=block.name, location=block.location)
        target.blocks.append(blocks[block])
        work.append((blocks[block], block.instructions))
    return work


def _clone(
    work: list[tuple[Block, Iterable[Instruction]]],
    values: dict[Value, Value],
    blocks: dict[Block, Block],
) -> None:
    """Copy everything first, then give operands and successors: blocks may come in any order."""
    copies: list[tuple[Instruction, Instruction]] = []
    while work:
        target, originals = work.pop()
        for original in originals:
            regions = tuple(Region() for _ in original.regions)
            copy = make_instruction(
                original.op,
                (),
                original.results,
                regions=regions,
                location=original.location,
                successors=original.successors,
                placement=original.placement,
            )
            values.update(zip(original.results, copy.results, strict=True))
            target.instructions.append(copy)
            copies.append((copy, original))
            for old, new in zip(original.regions, regions, strict=True):
                work.extend(_clone_blocks(old, new, values, blocks))
    for copy, original in copies:
        copy.set_operands([values.get(operand, operand) for operand in original.operands])
        if copy.successors:
            copy.successors = tuple(blocks.get(block, block) for block in copy.successors)
