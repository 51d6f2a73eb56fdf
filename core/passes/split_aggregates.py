"""Splits aggregates that structured ops and branches pass into one value per leaf."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import walk_blocks
from ..ops import arguments_of
from ..ops.flows import flows_of, structured
from ..ops.leaves import is_leaf, leaves_of, put_together, take_apart
from ..ops.terminators import case_of, pass_arguments


def split_aggregates(region: Region) -> bool:
    """Split what structured ops and blocks pass on, in the body of a function; whether there was anything."""
    changed = _split_blocks(region)
    for block in list(walk_blocks(region)):
        if not any(_is_split(instruction) for instruction in block.instructions):
            continue
        changed = True
        old, block.instructions = block.instructions, []
        for instruction in old:
            if _is_split(instruction):
                _split(Builder(block, instruction.location), instruction)
            else:
                block.instructions.append(instruction)
    return changed


def split_arguments(block: Block) -> None:
    """Give a block a leaf at a time of what it takes, and put the old arguments together from that."""
    old, block.arguments = block.arguments, []
    start = Block(block.arguments)
    b = Builder(start)
    for argument in old:
        if is_leaf(argument.type, large_arrays=False):
            block.arguments.append(argument)
            continue
        leaves = [
            b.argument(leaf.type, _leaf_name(argument.name, leaf.path))
            for leaf in leaves_of(argument.type, large_arrays=False)
        ]
        whole = put_together(b, argument.type, iter(leaves), large_arrays=False)
        argument.replace_all_uses_with(whole)
    block.instructions[:0] = start.instructions


def _is_split(instruction: Instruction) -> bool:
    values = (*instruction.results, *instruction.operands)
    return instruction.op.is_structured and any(
        not is_leaf(x.type, large_arrays=False) for x in values
    )


def _split(b: Builder, old: Instruction) -> None:
    """Append a structured instruction with leaves for all it passes on, and what stands for its results."""
    flows = flows_of(old)
    roles = [
        (flow.role, leaf.type)
        for flow in flows
        for leaf in leaves_of(flow.type, large_arrays=False)
    ]
    operands = [leaf for x in old.operands for leaf in take_apart(b, x, large_arrays=False)]
    for region in old.regions:
        split_arguments(region.entry)
        terminator = region.entry.instructions.pop()
        inside = Builder(region.entry, terminator.location)
        yields = [
            leaf for x in terminator.operands for leaf in take_apart(inside, x, large_arrays=False)
        ]
        inside.emit_many(terminator.op, yields)
        terminator.erase()
    results = iter(b.emit_many(structured(old).with_roles(roles), operands, old.regions))
    for result in old.results:
        if is_leaf(result.type, large_arrays=False):
            leaf = next(results)
            leaf.name = result.name
            result.replace_all_uses_with(leaf)
            continue
        leaves: list[Value] = []
        for part in leaves_of(result.type, large_arrays=False):
            leaves.append(next(results))
            leaves[-1].name = _leaf_name(result.name, part.path)
        result.replace_all_uses_with(put_together(b, result.type, iter(leaves), large_arrays=False))
    old.set_operands(())


def _split_blocks(region: Region) -> bool:
    """Split the arguments of all blocks but the entry and those that take what an enum carries."""
    whole = {region.entry}
    for block in region.blocks:
        if block.terminator.successors and case_of(block.terminator, 0) is not None:
            whole.update(block.terminator.successors)
    split = {
        block
        for block in region.blocks
        if block not in whole
        and any(not is_leaf(x.type, large_arrays=False) for x in block.arguments)
    }
    for block in split:
        split_arguments(block)
    for block in region.blocks if split else ():
        terminator = block.terminator
        if split.isdisjoint(terminator.successors):
            continue
        block.instructions.pop()
        b = Builder(block, terminator.location)
        passed = [
            [
                leaf
                for x in arguments_of(terminator, number)
                for leaf in (take_apart(b, x, large_arrays=False) if successor in split else (x,))
            ]
            for number, successor in enumerate(terminator.successors)
        ]
        pass_arguments(terminator, passed)
        block.instructions.append(terminator)
    return bool(split)


def _leaf_name(name: str | None, path: Sequence[int | str]) -> str | None:
    return None if name is None else "_".join(map(str, (name, *path)))
