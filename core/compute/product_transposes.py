"""Splits transposes around matrix products, so that a product reads or writes what the last axis of it moves.

    transpose x permuting (0, 2, 3, 1)   →   transpose (transpose x permuting (0, 2, 1, 3)) permuting (0, 1, 3, 2)

The outer one folds into the flags of the product, and the inner one copies whole rows, as vectors; the other way its
elements would be moved one by one.  Equal copies, as of queries and keys for attention and for its gradient, are one.
"""

from __future__ import annotations

from typing import TypeAlias

from ..ir import Block, Builder, Instruction, Value
from ..ops.movement import Transpose
from .ops import flipped
from .products import exchanging, is_dot, product_operands, transpose_order

_Copies: TypeAlias = dict[tuple[Value, tuple[int, ...]], Value]


def split_transposes(block: Block) -> None:
    """Split the transposes of operands and results of products that kernels compute."""
    if not any(is_dot(one) for one in block.instructions):
        return
    known: _Copies = {}
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        b.location = instruction.location
        order = transpose_order(instruction)
        if is_dot(instruction):
            _split_operands(b, instruction, known)
        elif order is not None:
            (x,) = instruction.operands
            made = known.get((x, order)) or _split_result(b, x, order)
            if made is not None:
                instruction.replace_with(made)
                continue
            known[x, order] = instruction.result
        block.instructions.append(instruction)


def _split_operands(b: Builder, dot: Instruction, known: _Copies) -> None:
    if product_operands(dot) is None:
        return
    operands = list(dot.operands)
    for position, operand in enumerate(operands):
        transpose = operand.producer
        order = transpose_order(transpose)
        if transpose is None or order is None:
            continue
        x, rank, inner = transpose.operands[0], len(order), flipped(order, True)
        if rank < 3 or inner[-1] != rank - 1 or inner == tuple(range(rank)):
            continue
        copy = known.get((x, inner)) or known.setdefault((x, inner), b.emit(Transpose(inner), x))
        operands[position] = b.emit(Transpose(exchanging(rank)), copy)
    dot.set_operands(operands)


def _split_result(b: Builder, x: Value, order: tuple[int, ...]) -> Value | None:
    """The transpose of a product that nobody else uses, split."""
    dot, rank = x.producer, len(order)
    if dot is None or not is_dot(dot) or not x.has_one_use or rank < 3:
        return None
    exchanged = exchanging(rank)
    outer = tuple(exchanged[axis] for axis in order)
    if outer[-1] != rank - 1 or outer == tuple(range(rank)):
        return None
    sides = product_operands(dot)
    if sides is None or any(len(side.shape) != rank for side in sides):
        return None
    return b.emit(Transpose(outer), b.emit(Transpose(exchanged), x))
