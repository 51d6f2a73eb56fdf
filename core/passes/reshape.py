"""Structured ops, and blocks, with fewer results, carried values or arguments: changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir import Block, Instruction, Region, Value
from ..ops import Branch, Conditional, For, If, Literal, Structured, While, arguments_of
from ..ops.control import carried_of


def carried_count(loop: Instruction) -> int:
    """How many values a `while` or `for` carries."""
    op = loop.op
    assert isinstance(op, While | For)
    return len(loop.operands) - op.inputs - (2 if isinstance(op, For) else 0)


def yields_of(region: Region) -> tuple[Value, ...]:
    """What a body yields."""
    return region.entry.terminator.operands


def never_ends(instruction: Instruction) -> bool:
    """Whether it is a `while true`."""
    if not isinstance(instruction.op, While):
        return False
    op = yields_of(instruction.regions[0])[0].op
    return isinstance(op, Literal) and op.splat_value() is True


def keep_results(instruction: Instruction, kept: Sequence[int]) -> bool:
    """Leave a structured op only these of its results, in order; whether it had others.

    Others are not yielded, and not carried, any more: nothing may use them, in its bodies either.
    """
    if len(kept) == len(instruction.results):
        return False
    op = instruction.op
    match op:
        case If(results=types):
            instruction.op = replace(op, results=tuple(types[k] for k in kept))
            _keep_yields(instruction.regions, kept)
        case While():
            _keep_carried(instruction, kept)
            _keep_yields(instruction.regions[1:], kept)
        case For(stacked=types):
            count = carried_count(instruction)
            instruction.op = replace(
                op, stacked=tuple(types[k - count] for k in kept if k >= count)
            )
            _keep_carried(instruction, [k for k in kept if k < count])
            _keep_yields(instruction.regions, kept)
        case _:
            raise TypeError(f"{op.name} is not a structured op")
    instruction.results = tuple(instruction.results[k] for k in kept)
    for index, result in enumerate(instruction.results):
        result.index = index
    return True


def _keep_carried(loop: Instruction, kept: Sequence[int]) -> None:
    carried = carried_of(loop)
    operands = loop.operands
    values = (operands[carried.start + k] for k in kept)
    loop.operands = (*operands[: carried.start], *values, *operands[carried.stop :])
    index = 1 if isinstance(loop.op, For) else 0
    end = index + carried.stop - carried.start
    for region in loop.regions:
        arguments = region.entry.arguments
        arguments[index:end] = [arguments[index + k] for k in kept]


def _keep_yields(regions: Sequence[Region], kept: Sequence[int]) -> None:
    for region in regions:
        terminator = region.entry.terminator
        terminator.operands = tuple(terminator.operands[k] for k in kept)


def keep_inputs(instruction: Instruction, kept: Sequence[int]) -> bool:
    """Give the bodies only these of the inputs; whether there were others.  Nothing may use them."""
    op = instruction.op
    assert isinstance(op, If | While | For)
    count = op.inputs
    if len(kept) == count:
        return False
    first = len(instruction.operands) - count
    inputs = (instruction.operands[first + k] for k in kept)
    instruction.operands = (*instruction.operands[:first], *inputs)
    for region in instruction.regions:
        arguments = region.entry.arguments
        start = len(arguments) - count
        arguments[start:] = [arguments[start + k] for k in kept]
    instruction.op = replace(op, inputs=len(kept))
    return True


def inputs_of(instruction: Instruction, region: Region) -> list[Value]:
    """The arguments of a body that it is given."""
    op = instruction.op
    assert isinstance(op, Structured)
    arguments = region.entry.arguments
    return arguments[len(arguments) - op.inputs :]


def keep_arguments(
    block: Block, before: Sequence[tuple[Instruction, int]], kept: Sequence[int]
) -> bool:
    """Leave a block only these of its arguments; `before` are the terminators that lead to it.

    Each comes with the number of the successor.  Whether there were other arguments; those that an enum's
    case brings must stay.
    """
    if len(kept) == len(block.arguments):
        return False
    for terminator, number in before:
        op = terminator.op
        values = [arguments_of(terminator, number)[k] for k in kept]
        match op:
            case Branch():
                terminator.operands = tuple(values)
            case Conditional(taken=taken):
                condition, *rest = terminator.operands
                first, second = (values, rest[taken:]) if number == 0 else (rest[:taken], values)
                terminator.op = Conditional(len(first))
                terminator.operands = (condition, *first, *second)
            case _:
                raise TypeError(f"{op.name} does not set the arguments of a block")
    block.arguments[:] = [block.arguments[k] for k in kept]
    return True
