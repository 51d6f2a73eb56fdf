"""Laws of real numbers that floating-point numbers do not have; off by default.

They may change the last digits, the sign of a zero, and what becomes of ∞ and NaN.  No law makes a constant that
its element type has no normal number for: finite results would become infinite, or lose all their digits.
"""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import (
    Add,
    Divide,
    Dot,
    Exp,
    Log,
    Multiply,
    Negate,
    Power,
    Reduce,
    Rsqrt,
    Sqrt,
    Square,
    Subtract,
    Transpose,
)
from ...ops.reduction import broadcast_to
from ..rewrite import Laws
from .patterns import filled, inputs, is_normal, made_by, number
from .reduction import merged_axes, sum_of_equals


def relax_negate(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match made_by(x, Subtract):
        # −(u − v) = v − u
        case (u, v):
            return b.emit(Subtract(), v, u)
        case _:
            return None


def relax_add(b: Builder, instruction: Instruction) -> Value | None:
    type = instruction.result.tensor
    for x, n in _with_numbers(instruction):
        # x + 0 = x
        if n == 0:
            return broadcast_to(b, x, type.shape)
        for y, m in _with_inner_numbers(x, Add):
            # (y + m) + n = y + (m + n)
            if m + n == 0 or is_normal(m + n, type.dtype):
                return broadcast_to(
                    b, b.emit(Add(), y, filled(b, type.with_shape(()), m + n)), type.shape
                )
    return None


def relax_subtract(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    # 0 − x = −x
    if number(u) == 0:
        return b.emit(Negate(), broadcast_to(b, v, type.shape))
    # x − x = 0
    return filled(b, type, 0) if u is v else None


def relax_multiply(b: Builder, instruction: Instruction) -> Value | None:
    type = instruction.result.tensor
    for x, n in _with_numbers(instruction):
        # x · 0 = 0
        if n == 0:
            return filled(b, type, 0)
        for y, m in _with_inner_numbers(x, Multiply):
            # (y · m) · n = y · (m · n)
            if is_normal(m * n, type.dtype):
                return broadcast_to(
                    b, b.emit(Multiply(), y, filled(b, type.with_shape(()), m * n)), type.shape
                )
    return None


def relax_divide(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    if not type.dtype.is_float:
        return None
    # x / x = 1
    if u is v:
        return filled(b, type, 1)
    # x / n = x · (1 / n)
    divisor = number(v)
    if divisor and is_normal(1 / divisor, type.dtype):
        return b.emit(Multiply(), u, filled(b, v.tensor, 1 / divisor))
    match made_by(v, Sqrt):
        # u / √x = u · x^(−½)
        case (x,):
            return b.emit(Multiply(), u, b.emit(Rsqrt(), x))
        case _:
            return None


def relax_function(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match instruction.op, x.op, inputs(x):
        # exp(log(x)) = log(exp(x)) = √x² = x
        case (Exp(), Log(), (y,)) | (Log(), Exp(), (y,)) | (Square(), Sqrt(), (y,)):
            return y
        case _:
            return None


def relax_power(b: Builder, instruction: Instruction) -> Value | None:
    x, exponent = instruction.operands
    type = instruction.result.tensor
    n = number(exponent)
    if not type.dtype.is_float or n is None:
        return None
    match n:
        # x^½ = √x
        case 0.5:
            return b.emit(Sqrt(), broadcast_to(b, x, type.shape))
        # x^(−½) = 1 / √x
        case -0.5:
            return b.emit(Rsqrt(), broadcast_to(b, x, type.shape))
        # x⁻¹ = 1 / x
        case -1:
            return b.emit(
                Divide(), filled(b, type.with_shape(()), 1), broadcast_to(b, x, type.shape)
            )
        # x³ = x² · x
        case 3:
            base = broadcast_to(b, x, type.shape)
            return b.emit(Multiply(), b.emit(Square(), base), base)
        case _:
            return None


def relax_reduce(b: Builder, instruction: Instruction[Reduce]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    match x.op, inputs(x):
        # Σᵢ Σⱼ x = Σᵢⱼ x
        case Reduce(op.combinator, inner), (y,):
            return b.emit(Reduce(op.combinator, merged_axes(inner, op.axes, y.tensor.rank)), y)
        # x + … + x = n · x
        case _:
            return sum_of_equals(b, instruction)


def relax_dot(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    match u.op, inputs(u), v.op, inputs(v):
        # Aᵀ · Bᵀ = (B · A)ᵀ
        case Transpose(), (x,), Transpose(), (y,) if x.tensor.rank == y.tensor.rank == 2:
            return b.emit(Transpose(), b.emit(Dot(), y, x))
        case _:
            return None


def _with_numbers(instruction: Instruction) -> list[tuple[Value, float]]:
    """The other operand beside each that is a known number, of floats."""
    u, v = instruction.operands
    if not u.tensor.dtype.is_float:
        return []
    return [(x, float(n)) for x, n in ((u, number(v)), (v, number(u))) if n is not None]


def _with_inner_numbers(
    x: Value, op_class: type[Add] | type[Multiply]
) -> list[tuple[Value, float]]:
    producer = x.producer
    if producer is None or not isinstance(producer.op, op_class):
        return []
    return _with_numbers(producer)


FAST_MATH: Laws = {
    Negate: (relax_negate,),
    Add: (relax_add,),
    Subtract: (relax_subtract,),
    Multiply: (relax_multiply,),
    Divide: (relax_divide,),
    Exp: (relax_function,),
    Log: (relax_function,),
    Square: (relax_function,),
    Power: (relax_power,),
    Reduce: (relax_reduce,),
    Dot: (relax_dot,),
}
