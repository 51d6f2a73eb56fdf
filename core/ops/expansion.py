"""Ops that are made of other ops: their meaning and their nests follow from the expansion.

An expansion is a rule that emits ops, as rules of differentiation do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import InternalError
from ..ir.builder import Builder
from ..ir.instruction import Value, evaluates_to
from ..types import Array, TensorType, Type

Expansion: TypeAlias = Callable[..., Value]
"""(emitter, operands…) to the value that the op equals."""


def evaluate_expansion(
    rule: Expansion, types: Sequence[TensorType], operands: Sequence[Array]
) -> Array:
    """What the emitted ops compute, each rounded to its type as the evaluator does."""
    b = Builder()
    arguments = [b.argument(type) for type in types]
    result = rule(b, *arguments)
    values: dict[Value, Any] = dict(zip(arguments, operands, strict=True))
    with np.errstate(all="ignore"):
        for instruction in b.block.instructions:
            found = evaluates_to(
                instruction.op.evaluate(*(values[x] for x in instruction.operands))
            )
            for value, data in zip(instruction.results, found, strict=True):
                values[value] = np.asarray(value.tensor.dtype.round(data), order="C")
    return np.asarray(values[result])


def result_of_expansion(rule: Expansion, types: Sequence[Type]) -> Type:
    """The type of what the rule gives for operands of `types`."""
    b = Builder()
    result = rule(b, *(b.argument(type) for type in types))
    if not isinstance(result.type, TensorType):
        raise InternalError(f"an expansion gave {result.type}, which is not a tensor")
    return result.type
