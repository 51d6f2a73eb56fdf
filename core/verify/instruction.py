"""Rules 19 to 25: one instruction by itself, and what it is in the module."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from ..errors import NNKitError
from ..ir import Instruction, Module, Op, Region
from ..ops import Literal
from ..ops.aggregate import listed
from ..ops.byte_memory import AddressOf
from ..ops.flows import Structured, structured
from ..text.template import Operand, Optional, Piece, template_of
from ..types import BOOL, PointerType, TensorType, Type, written


def instruction_violations(instruction: Instruction, module: Module) -> Iterator[str]:
    """What is wrong with `instruction`, the definitions of operands and what its bodies do aside."""
    op = instruction.op
    wrong_operands = list(_operand_violations(instruction))
    yield from wrong_operands
    regions = instruction.regions
    if len(regions) != len(op.bodies) or (regions and any(len(r.blocks) != 1 for r in regions)):
        yield f"{op.name} has {_counted(len(op.bodies))}, not {_blocks_of(regions)}"
    if not wrong_operands:
        yield from _type_violations(instruction)
    yield from _own_violations(op, module)


def _own_violations(op: Op, module: Module) -> Iterator[str]:
    if isinstance(op, Literal):
        yield from _literal_violations(op)
    elif name := op.called or op.referred:
        verb = "calls" if op.called else "refers to"
        yield from _named(name, getattr(op, "type", None), module, verb)
    elif isinstance(op, AddressOf) and op.symbol not in module.variables:
        yield f"refers to {written('@', op.symbol)}, which is no variable"


def _counted(bodies: int) -> str:
    return (
        ("no body", "one body of one block")[bodies]
        if bodies < 2
        else f"{bodies} bodies of one block each"
    )


def _blocks_of(regions: tuple[Region, ...]) -> str:
    blocks = ", ".join(str(len(region.blocks)) for region in regions)
    return f"bodies of {blocks} blocks" if regions else "none"


def has_all_elements(op: Literal) -> bool:
    """Whether a literal's data is one element or all of them."""
    return len(op.data) in (op.type.dtype.bytes, op.type.bytes)


def _literal_violations(op: Literal) -> Iterator[str]:
    if not has_all_elements(op):
        yield f"a literal of {op.type} has {len(op.data)} bytes of {op.type.bytes}"
    elif op.type.dtype == BOOL and op.data.strip(b"\0\1"):
        yield f"a literal of {op.type} has bytes other than 0 and 1"


def _named(name: str, type: Type | None, module: Module, verb: str) -> Iterator[str]:
    """Whether @`name` exists and is of `type`: a function, or the pointer to a variable."""
    found: Type | None = None
    if name in module.functions:
        found = module.functions[name].type
    elif name in module.variables and verb != "calls":
        found = PointerType(module.variables[name].type)
    if found is None:
        yield f"{verb} {written('@', name)}, which does not exist"
    elif found != type:
        yield f"{verb} {written('@', name)} as {type}; it is {found}"


def _operand_violations(instruction: Instruction) -> Iterator[str]:
    op, given = instruction.op, len(instruction.operands)
    least, most = operand_count(type(op))
    if given < least or given > most:
        yield f"{op.name} takes {_range(least, most)}, not {given}"
    if not op.takes_any:
        for operand in instruction.operands:
            if not isinstance(operand.type, TensorType):
                yield f"{op.name} takes tensors, not a {operand.type}"


def _type_violations(instruction: Instruction) -> Iterator[str]:
    op = instruction.op
    operands = tuple([operand.type for operand in instruction.operands])
    try:
        inferred = op.infer(*operands)
    except NNKitError as error:
        yield str(error)
        return
    types = (inferred,) if isinstance(inferred, Type) else tuple(inferred)
    given = tuple([result.type for result in instruction.results])
    if types != given:
        yield f"the results are ({listed(given)}); by its rule they are ({listed(types)})"
    for number, region in enumerate(instruction.regions if op.is_structured else ()):
        if number < len(op.bodies):
            yield from _body_violations(structured(instruction), number, region, operands)


def _body_violations(
    op: Structured, number: int, region: Region, operands: tuple[Type, ...]
) -> Iterator[str]:
    """What a body of a structured op takes and yields; how many blocks it has, and how it ends, is said elsewhere."""
    if len(region.blocks) != 1:
        return
    block, word = region.entry, f"body {number + 1} of {op.name}"
    taken = tuple(argument.type for argument in block.arguments)
    expected = op.body_arguments(number, operands)
    if taken != expected:
        yield f"{word} takes ({listed(taken)}); it should take ({listed(expected)})"
    last = block.instructions[-1] if block.instructions else None
    if last is not None and last.op.is_terminator and not last.successors:
        given = tuple(operand.type for operand in last.operands)
        wanted = op.body_yields(number, operands)
        if given != wanted:
            yield f"{word} yields ({listed(given)}); it should yield ({listed(wanted)})"


@cache
def operand_count(op: type[Op]) -> tuple[int, float]:
    """How many operands the text form of `op` has, at least and at most."""
    pending: list[tuple[Piece, bool]] = [(piece, True) for piece in template_of(op)]
    least, most = 0, 0.0
    while pending:
        piece, is_needed = pending.pop()
        match piece:
            case Operand(is_variadic=True):
                most = math.inf
            case Operand():
                least += is_needed
                most += 1
            case Optional(inner):
                pending.extend((part, False) for part in inner)
            case _:
                pass
    return least, most


def _range(least: int, most: float) -> str:
    if most == math.inf:
        return f"at least {least} operand{'s' * (least != 1)}"
    if least != most:
        return f"{least} to {most:.0f} operands"
    return f"{least or 'no'} operand{'s' * (least != 1)}"
