"""Evaluates calls, branches, structured control flow and references to symbols."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compute.ops import CallAddress
from ..errors import CheckError, ShapeError, TrapError
from ..ir import Instruction, Op
from ..ops.aggregate import Apply, ApplyValue
from ..ops.effects import Check, Print
from ..ops.literal import Literal
from ..ops.nest import Yield
from ..ops.random import Random
from ..ops.reference import Reference
from ..ops.structured import For, If, While
from ..ops.terminators import Branch, BranchEnum, Conditional
from ..ops.trap import Trap
from ..types import Array, PointerType
from .kernel_ops import KERNEL_RULES
from .machine import Machine
from .memory_ops import MEMORY, MachineRule
from .pure_ops import evaluate_instruction
from .runtime_values import EnumValue, FunctionValue, called


def _random(
    op: Random, machine: Machine, at: Instruction, low: Array, high: Array
) -> Sequence[Any]:
    numbers = op.evaluate_with(
        machine.seed, machine.random_count, low, high, at.result.tensor.dtype
    )
    machine.random_count += 1
    return [numbers]


def _apply(op: Apply, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    return machine.call(op.callee, operands, at) or ()


def _apply_value(
    op: Op, machine: Machine, at: Instruction, function: FunctionValue | None, *arguments: Any
) -> Sequence[Any]:
    return machine.call(called(function), arguments, at) or ()


def _call_address(
    op: Op, machine: Machine, at: Instruction, function: Array, *arguments: Any
) -> Sequence[Any]:
    _, found = machine.memory.held.get(int(function), (None, None))
    if not isinstance(found, FunctionValue):
        raise TrapError("call what is no function")
    return machine.call(found.name, arguments, at) or ()


def _literal(op: Op, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    """Numbers are made once: they stand in bodies that run often."""
    known = machine.constants.get(at)
    if known is None:
        known = evaluate_instruction(at, operands)
        if not at.result.tensor.rank:
            machine.constants[at] = known
    return known


def _reference(op: Reference, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    symbol = op.symbol
    is_variable = isinstance(op.type, PointerType)
    return (machine.variable(symbol) if is_variable else FunctionValue(symbol),)


def _branch(op: Op, machine: Machine, at: Instruction, *arguments: Any) -> Sequence[Any]:
    machine.frames[-1].go_to(at.successors[0], arguments)
    return ()


def _conditional(
    op: Conditional, machine: Machine, at: Instruction, condition: Array, *arguments: Any
) -> Sequence[Any]:
    given = arguments[: op.taken] if condition else arguments[op.taken :]
    machine.frames[-1].go_to(at.successors[0 if condition else 1], given)
    return ()


def _branch_enum(
    op: BranchEnum, machine: Machine, at: Instruction, value: EnumValue
) -> Sequence[Any]:
    machine.frames[-1].go_to(at.successors[op.cases.index(value.case)], value.carried)
    return ()


def _yield(op: Op, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    frame = machine.frames.pop()
    assert frame.resume is not None
    frame.resume(operands)
    return ()


def _if(op: Op, machine: Machine, at: Instruction, condition: Array, *given: Any) -> Sequence[Any]:
    frame, body = machine.frames[-1], at.regions[0 if condition else 1]

    def leave(results: Sequence[Any]) -> None:
        frame.assign(at, results)

    machine.enter(frame, body, given, leave)
    return ()


def _while(op: While, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    frame, count = machine.frames[-1], len(operands) - op.inputs
    inputs = operands[count:]
    condition, body = at.regions

    def ask(carried: Sequence[Any]) -> None:
        def answer(more: Sequence[Any]) -> None:
            if more[0]:
                machine.enter(frame, body, [*carried, *inputs], ask)
            else:
                frame.assign(at, carried)

        machine.enter(frame, condition, [*carried, *inputs], answer)

    ask(operands[:count])
    return ()


def _for(
    op: For, machine: Machine, at: Instruction, lower: Array, upper: Array, *rest: Any
) -> Sequence[Any]:
    frame, first, trips = machine.frames[-1], int(lower), max(int(upper) - int(lower), 0)
    carried, inputs = rest[: len(rest) - op.inputs], rest[len(rest) - op.inputs :]
    types = [value.tensor for value in at.results[len(carried) :]]
    for type in types:
        if type.shape[0] != trips:
            raise ShapeError(
                f"for stacks one element per iteration: {trips} iterations cannot fill an axis of "
                f"{type.shape[0]}"
            )
    stacked = [np.zeros(type.shape, type.dtype.numpy) for type in types]
    indices = iter(range(first, first + trips))

    def repeat_with(carried: Sequence[Any]) -> None:
        index = next(indices, None)
        if index is None:
            frame.assign(at, [*carried, *stacked])
            return

        def stack(yielded: Sequence[Any]) -> None:
            for tensor, element in zip(stacked, yielded[len(carried) :], strict=True):
                tensor[index - first] = element
            repeat_with(yielded[: len(carried)])

        machine.enter(frame, at.regions[0], [np.asarray(index), *carried, *inputs], stack)

    repeat_with(carried)
    return ()


def _trap(op: Op, machine: Machine, at: Instruction, *operands: Any) -> Sequence[Any]:
    raise TrapError("the program stopped at a trap")


def _check(op: Check, machine: Machine, at: Instruction, condition: Array) -> Sequence[Any]:
    if not condition:
        raise CheckError(op.message)
    return ()


def _print(op: Print, machine: Machine, at: Instruction, *values: Array) -> Sequence[Any]:
    sys.stdout.write(op.text(values))
    return ()


CONTROL_RULES: Mapping[type[Op], MachineRule] = {
    Apply: _apply,
    ApplyValue: _apply_value,
    CallAddress: _call_address,
    Literal: _literal,
    Reference: _reference,
    Branch: _branch,
    Conditional: _conditional,
    BranchEnum: _branch_enum,
    Yield: _yield,
    If: _if,
    While: _while,
    For: _for,
    Random: _random,
    Trap: _trap,
    Check: _check,
    Print: _print,
    **MEMORY,
    **KERNEL_RULES,
}
"""What the machine itself runs."""
