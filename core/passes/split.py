"""Aggregates that are carried, given, yielded, or passed to blocks: one value per leaf instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import replace_uses, walk_blocks
from ..ops import (
    Aggregate,
    Extract,
    arguments_of,
)
from ..ops.flows import flows_of, structured
from ..ops.terminators import case_of, pass_arguments
from ..types import StructType, TupleType, Type, elements_of


def split_aggregates(region: Region) -> bool:
    """Split what structured ops and blocks pass on, in the body of a function; whether there was anything."""
    replaced: dict[Value, Value] = {}
    changed = _split_blocks(region, replaced)
    for block in list(walk_blocks(region)):
        if not any(_is_split(instruction) for instruction in block.instructions):
            continue
        changed = True
        old, block.instructions = block.instructions, []
        for instruction in old:
            if _is_split(instruction):
                _split(Builder(block, instruction.location), instruction, replaced)
            else:
                block.instructions.append(instruction)
    replace_uses(region, replaced)
    return changed


def split_arguments(block: Block, replaced: dict[Value, Value]) -> None:
    """Give a block a leaf at a time of what it takes; in `replaced` is what stands for the old arguments."""
    old, block.arguments = block.arguments, []
    start = Block(block.arguments)
    b = Builder(start)
    for argument in old:
        if _parts(argument.type) is None:
            block.arguments.append(argument)
            continue
        leaves = [
            b.argument(leaf, _leaf_name(argument.name, path))
            for path, leaf in leaves_of(argument.type)
        ]
        replaced[argument] = put_together(b, argument.type, iter(leaves))
    block.instructions[:0] = start.instructions


def _is_split(instruction: Instruction) -> bool:
    values = (*instruction.results, *instruction.operands)
    return instruction.op.is_structured and any(_parts(x.type) is not None for x in values)


def _split(b: Builder, old: Instruction, replaced: dict[Value, Value]) -> None:
    """Append a structured instruction with leaves for all it passes on, and what stands for its results."""
    flows = flows_of(old)
    roles = [(flow.role, leaf) for flow in flows for _, leaf in leaves_of(flow.type)]
    operands = [leaf for x in old.operands for leaf in taken_apart(b, x)]
    for region in old.regions:
        split_arguments(region.entry, replaced)
        terminator = region.entry.instructions.pop()
        inside = Builder(region.entry, terminator.location)
        yields = [leaf for x in terminator.operands for leaf in taken_apart(inside, x)]
        inside.emit_many(terminator.op, yields)
    results = iter(b.emit_many(structured(old).with_roles(roles), operands, old.regions))
    for result in old.results:
        if _parts(result.type) is None:
            replaced[result] = leaf = next(results)
            leaf.name = result.name
            continue
        leaves: list[Value] = []
        for path, _ in leaves_of(result.type):
            leaves.append(next(results))
            leaves[-1].name = _leaf_name(result.name, path)
        replaced[result] = put_together(b, result.type, iter(leaves))


def _split_blocks(region: Region, replaced: dict[Value, Value]) -> bool:
    """Split the arguments of all blocks but the entry and those that take what an enum carries."""
    whole = {region.entry}
    for block in region.blocks:
        if block.terminator.successors and case_of(block.terminator, 0) is not None:
            whole.update(block.terminator.successors)
    split = {
        block
        for block in region.blocks
        if block not in whole and any(_parts(x.type) is not None for x in block.arguments)
    }
    for block in split:
        split_arguments(block, replaced)
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
                for leaf in (taken_apart(b, x) if successor in split else (x,))
            ]
            for number, successor in enumerate(terminator.successors)
        ]
        pass_arguments(terminator, passed)
        block.instructions.append(terminator)
    return bool(split)


def leaves_of(type: Type) -> Iterator[tuple[tuple[int | str, ...], Type]]:
    """The keys that lead to each leaf, and its type, left to right."""
    pending: list[tuple[tuple[int | str, ...], Type]] = [((), type)]
    while pending:
        path, current = pending.pop()
        elements = _parts(current)
        if elements is None:
            yield path, current
            continue
        keys = _keys(current, len(elements))
        pending.extend(
            ((*path, key), t) for key, t in reversed(list(zip(keys, elements, strict=True)))
        )


def _parts(type: Type) -> tuple[Type, ...] | None:
    """The elements of what is taken apart; None for a leaf."""
    return elements_of(type) if isinstance(type, TupleType | StructType) else None


def _keys(type: Type, count: int) -> Sequence[int | str]:
    return [name for name, _ in type.fields] if isinstance(type, StructType) else range(count)


def _leaf_name(name: str | None, path: Sequence[int | str]) -> str | None:
    return None if name is None else "_".join(map(str, (name, *path)))


def taken_apart(b: Builder, x: Value) -> list[Value]:
    return [b.emit(Extract(path), x) if path else x for path, _ in leaves_of(x.type)]


def put_together(b: Builder, type: Type, leaves: Iterator[Value]) -> Value:
    """A value of `type` made of the next leaves."""
    pending: list[tuple[Type, bool]] = [(type, False)]
    made: list[Value] = []
    while pending:
        current, is_complete = pending.pop()
        elements = _parts(current)
        if elements is None:
            made.append(next(leaves))
        elif is_complete:
            assert isinstance(current, TupleType | StructType)
            first = len(made) - len(elements)
            made[first:] = [b.emit(Aggregate(current), *made[first:])]
        else:
            pending.append((current, True))
            pending.extend((element, False) for element in reversed(elements))
    return made[0]
