"""What the instructions do that go elsewhere: calls, branches, bodies, and references into the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..compute.ops import Call, CallAddress
from ..errors import TrapError
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
from .data import EnumValue, FunctionValue
from .frame import Frame
from .heap import HEAP_ACTIONS, action_of
from .machine import Machine
from .memory import existing
from .pure import evaluate_instruction

Step: TypeAlias = Callable[[Machine, Frame, Instruction, Sequence[Any]], Sequence[Any]]
"""(machine, frame, instruction, operands) to the results that are there at once."""


def _random(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    assert isinstance(at.op, Random)
    low, high = operands
    numbers = at.op.evaluate_with(m.seed, m.random_count, low, high, at.result.tensor.dtype)
    m.random_count += 1
    return [numbers]


def returned(at: Instruction, result: Any) -> Sequence[Any]:
    """The results of the instruction that called: those of a `call` are the elements of a tuple."""
    op = at.op
    return (
        result
        if isinstance(op, Call | CallAddress) and isinstance(op.type.result, TupleType)
        else (result,)
    )


def _apply(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    assert isinstance(at.op, Apply | Call)
    done = m.call(at.op.callee, operands, at)
    return returned(at, done[0]) if done else ()


def _apply_value(
    m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    function, *arguments = operands
    called: FunctionValue = existing(function, "call")
    return m.call(called.name, arguments, at) or ()


def _call_address(
    m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    function, *arguments = operands
    name = m.heap.names.get(int(function))
    if name is None:
        raise TrapError("call what is no function")
    done = m.call(name, arguments, at)
    return returned(at, done[0]) if done else ()


def _on_bytes(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    return action_of(at.op.__class__)(at.op, m.heap, at, operands)


def _literal(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    """Numbers are made once: they stand in bodies that run often."""
    known = m.constants.get(at)
    if known is None:
        known = evaluate_instruction(at, operands)
        if not at.result.tensor.rank:
            m.constants[at] = known
    return known


def _reference(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    assert isinstance(at.op, Reference)
    symbol = at.op.symbol
    is_variable = isinstance(at.op.type, PointerType)
    return (m.variable(symbol) if is_variable else FunctionValue(symbol),)


def _branch(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    frame.go_to(at.successors[0], operands)
    return ()


def _conditional(
    m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    assert isinstance(at.op, Conditional)
    condition, *arguments = operands
    taken = at.op.taken
    if condition:
        frame.go_to(at.successors[0], arguments[:taken])
    else:
        frame.go_to(at.successors[1], arguments[taken:])
    return ()


def _branch_enum(
    m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    assert isinstance(at.op, BranchEnum)
    value: EnumValue = operands[0]
    frame.go_to(at.successors[at.op.cases.index(value.case)], value.carried)
    return ()


def _yield(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    m.frames.pop()
    assert frame.resume is not None
    frame.resume(operands)
    return ()


def _if(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    condition, *given = operands
    body = at.regions[0 if condition else 1]

    def leave(results: Sequence[Any]) -> None:
        frame.assign(at, results)

    m.enter(frame, body, given, leave)
    return ()


def _while(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    assert isinstance(at.op, While)
    count = len(operands) - at.op.inputs
    inputs = operands[count:]
    condition, body = at.regions

    def ask(carried: Sequence[Any]) -> None:
        def answer(more: Sequence[Any]) -> None:
            if more[0]:
                m.enter(frame, body, [*carried, *inputs], ask)
            else:
                frame.assign(at, carried)

        m.enter(frame, condition, [*carried, *inputs], answer)

    ask(operands[:count])
    return ()


def _for(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    op = at.op
    assert isinstance(op, For)
    lower, upper = int(operands[0]), int(operands[1])
    carried, inputs = operands[2 : len(operands) - op.inputs], operands[len(operands) - op.inputs :]
    trips = max(upper - lower, 0)
    types = [value.tensor for value in at.results[len(carried) :]]
    for type in types:
        if type.shape[0] != trips:
            raise TrapError(f"for stacks {type.shape[0]} elements and runs {trips} times")
    stacked = [np.zeros(type.shape, type.dtype.numpy) for type in types]
    indices = iter(range(lower, upper))

    def repeat_with(carried: Sequence[Any]) -> None:
        index = next(indices, None)
        if index is None:
            frame.assign(at, [*carried, *stacked])
            return

        def stack(yielded: Sequence[Any]) -> None:
            for tensor, element in zip(stacked, yielded[len(carried) :], strict=True):
                tensor[index - lower] = element
            repeat_with(yielded[: len(carried)])

        m.enter(frame, at.regions[0], [np.asarray(index), *carried, *inputs], stack)

    repeat_with(carried)
    return ()


def _trap(m: Machine, frame: Frame, at: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    raise TrapError("the program stopped at a trap")


STEPS: Mapping[type[Op], Step] = {
    Apply: _apply,
    Call: _apply,
    ApplyValue: _apply_value,
    CallAddress: _call_address,
    **dict.fromkeys(HEAP_ACTIONS, _on_bytes),
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
