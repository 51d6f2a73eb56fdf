"""Runs programs, one instruction after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol, runtime_checkable

from ..errors import FuelError, NNKitError, RecursionDepthError, TrapError
from ..ir import Effect, Instruction, Op, evaluates_to
from ..ops.terminators import Return
from .control_ops import CONTROL_RULES
from .machine import Machine
from .memory_ops import MachineRule
from .pure_ops import evaluate_instruction
from .runtime_values import called, packed_data, rounded

MOST_INSIDE = 40
"""Functions that ops call while they compute, inside each other: each takes some of Python's stack.

At 6 frames each, a quarter of Python's limit of 1000.
"""


@runtime_checkable
class CallsFunctions(Protocol):
    """An op that calls functions while it computes, by `call(function, *arguments)`."""

    def evaluate_by(self, call: Callable[..., Any], *operands: Any) -> Any: ...


def run(machine: Machine, name: str, arguments: Sequence[Any]) -> Any:
    """The result of a call, once everything it calls is done."""
    frames, base = machine.frames, len(machine.frames)
    try:
        done = machine.call(name, arguments)
        if done is not None:
            return packed_data(machine.module.functions[name].type.result, done)
        for _ in machine.budget:
            frame = frames[-1]
            instruction = frame.instructions[frame.position]
            frame.position += 1
            values, op = frame.values, instruction.op.__class__
            operands = [values[operand] for operand in instruction.operands]
            if op is Return:
                frame.leave()
                frames.pop()
                if len(frames) == base:
                    return packed_data(frame.function.type.result, operands)
                assert frame.caller is not None
                frames[-1].assign(frame.caller, operands)
                continue
            step = rule_of(op)
            results = (
                step(instruction.op, machine, instruction, *operands)
                if step
                else evaluate_instruction(instruction, operands)
            )
            if results:
                values.update(zip(instruction.results, results, strict=True))
                if machine.observe is not None:
                    machine.observe(instruction, operands, results)
        raise FuelError(f"the program is not done after {machine.fuel} instructions")
    except MemoryError:
        raise machine.place(TrapError("out of memory"), base) from None
    except NNKitError as error:
        machine.place(error, base)
        raise


@cache
def rule_of(op: type[Op]) -> MachineRule | None:
    """How the machine runs an op; None for one that computes from its operands alone."""
    for base in op.__mro__:
        if base in CONTROL_RULES:
            return CONTROL_RULES[base]
    calls = op.effect & Effect.CALL and issubclass(op, CallsFunctions)
    return _call_inside if calls else None


def _call_inside(
    op: CallsFunctions, machine: Machine, at: Instruction, *operands: Any
) -> Sequence[Any]:
    """An op that calls functions while it computes: they run inside of it."""

    def call(function: Any, *arguments: Any) -> Any:
        return run(machine, called(function), arguments)

    if machine.inside >= MOST_INSIDE:
        raise RecursionDepthError(
            f"functions that {at.op.name} calls, and that use it themselves, are nested more than "
            f"{MOST_INSIDE} deep"
        )
    machine.inside += 1
    results = evaluates_to(op.evaluate_by(call, *operands))
    machine.inside -= 1
    return [rounded(value.type, data) for value, data in zip(at.results, results, strict=True)]
