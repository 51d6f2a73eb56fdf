"""Runs what a rule has emitted, and differentiates it instruction by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nnkit.core.autodiff.rules import jvp_of
from nnkit.core.evaluate import evaluate_instruction
from nnkit.core.ir import Builder, Op, Value
from nnkit.core.types import Array, TensorType


def run(b: Builder, given: Mapping[Value, Array], wanted: Sequence[Value]) -> list[Array]:
    """The values `wanted` of a block whose arguments are `given`."""
    values: dict[Value, Any] = dict(given)
    with np.errstate(all="ignore"):
        for instruction in b.block.instructions:
            operands = [values[operand] for operand in instruction.operands]
            values.update(
                zip(instruction.results, evaluate_instruction(instruction, operands), strict=True)
            )
    return [values[value] for value in wanted]


def arguments(b: Builder, types: Sequence[TensorType]) -> list[Value]:
    """New arguments of the block."""
    return [b.argument(type) for type in types]


def result_of(op: Op, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
    """What the op gives, rounded to its type as the evaluator does."""
    b = Builder()
    xs = arguments(b, types)
    y = b.emit(op, *xs)
    return run(b, dict(zip(xs, operands, strict=True)), [y])[0]


def pushed_forward(
    b: Builder, tangents: Mapping[Value, Value], wanted: Sequence[Value]
) -> list[Value | None]:
    """Tangents of `wanted`, by the forward rule of each instruction of the block in turn."""
    known: dict[Value, Value | None] = dict(tangents)
    for instruction in list(b.block.instructions):
        dxs = [known.get(operand) for operand in instruction.operands]
        dys = jvp_of(b, instruction.op, instruction.results, instruction.operands, dxs)
        known.update(zip(instruction.results, dys, strict=True))
    return [known.get(value) for value in wanted]
