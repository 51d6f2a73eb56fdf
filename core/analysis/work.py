"""What one instruction costs: operations on elements, and bytes that are read and written.

1. The *flops* of an instruction are read off its own loop nest: points of the box, times what the body does at
   one and what combining does.  Elementwise functions count by weight, so that division and `exp` are dearer
   than a sum.  Integers count like floats; moving elements is no flop.
2. Its *bytes* are those of the tensors it reads and writes.  Views, literals, and putting tensors into tuples,
   move none; what takes a part of a tensor reads that part only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..compute.ops import MatrixProduct
from ..errors import NNKitError
from ..ir import Builder, Instruction, Op, Value
from ..ops import (
    Copy,
    Divide,
    Elementwise,
    Extract,
    FloorDivide,
    Folding,
    Gather,
    InOrder,
    Insert,
    Literal,
    Load,
    Modulo,
    Nest,
    PadShape,
    Pop,
    Power,
    Push,
    Rsqrt,
    Scan,
    ShapeCast,
    ShapeQuery,
    Slice,
    Sqrt,
    SqueezeShape,
    StopGradient,
    Store,
    StraightThrough,
    TruncateDivide,
)
from ..ops.transcendental import FloatFunction
from ..schedule.ops import Gemm
from ..types import ArrayType, PointerType, TensorType, Type, elements_of

Nested: TypeAlias = "tuple[Op, tuple[Type, ...]]"
"""What loop nests follow from: an op, and the types of its operands."""

WEIGHTS: Mapping[type[object], int] = {
    StopGradient: 0,
    StraightThrough: 0,
    **dict.fromkeys((Divide, FloorDivide, TruncateDivide, Modulo, Sqrt, Rsqrt), 4),
    Power: 32,
    FloatFunction: 16,
    Elementwise: 1,
}
"""Flops per element, by class of function: about how many sums take as long."""

VIEWS = (Literal, PadShape, ShapeCast, SqueezeShape, ShapeQuery, StopGradient, StraightThrough)
"""What reads no element."""

PARTS = (Slice, Gather)
"""What reads no more of its first operand than it gives."""


def flops_of(instruction: Instruction, nests: dict[Nested, int]) -> int:
    """Operations on elements, bodies aside; `nests` remembers what loop nests have been asked for."""
    op, operands = instruction.op, instruction.operands
    if isinstance(op, Elementwise):
        return instruction.result.tensor.size * weight(op)
    if isinstance(op, Nest):
        return _nest_flops(instruction)
    if isinstance(op, Scan):
        return operands[0].tensor.size
    if isinstance(op, InOrder):
        return operands[0].tensor.size * weight(op.by)
    if isinstance(op, Gemm):
        op = MatrixProduct(op.transpose_a, op.transpose_b)
    if op.takes_any or isinstance(op, Literal) or not instruction.results:
        return 0
    key = op, tuple(x.type for x in operands)
    if key not in nests:
        nests[key] = _flops_of_nests(op, operands)
    return nests[key]


def weight(op: Op) -> int:
    """Flops that an elementwise function does for one element."""
    return next(WEIGHTS[base] for base in type(op).__mro__ if base in WEIGHTS)


def _flops_of_nests(op: Op, operands: Sequence[Value]) -> int:
    """What the loop nests do that `op` means; 0 for what has none."""
    b = Builder()
    try:
        op.nest(b, *(Value(x.type) for x in operands))
    except NNKitError:
        return 0
    made = (i for i in b.block.instructions if isinstance(i.op, Nest))
    return sum(map(_nest_flops, made))


def _nest_flops(instruction: Instruction) -> int:
    op = instruction.op
    assert isinstance(op, Nest)
    body = instruction.regions[0].entry.instructions
    computed = sum(weight(i.op) for i in body if isinstance(i.op, Elementwise))
    combined = sum(1 for output in op.outputs if output.combinator)
    return op.points * (computed + combined)


def bytes_of(instruction: Instruction) -> int:
    """Bytes of tensors that are read and written, bodies aside."""
    op, operands, results = instruction.op, instruction.operands, instruction.results
    match op:
        case Load() | Pop():
            return 2 * size_of(results[0].type)
        case Store() | Push():
            return 2 * size_of(operands[0].type)
        case Copy():
            count, type = operands[2].op, operands[0].type
            values = int(count.splat_value()) if isinstance(count, Literal) else 1
            pointee = size_of(type.pointee) if isinstance(type, PointerType) else 0
            return 2 * max(0, values) * pointee
        case Extract() if isinstance(operands[0].type, TensorType):
            return 2 * size_of(results[0].type)
        case Insert() if isinstance(operands[1].type, TensorType):
            return 2 * size_of(results[0].type)
        case Folding():
            return size_of(operands[0].type) + size_of(results[0].type)
        case _ if op.takes_any or isinstance(op, VIEWS):
            return 0
        case _:
            read = [size_of(x.type) for x in operands]
            made = sum(size_of(x.type) for x in results)
            if isinstance(op, PARTS):
                read[0] = min(read[0], made)
            return sum(read) + made


def size_of(type: Type) -> int:
    """Bytes of the tensors in a value; 0 for what has none."""
    total = 0
    pending: list[tuple[Type, int]] = [(type, 1)]
    while pending:
        current, count = pending.pop()
        match current:
            case TensorType():
                total += count * current.bytes
            case ArrayType():  # may have a million elements
                pending.append((current.element, count * current.count))
            case _:
                pending += [(element, count) for element in elements_of(current) or ()]
    return total
