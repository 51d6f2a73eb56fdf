"""Cutting and joining IR: walk it, copy it, and redirect uses.

Nothing here recurses: nested regions wait on a list, so neither the length of a program nor the depth of
its nesting becomes depth of Python's stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..location import HasLocation
from .graph import Block, Instruction, Op, Region, Value
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


def uses_of(region: Region) -> dict[Value, list[Instruction]]:
    """Which instructions use a value, each as often as it does; values without uses are absent."""
    uses: dict[Value, list[Instruction]] = {}
    for instruction in walk(region):
        for operand in instruction.operands:
            uses.setdefault(operand, []).append(instruction)
    return uses


def replace_uses(region: Region, replacements: Mapping[Value, Value]) -> None:
    """Make every use of a key of `replacements` a use of its value.

    A value may itself be a key: chains are followed to their end.
    """
    if not replacements:
        return
    for instruction in walk(region):
        if any(operand in replacements for operand in instruction.operands):
            instruction.operands = tuple(resolve(replacements, x) for x in instruction.operands)


def resolve(replacements: Mapping[Value, Value], value: Value) -> Value:
    """The end of the chain of replacements that starts at `value`."""
    while value in replacements:
        value = replacements[value]
    return value


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
    """Copy everything first, then redirect operands and successors: blocks may come in any order."""
    copies: list[Instruction] = []
    while work:
        target, originals = work.pop()
        for original in originals:
            regions = tuple(Region() for _ in original.regions)
            copy = make_instruction(
                original.op,
                original.operands,
                original.results,
                regions=regions,
                location=original.location,
                successors=original.successors,
                placement=original.placement,
            )
            values.update(zip(original.results, copy.results, strict=True))
            target.instructions.append(copy)
            copies.append(copy)
            for old, new in zip(original.regions, regions, strict=True):
                work.extend(_clone_blocks(old, new, values, blocks))
    for copy in copies:
        copy.operands = tuple(values.get(operand, operand) for operand in copy.operands)
        if copy.successors:
            copy.successors = tuple(blocks.get(block, block) for block in copy.successors)
