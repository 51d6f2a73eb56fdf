"""LLVM types, registers and constants, as small values that carry their text.

A `Register` is anything an instruction can name: a parameter, a result, a global or a constant
written in place. All vectors have a fixed number of lanes; a type with one lane is the scalar
itself.
"""

import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import Literal

from ...core.lazy_dataclass import dataclass

ScalarName = Literal["i1", "i8", "i16", "i32", "i64", "half", "bfloat", "float", "double", "ptr"]

XMM_BYTES, YMM_BYTES, ZMM_BYTES = 16, 32, 64
"""Of a vector register: of SSE2 and NEON, which every CPU has; of AVX2; of AVX-512. LLVM divides what is wider than
those of the CPU."""

_SUFFIXES: dict[ScalarName, str] = {
    "half": "f16",
    "bfloat": "bf16",
    "float": "f32",
    "double": "f64",
    "ptr": "p0",
}
# as LLVM stores them; pointers are those of 64-bit machines
_BITS: dict[ScalarName, int] = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
    "ptr": 64,
}


@dataclass(frozen=True, slots=True)
class LLVMType:
    """A scalar, or a vector of `lanes` scalars. Made by `llvm_type`, which shares them."""

    scalar: ScalarName
    lanes: int
    text: str
    suffix: str

    @property
    def bits(self) -> int:
        """Width of one lane in bits."""
        return _BITS[self.scalar]

    @property
    def size(self) -> int:
        """Bytes of the whole value in memory; a lane of `i1` counts as a byte."""
        return max(self.bits // 8, 1) * self.lanes

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating point numbers."""
        return self.scalar in ("half", "bfloat", "float", "double")

    @property
    def is_integer(self) -> bool:
        """Whether the lanes are integers (`i1` included)."""
        return self.scalar[0] == "i"

    def with_lanes(self, lanes: int) -> "LLVMType":
        """The type of `lanes` such scalars."""
        return llvm_type(self.scalar, lanes)

    def with_scalar(self, scalar: ScalarName) -> "LLVMType":
        """The type with as many lanes of another scalar."""
        return llvm_type(scalar, self.lanes)


def llvm_type(scalar: ScalarName, lanes: int = 1) -> LLVMType:
    """The type `scalar`, or `<lanes x scalar>`."""
    return _shared(scalar, lanes)


@cache
def _shared(scalar: ScalarName, lanes: int) -> LLVMType:
    suffix = _SUFFIXES.get(scalar, scalar)
    if lanes == 1:
        return LLVMType(scalar, 1, scalar, suffix)
    return LLVMType(scalar, lanes, f"<{lanes} x {scalar}>", f"v{lanes}{suffix}")


I1 = llvm_type("i1")
I8 = llvm_type("i8")
I16 = llvm_type("i16")
I32 = llvm_type("i32")
I64 = llvm_type("i64")
HALF = llvm_type("half")
FLOAT = llvm_type("float")
DOUBLE = llvm_type("double")
PTR = llvm_type("ptr")


_FLOAT = re.compile(r"(?:splat \((?:float|double) )?0x([0-9A-F]{16})\)?")
"""How `constant` writes floats: LLVM has those of both types as doubles."""


@dataclass(frozen=True, slots=True)
class Register:
    """An operand: what the text of an instruction calls it (`%7`, `@table`, `42`), and its type."""

    text: str
    type: LLVMType

    @property
    def typed(self) -> str:
        """Type and name, as operands of calls and stores are written."""
        return f"{self.type.text} {self.text}"

    @property
    def is_constant(self) -> bool:
        """Whether the value is known when the text is written (a literal, or the address of a global)."""
        return self.text[0] != "%"

    @property
    def number(self) -> float | None:
        """The float in every lane of what `constant` made; None of all else.

        >>> constant(llvm_type("double", 4), -0.5).number
        -0.5
        """
        found = _FLOAT.fullmatch(self.text)
        if found is None:
            return None
        number: float = struct.unpack(">d", bytes.fromhex(found[1]))[0]
        return number


def constant(type: LLVMType, value: float) -> Register:
    """A literal, in every lane. Floats are written exactly, once rounded to the type.

    >>> constant(FLOAT, float("-inf")).typed
    'float 0xFFF0000000000000'
    >>> constant(llvm_type("i32", 4), 7).typed
    '<4 x i32> splat (i32 7)'
    """
    text = _literal(type.scalar, value)
    return Register(text if type.lanes == 1 else f"splat ({type.scalar} {text})", type)


def constant_bits(type: LLVMType, bits: int) -> Register:
    """The float or double with these bits: every NaN as it is.

    >>> constant_bits(FLOAT, 0x7F800001).typed
    'float 0x7FF0000020000000'
    """
    text = f"0x{bits:016X}"
    if type.scalar == "float":
        value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
        text = _double_literal(value)
        if value != value:  # LLVM writes it as a double; a conversion would make it quiet
            text = f"0x{(bits >> 31 << 63) | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    return Register(text if type.lanes == 1 else f"splat ({type.scalar} {text})", type)


def constants(scalar: ScalarName, values: Sequence[float]) -> Register:
    """A literal vector of given lanes.

    >>> constants("i32", [0, 1]).typed
    '<2 x i32> <i32 0, i32 1>'
    """
    if len(values) == 1:
        return constant(llvm_type(scalar), values[0])
    lanes = ", ".join(f"{scalar} {_literal(scalar, value)}" for value in values)
    return Register(f"<{lanes}>", llvm_type(scalar, len(values)))


def poison(type: LLVMType) -> Register:
    """A value that nobody may look at: what a lane holds before it is written."""
    return Register("poison", type)


def _literal(scalar: ScalarName, value: float) -> str:
    match scalar:
        case "i1":
            return "true" if value else "false"
        case "double":
            return _double_literal(float(value))
        case "float":
            return _double_literal(_round_to_float(float(value)))
        case "half":
            return f"0xH{_half_bits(float(value)):04X}"
        case "bfloat":
            return f"0xR{_bfloat_bits(float(value)):04X}"
        case "ptr":
            if value != 0:
                raise ValueError(f"the only pointer literal is null, not {value}")
            return "null"
        case _:
            return str(_wrap(int(value), _BITS[scalar]))


def _double_literal(value: float) -> str:
    return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"


def _round_to_float(value: float) -> float:
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:  # beyond the largest float by half a unit or more
        return float("inf") if value > 0 else float("-inf")
    return rounded


def _half_bits(value: float) -> int:
    try:
        return int.from_bytes(struct.pack(">e", value))
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _bfloat_bits(value: float) -> int:
    """Round to nearest even; the way over float is made exact by rounding to odd there."""
    if value != value:
        return 0x7FC0
    rounded = _round_to_float(value)
    bits = int.from_bytes(struct.pack(">f", rounded))
    if rounded != value:
        bits = (bits - 1 if abs(rounded) > abs(value) else bits) | 1
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _wrap(value: int, bits: int) -> int:
    """The two's complement reading of the low bits: 255 as `i8` is -1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def rounds_of(start: Register, stop: Register, step: Register) -> int | None:
    """How often a loop runs, where constants say it."""
    if start.is_constant and stop.is_constant and step.is_constant:
        return max(0, -((int(start.text) - int(stop.text)) // int(step.text)))
    return None


def runs_at_least_once(start: Register, stop: Register) -> bool:
    """Whether constants say that a loop does."""
    numbers = start.text.lstrip("-").isdecimal() and stop.text.lstrip("-").isdecimal()
    return numbers and int(start.text) < int(stop.text)
