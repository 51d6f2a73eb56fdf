"""Rules 26 to 29: nests, and what the schedule decides."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import ALIGNMENT, HEADER_BYTES, Block, Instruction, Place
from ..ops import Literal, Nest, Pointwise, Yield
from ..ops.aggregate import listed
from ..ops.nest import Affine, Index
from ..schedule.ops import makes_buffers
from ..types import I64, TensorType, Type, scalar


def nest_violations(instruction: Instruction, op: Nest) -> Iterator[str]:
    """What is wrong with a nest's body and indices, definitions in the body aside."""
    if not op.outputs:
        yield f"a {op.name} writes nothing"
    yield from _index_violations(instruction, op)
    if len(instruction.regions) == 1 and len(instruction.regions[0].blocks) == 1:
        body = instruction.regions[0].entry
        expected: list[Type] = [scalar(I64)] * len(op.extents)
        expected += [
            scalar(operand.type.dtype)
            for operand in instruction.operands
            if isinstance(operand.type, TensorType)
        ]
        given = [argument.type for argument in body.arguments]
        if given != expected:
            yield f"the body takes ({listed(given)}); it should take ({listed(expected)})"
        yield from _body_violations(body, op)


def _body_violations(body: Block, op: Nest) -> Iterator[str]:
    for instruction in body.instructions[:-1]:
        if not isinstance(instruction.op, Pointwise | Literal):
            yield f"{instruction.op.name} cannot stand in the body of a nest"
        elif any(result.type != _as_scalar(result.type) for result in instruction.results):
            yield f"{instruction.op.name} makes more than a scalar in the body of a nest"
    if not body.instructions or not isinstance(body.instructions[-1].op, Yield):
        yield "the body of a nest ends with yield"
        return
    given = [operand.type for operand in body.instructions[-1].operands]
    expected: list[Type] = [scalar(output.type.dtype) for output in op.outputs]
    if given != expected:
        yield f"the body yields ({listed(given)}); the outputs hold ({listed(expected)})"


def _as_scalar(type: Type) -> Type | None:
    return scalar(type.dtype) if isinstance(type, TensorType) else None


def _index_violations(instruction: Instruction, op: Nest) -> Iterator[str]:
    count = len(instruction.operands)
    for position, access in enumerate(op.accesses):
        for index in access.indices:
            yield from _check_index(instruction, index, min(position, count))
    for output in op.outputs:
        for index in output.indices:
            yield from _check_index(instruction, index, count)


def _check_index(instruction: Instruction, index: Index, before: int) -> Iterator[str]:
    """`before` is the number of operands that have been read."""
    if isinstance(index, Affine):
        return  # the type rule looks at these
    if not 0 <= index.operand < before:
        yield f"the index {index} is read from an operand that does not stand before"
    else:
        type = instruction.operands[index.operand].type
        if isinstance(type, TensorType) and not type.dtype.is_integer:
            yield f"the index {index} is read from {type.words}, which holds no integers"


def schedule_violations(instruction: Instruction, outputs: int, *, is_body: bool) -> Iterator[str]:
    """Rule 29; there are so many `outputs` of the function, or of the body that this stands in."""
    placement = instruction.placement
    first = 0 if is_body else HEADER_BYTES
    wanted = len(instruction.results) if makes_buffers(instruction) else 0
    if len(placement.results) != wanted:
        yield f"{len(placement.results)} places for {wanted} results"
    for place in placement.scratch:
        if place.space == "register" or not _is_place(place, scalar(I64), outputs, first):
            yield f"{place} is no place for a scratch buffer"
    for place, result in zip(placement.results, instruction.results, strict=False):
        if not _is_place(place, result.type, outputs, first):
            yield f"{place} is no place for a buffer"


def _is_place(place: Place, type: Type, outputs: int, first: int) -> bool:
    match place:
        case Place("arena", offset):
            return offset >= first and offset % ALIGNMENT == 0
        case Place("output", number):
            return 0 <= number < outputs
        case Place("register", number):
            return number >= 0 and isinstance(type, TensorType) and not type.rank
        case _:
            return False
