"""Evaluates pure instructions and regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ..errors import InternalError
from ..ir import Instruction, Op, Region, Value, evaluates_to
from ..ops.aggregate import Aggregate, Extract, Insert
from ..ops.enums import EnumCase, IsCase, Payload
from ..ops.forms import Elementwise
from ..ops.memory import ProjectBox
from ..ops.nest import Nest
from ..ops.ordered_reduction import InOrder, ReduceInOrder, ReduceWindowInOrder, ScanInOrder
from ..ops.reference import Null, Reference, Undefined
from ..types import Array
from .runtime_values import EnumValue, FunctionValue, rounded, undefined

EvaluationRule: TypeAlias = Callable[[Any, Instruction, Sequence[Any]], tuple[Any, ...]]
"""(op, instruction, operands) to the results."""


def evaluate_instruction(instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one instruction that neither calls nor branches, nor touches memory."""
    op = instruction.op
    rule = rule_of(op.__class__)
    results = rule(op, instruction, operands) if rule else evaluates_to(op.evaluate(*operands))
    return tuple(
        [
            rounded(value.type, data)
            for value, data in zip(instruction.results, results, strict=True)
        ]
    )


def evaluate_region(region: Region, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The operands of the terminator of a region of one block of such instructions."""
    block = region.entry
    values: dict[Value, Any] = dict(zip(block.arguments, arguments, strict=True))
    for instruction in block.instructions:
        operands = [values[operand] for operand in instruction.operands]
        if instruction.op.is_terminator:
            return tuple(operands)
        values.update(
            zip(instruction.results, evaluate_instruction(instruction, operands), strict=True)
        )
    raise InternalError("a region without a terminator was evaluated")


@cache
def rule_of(op: type[Op]) -> EvaluationRule | None:
    """How an op is evaluated that does not know it itself."""
    return next((RULES[base] for base in op.__mro__ if base in RULES), None)


def _nest(op: Nest, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    body = instruction.regions[0]
    return op.evaluate_body(lambda arguments: evaluate_region(body, arguments), *operands)


def _extract(op: Extract, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    [data] = operands
    for position in op.positions(instruction.operands[0].type):
        data = data[position]
    return (data,)


def _insert(op: Insert, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    element, whole = operands
    path = op.positions(instruction.operands[1].type)
    passed: list[Any] = []
    for position in path:
        passed.append(whole)
        whole = whole[position]
    for outer, position in zip(reversed(passed), reversed(path), strict=True):
        element = _replaced(outer, position, element)
    return (element,)


def _replaced(whole: Any, position: int, element: Any) -> Any:
    if isinstance(whole, tuple):
        return (*whole[:position], element, *whole[position + 1 :])
    tensor: Array = np.array(whole)
    tensor[position] = element
    return tensor


def _payload(op: Payload, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    [value] = operands
    if value.case == op.case:
        return (value.carried[op.index],)
    return (undefined(instruction.result.type),)


def _in_order(op: InOrder, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    dtype = instruction.result.tensor.dtype

    def call(by: Elementwise, total: Array, elements: Array) -> Array:
        return dtype.round(np.asarray(by.evaluate(total, elements)))

    return evaluates_to(op.evaluate_by(call, *operands))


def _reference(op: Reference, instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    return (FunctionValue(op.symbol),)


RULES: Mapping[type[Op], EvaluationRule] = {
    Nest: _nest,
    Extract: _extract,
    Insert: _insert,
    Aggregate: lambda op, instruction, operands: (tuple(operands),),
    EnumCase: lambda op, instruction, operands: (EnumValue(op.case, tuple(operands)),),
    IsCase: lambda op, instruction, operands: (np.asarray(operands[0].case == op.case),),
    Payload: _payload,
    ReduceInOrder: _in_order,
    ScanInOrder: _in_order,
    ReduceWindowInOrder: _in_order,
    ProjectBox: lambda op, instruction, operands: tuple(operands),
    Reference: _reference,
    Null: lambda op, instruction, operands: (undefined(op.type),),
    Undefined: lambda op, instruction, operands: (undefined(op.type),),
}
"""Ops of values that are not tensors, and nests, whose body is the instruction's."""
