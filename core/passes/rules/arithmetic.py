"""Laws of arithmetic that hold for every bit: for −0, ±∞, NaN, subnormal numbers, and wrapping integers.

What fails for some number is absent: x + 0 is not x when x is −0, x · 0 is not 0 when x is ∞, and
x − x is not 0 when x is NaN; integers have these laws.
"""

from __future__ import annotations

import math

from ...ir import Builder, Instruction, Value
from ...ops import (
    Abs,
    Add,
    Divide,
    FloorDivide,
    Maximum,
    Minimum,
    Modulo,
    Multiply,
    Negate,
    Power,
    Sign,
    Square,
    StrongMultiply,
    Subtract,
    TruncateDivide,
)
from ...ops.reduction import broadcast_to
from ...types import DType
from ..rewrite import Laws
from .patterns import (
    KnownNumber,
    filled,
    inputs,
    is_negative_zero,
    is_normal,
    is_positive_zero,
    made_by,
    number,
)


def simplify_negate(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match x.op, inputs(x):
        # −(−x) = x
        case Negate(), (y,):
            return y
        case _:
            return None


def simplify_abs(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match x.op, inputs(x):
        # ||x|| = |x|
        case Abs(), _:
            return x
        # |−x| = |x|
        case Negate(), (y,):
            return b.emit(Abs(), y)
        # |x²| = x², unless integers wrap around
        case Square(), _ if x.tensor.dtype.is_float:
            return x
        case _:
            return None


def simplify_sign(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    # sign(sign(x)) = sign(x)
    return x if made_by(x, Sign) else None


def simplify_square(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match x.op, inputs(x):
        # (−x)² = |x|² = x²
        case Negate() | Abs(), (y,):
            return b.emit(Square(), y)
        case _:
            return None


def simplify_add(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    # x + (−0) = x; of integers x + 0 = x
    if _adds_nothing(number(v), type.dtype):
        return broadcast_to(b, u, type.shape)
    if _adds_nothing(number(u), type.dtype):
        return broadcast_to(b, v, type.shape)
    # u + (−y) = u − y
    if operands := made_by(v, Negate):
        return b.emit(Subtract(), u, *operands)
    # (−x) + v = v − x
    if operands := made_by(u, Negate):
        return b.emit(Subtract(), v, *operands)
    return None


def simplify_subtract(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    # x − 0 = x
    if is_positive_zero(number(v)):
        return broadcast_to(b, u, type.shape)
    # −0 − x = −x; of integers 0 − x = −x
    if _adds_nothing(number(u), type.dtype):
        return b.emit(Negate(), broadcast_to(b, v, type.shape))
    # x − x = 0, of integers
    if u is v and type.dtype.is_integer:
        return filled(b, type, 0)
    # u − (−y) = u + y
    operands = made_by(v, Negate)
    return b.emit(Add(), u, *operands) if operands else None


def simplify_multiply(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    if u is v:
        # x · x = x²
        return b.emit(Square(), u)
    return _multiply_by_number(b, instruction, u, v) or _multiply_negated(b, u, v)


def simplify_strong_multiply(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    if u is v:
        # x ⊗ x = x², ⊗ being the strong product
        return b.emit(Square(), u)
    for x, other in ((u, v), (v, u)):
        n = number(other)
        # x ⊗ 0 = 0, also of ∞ and NaN
        if n == 0:
            return filled(b, type, 0)
        # x ⊗ n = x · n + 0, all zeros of which are +0; what is less than 1 might underflow to −0
        if n is not None and 1 <= abs(n) < math.inf:
            zero = filled(b, type.with_shape(()), 0)
            return b.emit(Add(), broadcast_to(b, b.emit(Multiply(), x, other), type.shape), zero)
    # (−x) ⊗ (−y) = x ⊗ y
    xs, ys = made_by(u, Negate), made_by(v, Negate)
    return b.emit(StrongMultiply(), *xs, *ys) if xs and ys else None


def _multiply_by_number(b: Builder, instruction: Instruction, u: Value, v: Value) -> Value | None:
    type = instruction.result.tensor
    for x, other in ((u, v), (v, u)):
        n = number(other)
        if n is None:
            continue
        match n:
            # x · 1 = x
            case 1:
                return broadcast_to(b, x, type.shape)
            # x · (−1) = −x
            case -1:
                return b.emit(Negate(), broadcast_to(b, x, type.shape))
            # x · 0 = 0, of integers
            case 0 if type.dtype.is_integer:
                return filled(b, type, 0)
            # (−x) · n = x · (−n)
            case float() if inner := made_by(x, Negate):
                return b.emit(Multiply(), *inner, filled(b, other.tensor, -n))
            case _:
                pass
    return None


def _multiply_negated(b: Builder, u: Value, v: Value) -> Value | None:
    # (−x) · (−y) = x · y
    xs, ys = made_by(u, Negate), made_by(v, Negate)
    return b.emit(Multiply(), *xs, *ys) if xs and ys else None


def simplify_divide(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    divisor = number(v)
    # x / 1 = x
    if divisor == 1:
        return broadcast_to(b, u, type.shape)
    # x / (−1) = −x
    if divisor == -1:
        return b.emit(Negate(), broadcast_to(b, u, type.shape))
    # x / 2ᵏ = x · 2⁻ᵏ
    if isinstance(divisor, float) and (inverse := exact_inverse(divisor, type.dtype)):
        return b.emit(Multiply(), u, filled(b, v.tensor, inverse))
    # (−x) / (−y) = x / y, unless integers wrap around
    xs, ys = made_by(u, Negate), made_by(v, Negate)
    return b.emit(Divide(), *xs, *ys) if xs and ys and type.dtype.is_float else None


def simplify_integer_division(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    # ⌊x / 1⌋ = x, of integers
    if type.dtype.is_integer and number(v) == 1:
        return broadcast_to(b, u, type.shape)
    return None


def simplify_modulo(b: Builder, instruction: Instruction) -> Value | None:
    _, v = instruction.operands
    type = instruction.result.tensor
    # x mod ±1 = 0, of integers
    return filled(b, type, 0) if type.dtype.is_integer and number(v) in (1, -1) else None


def simplify_extremum(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    # max(x, x) = min(x, x) = x
    return u if u is v else None


def simplify_power(b: Builder, instruction: Instruction) -> Value | None:
    x, exponent = instruction.operands
    type = instruction.result.tensor
    match number(exponent):
        # x⁰ = 1, also of NaN
        case 0:
            return filled(b, type, 1)
        # x¹ = x
        case 1:
            return broadcast_to(b, x, type.shape)
        # x² = x · x, which is rounded correctly, as not every power is
        case 2:
            return b.emit(Square(), broadcast_to(b, x, type.shape))
        case _:
            return None


def exact_inverse(n: float, dtype: DType) -> float | None:
    """1 / n for a power of two whose inverse is a normal number of `dtype`."""
    if math.frexp(n)[0] not in (0.5, -0.5):
        return None
    return 1 / n if is_normal(1 / n, dtype) else None


def _adds_nothing(n: KnownNumber | None, dtype: DType) -> bool:
    return is_negative_zero(n) or (dtype.is_integer and n == 0)


ARITHMETIC: Laws = {
    Negate: (simplify_negate,),
    Abs: (simplify_abs,),
    Sign: (simplify_sign,),
    Square: (simplify_square,),
    Add: (simplify_add,),
    Subtract: (simplify_subtract,),
    Multiply: (simplify_multiply,),
    StrongMultiply: (simplify_strong_multiply,),
    Divide: (simplify_divide,),
    TruncateDivide: (simplify_integer_division,),
    FloorDivide: (simplify_integer_division,),
    Modulo: (simplify_modulo,),
    Minimum: (simplify_extremum,),
    Maximum: (simplify_extremum,),
    Power: (simplify_power,),
}
