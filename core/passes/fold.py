"""Constant folding: evaluates instructions on literals at compile time.

1. Moving the elements of a splat gives a splat: broadcast, transpose, slice, ….
2. Elementwise functions of splats are computed on one element.
3. Anything else without an effect whose operands are literals goes through the reference evaluator, unless the constant
   it makes is large or the work is.
4. An `if` of a known condition becomes one of its branches; a `while` whose condition is false at once and
   a `for` without iterations become what they carry.  No loop is unrolled.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..analysis import Analyses, Analysis
from ..errors import NNKitError
from ..evaluate import evaluate_instruction
from ..ir import Builder, Function, Instruction, Op, Value
from ..lazy_dataclass import dataclass
from ..ops import Bilinear, Literal, Pointwise, dense
from ..ops.literal import literal_of
from ..types import TensorType
from .base import FunctionPass
from .rewrite import Laws, rewrite
from .simplify_structured import inline_known_bodies, run_to_fixpoint

SMALL = 4096
"""A constant of this many elements is always worth keeping; a larger one if an operand is as large.

From 64 on, the benchmarks have the same code; with a million, the gradient of a cumsum of 1000 × 1000 becomes a
constant of 4 MB.
"""

WORK = 1 << 22
"""The most elements that are read to compute a constant: NumPy takes 5 to 10 ms for an addition or exponentials of
them."""

PRODUCT_WORK = 1 << 16
"""The same for products, whose work is more than linear: 2.5 ms for two matrices of i64, for which NumPy has no
BLAS."""


@dataclass(frozen=True)
class Fold(FunctionPass):
    """Computes instructions whose operands are all literals, and chooses bodies by known conditions.

    Requires: nothing.
    Preserves: every bit, as it computes with the reference evaluator; an index out of range stays for
        the program to find.
    Cost: linear, and at most 2²² elements read per constant.
    """

    name: ClassVar[str] = "fold"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None:
            return False
        return run_to_fixpoint(
            body, lambda: rewrite(function, FOLDING, analyses), inline_known_bodies
        )


def fold(b: Builder, instruction: Instruction) -> Value | None:
    """The literal that an instruction on literals equals."""
    literals: list[Literal] = []
    for operand in instruction.operands:
        literal = literal_of(operand)
        if literal is None:
            return None
        literals.append(literal)
    op, results = instruction.op, instruction.results
    if not literals or len(results) != 1 or instruction.regions or op.effect:
        return None
    result = results[0].type
    if not isinstance(result, TensorType):
        return None
    folded = _fold_splats(op, literals, result) or _fold_dense(instruction, literals, result)
    return b.emit(folded) if folded else None


def _fold_splats(op: Op, literals: list[Literal], result: TensorType) -> Literal | None:
    first = literals[0]
    if not result.size or not all(literal.is_splat for literal in literals):
        return None  # the literal of no element is the one that `dense` makes
    if op.is_moved:
        same = all(literal.data == first.data for literal in literals)
        return Literal(result, first.data) if same else None
    if not isinstance(op, Pointwise):
        return None
    with np.errstate(all="ignore"):
        element = op.evaluate(*(literal.elements().reshape(1) for literal in literals))
    return Literal(result, result.dtype.store(result.dtype.round(element)).tobytes())


def _fold_dense(
    instruction: Instruction, literals: list[Literal], result: TensorType
) -> Literal | None:
    if result.size > SMALL and result.size > max(_stored(literal) for literal in literals):
        return None
    work = sum(literal.type.size for literal in literals)
    if work > (PRODUCT_WORK if isinstance(instruction.op, Bilinear) else WORK):
        return None
    try:
        with np.errstate(all="ignore"):
            operands = [literal.type.dtype.round(literal.evaluate()) for literal in literals]
            return dense(result, evaluate_instruction(instruction, operands)[0])
    except NNKitError:
        return None


def _stored(literal: Literal) -> int:
    return len(literal.data) // literal.type.dtype.bytes


FOLDING: Laws = {Op: (fold,)}
