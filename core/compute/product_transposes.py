"""Splits transposes around matrix products, so that a product reads or writes what the last axis of it moves.

    transpose x permuting (0, 2, 3, 1)   →   transpose (transpose x permuting (0, 2, 1, 3)) permuting (0, 1, 3, 2)

The outer one folds into the flags of the product, and the inner one copies whole rows, as vectors; the other way its
elements would be moved one by one.  Equal copies, as of queries and keys for attention and for its gradient, are one.
"""

from __future__ import annotations

from typing import TypeAlias

from ..ir import Block, Builder, Instruction, Value
from ..ops.contraction import Dot
from ..ops.movement import Transpose
from .ops import flipped
from .products import library_product

_Copies: TypeAlias = dict[tuple[Value, tuple[int, ...]], Value]


def split_transposes(block: Block) -> None:
    """Split the transposes of operands and results of products that the BLAS or a kernel computes."""
    if not any(isinstance(one.op, Dot) for one in block.instructions):
        return
    known: _Copies = {}
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        b.location = instruction.location
        if isinstance(instruction.op, Dot):
            _split_operands(b, instruction, known)
        elif isinstance(instruction.op, Transpose):
            order = _order(instruction)
            made = known.get((instruction.operands[0], order)) or _split_result(b, instruction)
            if made is not None:
                instruction.replace_with(made)
                continue
            known[instruction.operands[0], order] = instruction.result
        block.instructions.append(instruction)


def _split_operands(b: Builder, dot: Instruction, known: _Copies) -> None:
    if library_product(dot) is None:
        return
    operands = list(dot.operands)
    for position, operand in enumerate(operands):
        transpose = operand.producer
        if transpose is None or not isinstance(transpose.op, Transpose):
            continue
        order, x = _order(transpose), transpose.operands[0]
        rank = len(order)
        inner = flipped(order, True)
        if rank < 3 or inner[-1] != rank - 1 or inner == tuple(range(rank)):
            continue
        copy = known.get((x, inner)) or known.setdefault((x, inner), b.emit(Transpose(inner), x))
        operands[position] = b.emit(Transpose(_exchanging(rank)), copy)
    dot.set_operands(operands)


def _split_result(b: Builder, transpose: Instruction) -> Value | None:
    """The same with the transpose of a product that nobody else uses inside."""
    order, x = _order(transpose), transpose.operands[0]
    dot, rank = x.producer, len(order)
    if dot is None or not isinstance(dot.op, Dot) or not x.has_one_use or rank < 3:
        return None
    exchanged = _exchanging(rank)
    outer = tuple(exchanged[axis] for axis in order)
    if outer[-1] != rank - 1 or outer == tuple(range(rank)):
        return None
    sides = library_product(dot)
    if sides is None or any(len(side.shape) != rank for side in sides):
        return None
    return b.emit(Transpose(outer), b.emit(Transpose(exchanged), x))


def _exchanging(rank: int) -> tuple[int, ...]:
    """The permutation that exchanges the last two axes."""
    return flipped(tuple(range(rank)), True)


def _order(transpose: Instruction) -> tuple[int, ...]:
    op = transpose.op
    assert isinstance(op, Transpose)
    return op.order(transpose.operands[0].tensor.rank)
