"""Register and memory types of element types, conversion between both, and the code of combinators.

| dtype    | memory         | register                                              |
|----------|----------------|-------------------------------------------------------|
| bool     | i8, 0 or 1     | i1                                                    |
| f16 bf16 | i16            | float, always a value that the narrow type can hold   |
| others   | themselves     | themselves                                            |

Memory of f16 and bf16 is never read as half or bfloat: where a machine lacks them, LLVM would take vectors of
them apart, and call functions that the process need not have.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...core.errors import InternalError
from ...core.ops.combinator import Combinator
from ...core.ops.literal import Literal
from ...core.types import DType, Kind
from .math.extremes import emit_max, emit_min
from .writer import (
    FunctionWriter,
    LLVMType,
    Reduction,
    Register,
    ScalarName,
    constant,
    constant_bits,
    llvm_type,
)

_REGISTERS: Final[MappingProxyType[str, ScalarName]] = MappingProxyType(
    {
        "bool": "i1",
        "i8": "i8",
        "i16": "i16",
        "i32": "i32",
        "i64": "i64",
        "f16": "float",
        "bf16": "float",
        "f32": "float",
        "f64": "double",
    }
)
_MEMORY: Final[MappingProxyType[str, ScalarName]] = MappingProxyType(
    {"bool": "i8", "f16": "i16", "bf16": "i16"}
)
_NARROW: Final[MappingProxyType[str, ScalarName]] = MappingProxyType(
    {"f16": "half", "bf16": "bfloat"}
)

_REDUCTIONS: Final[MappingProxyType[tuple[Combinator, Kind], Reduction]] = MappingProxyType(
    {
        (Combinator.ADD, "float"): "fadd",
        (Combinator.ADD, "integer"): "add",
        (Combinator.ADD, "boolean"): "or",
        (Combinator.MULTIPLY, "float"): "fmul",
        (Combinator.MULTIPLY, "integer"): "mul",
        (Combinator.MULTIPLY, "boolean"): "and",
        (Combinator.MIN, "float"): "fminimum",
        (Combinator.MIN, "integer"): "smin",
        (Combinator.MIN, "boolean"): "and",
        (Combinator.MAX, "float"): "fmaximum",
        (Combinator.MAX, "integer"): "smax",
        (Combinator.MAX, "boolean"): "or",
        (Combinator.AND, "boolean"): "and",
        (Combinator.OR, "boolean"): "or",
    }
)


def register_type(dtype: DType, lanes: int = 1) -> LLVMType:
    """The LLVM type of `lanes` elements in a register."""
    return llvm_type(_REGISTERS[dtype.name], lanes)


def memory_type(dtype: DType) -> LLVMType:
    """The LLVM type of an element in memory."""
    return llvm_type(_MEMORY.get(dtype.name, _REGISTERS[dtype.name]))


def narrow_scalar(dtype: DType) -> ScalarName | None:
    """The LLVM type of f16 and bf16 in memory; None for types that are computed in directly."""
    return _NARROW.get(dtype.name)


def element(dtype: DType, value: float, lanes: int = 1) -> Register:
    """A constant in a register, rounded to the element type."""
    if dtype.name in _NARROW:
        value = float(dtype.nearest(value))
    return constant(register_type(dtype, lanes), value)


def splat_element(literal: Literal) -> Register:
    """The one element of a literal, with every bit of a NaN."""
    dtype = literal.type.dtype
    if dtype.name in ("f32", "f64"):
        return constant_bits(register_type(dtype), int.from_bytes(literal.data, "little"))
    return element(dtype, literal.splat_value())


def unpack(w: FunctionWriter, stored: Register, dtype: DType) -> Register:
    """Convert a loaded value to the register type."""
    if dtype.name in _NARROW:
        return w.fpext(w.bitcast(stored, _NARROW[dtype.name]), "float")
    if dtype.kind == "boolean":
        return w.icmp("ne", stored, constant(stored.type, 0))
    return stored


def pack(w: FunctionWriter, value: Register, dtype: DType) -> Register:
    """Convert a register to the type in memory."""
    if dtype.name in _NARROW:
        return w.bitcast(w.fptrunc(value, _NARROW[dtype.name]), "i16")
    return w.zext(value, "i8") if dtype.kind == "boolean" else value


def quieted(w: FunctionWriter, stored: Register, dtype: DType) -> Register:
    """Memory of f16 or bf16 whose signaling NaNs are quiet: conversions do that on most ways, not on all."""
    if dtype.name not in _NARROW:
        return stored
    quiet = dtype.quiet_bit
    magnitude = w.and_(stored, constant(stored.type, 0x7FFF))
    is_nan = w.icmp("ugt", magnitude, constant(stored.type, 0x8000 - 2 * quiet))
    return w.select(is_nan, w.or_(stored, constant(stored.type, quiet)), stored)


def rounded(w: FunctionWriter, value: Register, dtype: DType) -> Register:
    """A float in a register, rounded to f16 or bf16; other types are already right."""
    if dtype.name not in _NARROW:
        return value
    return w.fpext(w.fptrunc(value, _NARROW[dtype.name]), "float")


def combine(
    w: FunctionWriter, combinator: Combinator, dtype: DType, total: Register, x: Register
) -> Register:
    """The running total joined with one more value; f16 and bf16 totals are not rounded here."""
    match reduction(combinator, dtype):
        case "fadd":
            return w.fadd(total, x)
        case "fmul":
            return w.fmul(total, x)
        case "fminimum":
            return emit_min(w, total, x)
        case "fmaximum":
            return emit_max(w, total, x)
        case "add":
            return w.add(total, x)
        case "mul":
            return w.mul(total, x)
        case "smin":
            return w.smin(total, x)
        case "smax":
            return w.smax(total, x)
        case "and":
            return w.and_(total, x)
        case _:
            return w.or_(total, x)


def reduction(combinator: Combinator, dtype: DType) -> Reduction:
    """How LLVM calls the combinator for this element type."""
    found = _REDUCTIONS.get((combinator, dtype.kind))
    if found is None:
        raise InternalError(f"{combinator} does not combine {dtype}")
    return found
