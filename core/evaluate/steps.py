"""What the instructions do that go elsewhere: calls, branches, bodies, and references into the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..compute.ops import Call, CallAddress
from ..errors import ShapeError, TrapError
from ..ir import Instruction, Op
from ..ops.aggregate import Apply, ApplyValue
from ..ops.control import For, If, While
from ..ops.literal import Literal
from ..ops.nest import Yield
from ..ops.random import Random
from ..ops.reference import Reference
from ..ops.terminators import Branch, BranchEnum, Conditional
from ..ops.trap import Trap
from ..types import PointerType, TupleType
from .data import EnumValue, FunctionValue, called
from .frame import Frame
from .machine import Machine
from .pure import evaluate_instruction

Step: TypeAlias = Callable[[Machine, Frame, Instruction[Any], Sequence[Any]], Sequence[Any]]
"""(machine, frame, instruction, operands) to the results that are there at once."""


def _random(
    machine: Machine, frame: Frame, instruction: Instruction[Random], operands: Sequence[Any]
) -> Sequence[Any]:
    low, high = operands
    numbers = instruction.op.evaluate_with(
        machine.seed, machine.random_count, low, high, instruction.result.tensor.dtype
    )
    machine.random_count += 1
    return [numbers]


def returned(instruction: Instruction, result: Any) -> Sequence[Any]:
    """The results of the instruction that called: those of a `call` are the elements of a tuple."""
    op = instruction.op
    return (
        result
        if isinstance(op, Call | CallAddress) and isinstance(op.type.result, TupleType)
        else (result,)
    )


def _apply(
    machine: Machine, frame: Frame, instruction: Instruction[Apply | Call], operands: Sequence[Any]
) -> Sequence[Any]:
    done = machine.call(instruction.op.callee, operands, instruction)
    return returned(instruction, done[0]) if done else ()


def _apply_value(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    function, *arguments = operands
    return machine.call(called(function), arguments, instruction) or ()


def _call_address(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    function, *arguments = operands
    _, found = machine.memory.held.get(int(function), (None, None))
    if not isinstance(found, FunctionValue):
        raise TrapError("call what is no function")
    done = machine.call(found.name, arguments, instruction)
    return returned(instruction, done[0]) if done else ()


def _literal(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    """Numbers are made once: they stand in bodies that run often."""
    known = machine.constants.get(instruction)
    if known is None:
        known = evaluate_instruction(instruction, operands)
        if not instruction.result.tensor.rank:
            machine.constants[instruction] = known
    return known


def _reference(
    machine: Machine, frame: Frame, instruction: Instruction[Reference], operands: Sequence[Any]
) -> Sequence[Any]:
    symbol = instruction.op.symbol
    is_variable = isinstance(instruction.op.type, PointerType)
    return (machine.variable(symbol) if is_variable else FunctionValue(symbol),)


def _branch(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    frame.go_to(instruction.successors[0], operands)
    return ()


def _conditional(
    machine: Machine, frame: Frame, instruction: Instruction[Conditional], operands: Sequence[Any]
) -> Sequence[Any]:
    condition, *arguments = operands
    taken = instruction.op.taken
    if condition:
        frame.go_to(instruction.successors[0], arguments[:taken])
    else:
        frame.go_to(instruction.successors[1], arguments[taken:])
    return ()


def _branch_enum(
    machine: Machine, frame: Frame, instruction: Instruction[BranchEnum], operands: Sequence[Any]
) -> Sequence[Any]:
    value: EnumValue = operands[0]
    frame.go_to(instruction.successors[instruction.op.cases.index(value.case)], value.carried)
    return ()


def _yield(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    machine.frames.pop()
    assert frame.resume is not None
    frame.resume(operands)
    return ()


def _if(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    condition, *given = operands
    body = instruction.regions[0 if condition else 1]

    def leave(results: Sequence[Any]) -> None:
        frame.assign(instruction, results)

    machine.enter(frame, body, given, leave)
    return ()


def _while(
    machine: Machine, frame: Frame, instruction: Instruction[While], operands: Sequence[Any]
) -> Sequence[Any]:
    count = len(operands) - instruction.op.inputs
    inputs = operands[count:]
    condition, body = instruction.regions

    def ask(carried: Sequence[Any]) -> None:
        def answer(more: Sequence[Any]) -> None:
            if more[0]:
                machine.enter(frame, body, [*carried, *inputs], ask)
            else:
                frame.assign(instruction, carried)

        machine.enter(frame, condition, [*carried, *inputs], answer)

    ask(operands[:count])
    return ()


def _for(
    machine: Machine, frame: Frame, instruction: Instruction[For], operands: Sequence[Any]
) -> Sequence[Any]:
    op = instruction.op
    lower, upper = int(operands[0]), int(operands[1])
    carried, inputs = operands[2 : len(operands) - op.inputs], operands[len(operands) - op.inputs :]
    trips = max(upper - lower, 0)
    types = [value.tensor for value in instruction.results[len(carried) :]]
    for type in types:
        if type.shape[0] != trips:
            raise ShapeError(
                f"for stacks one element per iteration: {trips} iterations cannot fill an axis of "
                f"{type.shape[0]}"
            )
    stacked = [np.zeros(type.shape, type.dtype.numpy) for type in types]
    indices = iter(range(lower, upper))

    def repeat_with(carried: Sequence[Any]) -> None:
        index = next(indices, None)
        if index is None:
            frame.assign(instruction, [*carried, *stacked])
            return

        def stack(yielded: Sequence[Any]) -> None:
            for tensor, element in zip(stacked, yielded[len(carried) :], strict=True):
                tensor[index - lower] = element
            repeat_with(yielded[: len(carried)])

        machine.enter(frame, instruction.regions[0], [np.asarray(index), *carried, *inputs], stack)

    repeat_with(carried)
    return ()


def _trap(
    machine: Machine, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    raise TrapError("the program stopped at a trap")


STEPS: Mapping[type[Op], Step] = {
    Apply: _apply,
    Call: _apply,
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
}
"""Ops that the machine itself runs; those of memory are in `storage`."""
