"""Rules 11 to 16: one instruction by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from ..compute.ops import MatrixProduct
from ..errors import NNKitError
from ..ir import Instruction, Module, Op, Stage
from ..ops import (
    Aggregate,
    Apply,
    Branch,
    Conditional,
    Literal,
    Nest,
    Return,
    Scan,
    ShapeCast,
    Structured,
    Yield,
)
from ..schedule.ops import Gemm, Loops, ScheduledScan
from ..text.template import Operand, Optional, Piece, template_of
from ..types import TensorType, Type

_EVERYWHERE: frozenset[type[Op]] = frozenset((Literal, ShapeCast, Aggregate, Return, Yield))
_COMPUTE: frozenset[type[Op]] = frozenset((Nest, MatrixProduct, Scan))
_SCHEDULE: frozenset[type[Op]] = frozenset((Loops, Gemm, ScheduledScan))
_LATE: Mapping[Stage, frozenset[type[Op]]] = {
    Stage.COMPUTE: _EVERYWHERE | _COMPUTE,
    Stage.SCHEDULE: _EVERYWHERE | _SCHEDULE,
}
"""What stands in functions of the stages that are near the machine; in bodies of nests, rule 18 holds."""


def instruction_violations(instruction: Instruction, module: Module) -> Iterator[str]:
    """What is wrong with `instruction`, its operands' definitions and its bodies aside."""
    op = instruction.op
    wrong_operands = list(_operand_violations(instruction))
    yield from wrong_operands
    if isinstance(op, Literal) and not has_all_elements(op):
        yield f"a literal of {op.type} has {len(op.data)} bytes of {op.type.bytes}"
    if not wrong_operands:
        yield from _type_violations(instruction)
    if isinstance(op, Apply):
        called = module.functions.get(op.callee)
        if called is None:
            yield f"calls @{op.callee}, which does not exist"
        elif called.type != op.type:
            yield f"calls @{op.callee} as {op.type}; it is {called.type}"
    bodies = len(op.bodies)
    if len(instruction.regions) != bodies or any(len(r.blocks) != 1 for r in instruction.regions):
        yield f"{op.name} has {bodies or 'no'} bod{'y' if bodies < 2 else 'ies'} of one block"


def stage_violations(instruction: Instruction, stage: Stage) -> Iterator[str]:
    """Rule 14, for an instruction that stands in a function itself."""
    op = type(instruction.op)
    allowed = _LATE.get(stage)
    if allowed is not None and op not in allowed:
        yield f"{op.name} has no place in stage {stage.value}"
    elif allowed is None and op in _SCHEDULE:
        yield f"{op.name} stands in stage {stage.value}; it belongs to stage schedule"
    elif allowed is None and op in (Nest, MatrixProduct):
        yield f"{op.name} stands in stage {stage.value}; it belongs to stage compute"


def has_all_elements(op: Literal) -> bool:
    """Whether a literal's data is one element or all of them."""
    return len(op.data) in (op.type.dtype.bytes, op.type.bytes)


def _operand_violations(instruction: Instruction) -> Iterator[str]:
    op, given = instruction.op, len(instruction.operands)
    if isinstance(op, Aggregate | Apply | Structured | Branch | Conditional):
        return  # their type rule compares all operands
    count, is_least = operand_count(type(op))
    if given < count or (given > count and not is_least):
        least = "at least " if is_least else ""
        yield f"{op.name} takes {least}{count} operand{'s' * (count != 1)}, not {given}"
    if not op.takes_any:
        for operand in instruction.operands:
            if not isinstance(operand.type, TensorType):
                yield f"{op.name} takes tensors, not a {operand.type}"


def _type_violations(instruction: Instruction) -> Iterator[str]:
    try:
        inferred = instruction.op.infer(*(operand.type for operand in instruction.operands))
    except NNKitError as error:
        yield str(error)
        return
    types = (inferred,) if isinstance(inferred, Type) else tuple(inferred)
    given = tuple(result.type for result in instruction.results)
    if types != given:
        listed = [", ".join(map(str, some)) for some in (given, types)]
        yield f"the results are ({listed[0]}); by its rule they are ({listed[1]})"


@cache
def operand_count(op: type[Op]) -> tuple[int, bool]:
    """How many operands the text form of `op` has, and whether there may be more."""
    pieces: list[Piece] = list(template_of(op))
    count, is_least = 0, False
    while pieces:
        match pieces.pop():
            case Operand(is_variadic=True):
                is_least = True
            case Operand():
                count += 1
            case Optional(inner):
                pieces.extend(inner)
            case _:
                pass
    return count, is_least
