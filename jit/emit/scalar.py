"""What an elementwise op means in LLVM, for any number of lanes.

1. `rule_of` an op makes, from its operands in registers (see `elements`), its result.
2. f16 and bf16 are computed in float; the result is rounded after every op, as the reference does.
3. Casts: numbers are rounded once, whatever the two types are; floats to integers saturate, NaN becomes 0;
   integers wrap; anything that is not 0 is true.

An op that `math.FUNCTIONS` has under its name needs nothing here; any other is in `_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from ...core.errors import InternalError
from ...core.ir.instruction import Op
from ...core.kernels.ops import Fma
from ...core.ops.arithmetic import FloorDivide, Modulo, Relu, StrongMultiply, TruncateDivide
from ...core.ops.bits import Reinterpret
from ...core.ops.bitwise import BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight
from ...core.ops.casting import DataTypeCast
from ...core.ops.comparison import (
    And,
    Equal,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqual,
    Or,
    Select,
)
from ...core.ops.forms import POLYNOMIAL
from ...core.ops.stop_gradient import StopGradient, StraightThrough
from ...core.types import F16, DType
from .division import divide_by_constant, modulo_by_constant
from .elements import memory_type, narrow_scalar, pack, quieted, register_type, rounded, unpack
from .math import FUNCTIONS
from .writer import FloatPredicate, FunctionWriter, IntegerPredicate, Register, constant

ScalarRule: TypeAlias = Callable[[FunctionWriter, Op, DType, DType, Sequence[Register]], Register]
"""(writer, op, element type of the first operand, of the result, operands) to the result."""


def write_scalar(
    w: FunctionWriter,
    op: Op,
    dtypes: Sequence[DType],
    result: DType,
    operands: Sequence[Register],
) -> Register:
    """The result of `op` in a register."""
    value = rule_of(type(op))(w, op, dtypes[0], result, operands)
    return value if op.is_exact else rounded(w, value, result)


def rule_of(op: type[Op]) -> ScalarRule:
    """What emits `op` in the body of a nest: a rule of its own, or the function of its name."""
    if op in _RULES:
        return _RULES[op]
    if op.name in FUNCTIONS:
        return _function
    raise InternalError(f"{op.name} cannot stand in the body of a nest")


def _function(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    if op.cost >= POLYNOMIAL:  # long enough to be shared by a program that has many of them
        return w.routine(op.name, operands, FUNCTIONS[op.name])
    return FUNCTIONS[op.name](w, *operands)


def _of_operands(emit: Callable[..., Register]) -> ScalarRule:
    """The rule of an op for which the registers say enough."""
    return lambda w, op, dtype, result, operands: emit(w, *operands)


def _comparison(floats: FloatPredicate, integers: IntegerPredicate) -> ScalarRule:
    def compare(w: FunctionWriter, x: Register, y: Register) -> Register:
        return w.fcmp(floats, x, y) if x.type.is_float else w.icmp(integers, x, y)

    return _of_operands(compare)


def _floor_divide(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    if dtype.is_float:
        return w.intrinsic("floor", operands[0].type, [_quotient(w, dtype, operands)])
    return divide_by_constant(w, *operands) or _function(w, op, dtype, result, operands)


def _truncate_divide(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    if dtype.is_float:
        return w.intrinsic("trunc", operands[0].type, [_quotient(w, dtype, operands)])
    return _function(w, op, dtype, result, operands)


def _quotient(w: FunctionWriter, dtype: DType, operands: Sequence[Register]) -> Register:
    """What is then cut to a whole number: the reference has f16 quotients, and float ones for bf16."""
    quotient = w.fdiv(*operands)
    return rounded(w, quotient, dtype) if dtype is F16 else quotient


def _modulo(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    return modulo_by_constant(w, *operands) or _function(w, op, dtype, result, operands)


def _select(w: FunctionWriter, x: Register, y: Register, condition: Register) -> Register:
    return w.select(condition, x, y)


def _relu(w: FunctionWriter, x: Register) -> Register:
    zero = constant(x.type, 0)
    below = w.fcmp("ole", x, zero) if x.type.is_float else w.icmp("sle", x, zero)
    return w.select(below, zero, x)


def _strong_multiply(w: FunctionWriter, u: Register, v: Register) -> Register:
    zero = constant(u.type, 0)
    kept = w.and_(w.fcmp("une", u, zero), w.fcmp("une", v, zero))
    return w.select(kept, w.fmul(u, v), zero)


def _shift_left(w: FunctionWriter, u: Register, v: Register) -> Register:
    """LLVM leaves open what a shift by too many bits is."""
    width = constant(u.type, u.type.bits)
    return w.select(w.icmp("ult", v, width), w.shl(u, v), constant(u.type, 0))


def _shift_right(w: FunctionWriter, u: Register, v: Register) -> Register:
    """By all bits but one, if by too many: what is left is the sign."""
    most = constant(u.type, u.type.bits - 1)
    return w.ashr(u, w.select(w.icmp("ult", v, most), v, most))


def _same(w: FunctionWriter, x: Register, *_: Register) -> Register:
    return x


def _cast(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    (x,) = operands
    scalar = register_type(result).scalar
    match dtype.kind, result.kind:
        case "float", "boolean":
            return w.fcmp("une", x, constant(x.type, 0))
        case "integer", "boolean":
            return w.icmp("ne", x, constant(x.type, 0))
        case "boolean", "boolean":
            return x
        case "boolean", "float":
            return w.uitofp(x, scalar)
        case "boolean", _:
            return w.zext(x, scalar)
        case "integer", "float":
            return _float_of_integer(w, x, result)
        case "float", "integer":
            return w.fptosi(x, scalar)
        case "integer", _:
            return _resized(w, x, dtype, result)
        case _:
            return _converted(w, x, dtype, result)


def _resized(w: FunctionWriter, x: Register, dtype: DType, result: DType) -> Register:
    scalar = register_type(result).scalar
    if result.bits == dtype.bits:
        return x
    return w.sext(x, scalar) if result.bits > dtype.bits else w.trunc(x, scalar)


def _float_of_integer(w: FunctionWriter, x: Register, result: DType) -> Register:
    """Rounded once; integers of 16 bits and less are floats already."""
    wide = register_type(result).scalar
    narrow = narrow_scalar(result)
    if narrow is None or x.type.bits <= 16:
        return rounded(w, w.sitofp(x, wide), result)
    return w.fpext(w.sitofp(x, narrow), wide)


def _converted(w: FunctionWriter, x: Register, dtype: DType, result: DType) -> Register:
    """Rounded once, also from f64 to f16 and bf16."""
    wide = register_type(result).scalar
    if x.type.scalar == wide:
        return rounded(w, x, result) if dtype != result else x
    if wide == "double":
        return w.fpext(x, wide)
    return w.fpext(w.fptrunc(x, narrow_scalar(result) or wide), wide)


def _reinterpret(
    w: FunctionWriter, op: Op, dtype: DType, result: DType, operands: Sequence[Register]
) -> Register:
    """By way of what is in memory, as f16 and bf16 are floats in registers."""
    (x,) = operands
    stored = quieted(w, pack(w, x, dtype), dtype)
    return unpack(w, quieted(w, w.bitcast(stored, memory_type(result).scalar), result), result)


_RULES: Final[Mapping[type[Op], ScalarRule]] = MappingProxyType(
    {
        FloorDivide: _floor_divide,
        TruncateDivide: _truncate_divide,
        Modulo: _modulo,
        LessThan: _comparison("olt", "slt"),
        LessThanOrEqual: _comparison("ole", "sle"),
        GreaterThan: _comparison("ogt", "sgt"),
        GreaterThanOrEqual: _comparison("oge", "sge"),
        Equal: _comparison("oeq", "eq"),
        NotEqual: _comparison("une", "ne"),
        And: _of_operands(FunctionWriter.and_),
        Or: _of_operands(FunctionWriter.or_),
        Not: _of_operands(FunctionWriter.not_),
        BitwiseAnd: _of_operands(FunctionWriter.and_),
        BitwiseOr: _of_operands(FunctionWriter.or_),
        BitwiseXor: _of_operands(FunctionWriter.xor),
        ShiftLeft: _of_operands(_shift_left),
        ShiftRight: _of_operands(_shift_right),
        Select: _of_operands(_select),
        Relu: _of_operands(_relu),
        StrongMultiply: _of_operands(_strong_multiply),
        Fma: _of_operands(FunctionWriter.fma),
        StopGradient: _of_operands(_same),
        StraightThrough: _of_operands(_same),
        DataTypeCast: _cast,
        Reinterpret: _reinterpret,
    }
)
"""The rules of ops that are not just a function of `math`; literals are constants of the plan."""
