"""Straight-line LLVM instructions, one method each; results are numbered as they are written.

Every method takes registers of equal type and works on any number of lanes. None of the text
carries fast-math flags unless a method says so, so what is written is what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import lru_cache
from typing import Literal

from .values import I32, PTR, LLVMType, Register, ScalarName, constant, constants, poison

IntegerPredicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FloatPredicate = Literal[
    "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"
]
Reduction = Literal[
    "add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin",
    "fadd", "fmul", "fmax", "fmin", "fmaximum", "fminimum",
]  # fmt: skip


def _binary(opcode: str, text: str) -> Callable[[InstructionWriter, Register, Register], Register]:
    """The method for an instruction of two operands whose result has their type."""

    def write(self: InstructionWriter, x: Register, y: Register) -> Register:
        return self.value(x.type, f"{opcode} {x.type.text} {x.text}, {y.text}")

    write.__doc__ = text
    return write


def _intrinsic(name: str, text: str) -> Callable[[InstructionWriter, Register, Register], Register]:
    """The method for an intrinsic of two operands whose result has their type."""

    def write(self: InstructionWriter, x: Register, y: Register) -> Register:
        return self.intrinsic(name, x.type, [x, y])

    write.__doc__ = text
    return write


class InstructionWriter:
    """Writes instructions at the end of the current block."""

    __slots__ = ("_counter", "_declarations", "has_fma", "lines", "scalef")

    def __init__(
        self, declarations: MutableMapping[str, str], *, scalef: bool = False, fma: bool = False
    ) -> None:
        self.lines: list[str] = []
        self.scalef = scalef
        self.has_fma = fma
        self._counter = 0
        self._declarations = declarations

    # The three ways to write a line; all else is built on them.

    def value(self, type: LLVMType, text: str) -> Register:
        """Write `%n = text` and return `%n`; the way to any instruction that has no method here."""
        name = f"%{self._counter}"
        self._counter += 1
        self.lines.append(f"  {name} = {text}")
        return Register(name, type)

    def line(self, text: str) -> None:
        """Write an instruction without result."""
        self.lines.append("  " + text)

    def declare(self, name: str, result: LLVMType | None, parameters: Sequence[LLVMType]) -> None:
        """Make sure that the module declares the external function or intrinsic `name`."""
        if name not in self._declarations:
            inside = ", ".join(parameter.text for parameter in parameters)
            self._declarations[name] = f"declare {_text(result)} @{name}({inside})"

    # Arithmetic.

    fadd = _binary("fadd", "x + y of floats.")
    fsub = _binary("fsub", "x - y of floats.")
    fmul = _binary("fmul", "x · y of floats.")
    fdiv = _binary("fdiv", "x / y of floats, correctly rounded.")

    def fneg(self, x: Register) -> Register:
        """The sign flipped, of nan and zeros too."""
        return self.value(x.type, f"fneg {x.typed}")

    def fabs(self, x: Register) -> Register:
        """The sign cleared, of nan and zeros too."""
        return self.intrinsic("fabs", x.type, [x])

    def fma(self, x: Register, y: Register, z: Register) -> Register:
        """x · y + z with one rounding; for targets with fma (`has_fma`), elsewhere a slow call per lane."""
        return self.intrinsic("fma", x.type, [x, y, z])

    def multiply_add(self, x: Register, y: Register, z: Register) -> Register:
        """x · y + z, with one rounding where that is an instruction of the target, else with two."""
        return self.fma(x, y, z) if self.has_fma else self.fadd(self.fmul(x, y), z)

    def sqrt(self, x: Register) -> Register:
        """√x, correctly rounded."""
        return self.intrinsic("sqrt", x.type, [x])

    copysign = _intrinsic("copysign", "The magnitude of x with the sign of y.")
    add = _binary("add", "x + y of integers, wrapping.")
    sub = _binary("sub", "x - y of integers, wrapping.")
    mul = _binary("mul", "x · y of integers, wrapping.")
    sdiv = _binary(
        "sdiv",
        "x / y truncated, signed; traps on 0 and on the least integer by -1 (`math` has a safe one).",
    )
    and_ = _binary("and", "Bitwise and.")
    or_ = _binary("or", "Bitwise or.")
    xor = _binary("xor", "Bitwise exclusive or.")

    def not_(self, x: Register) -> Register:
        """Every bit flipped; the logical not of `i1`."""
        return self.xor(x, constant(x.type, -1))

    shl = _binary("shl", "x shifted left; y must be less than the width.")
    lshr = _binary("lshr", "x shifted right, zeros coming in; y must be less than the width.")
    ashr = _binary("ashr", "x shifted right, the sign coming in; y must be less than the width.")

    def ldexp(self, x: Register, exponent: Register) -> Register:
        """x · 2ⁿ with one rounding, n of `i32`; for targets with `scalef`, elsewhere a slow call."""
        name = f"llvm.ldexp.{x.type.suffix}.{exponent.type.suffix}"
        return self.call(name, x.type, [x, exponent])

    smin = _intrinsic("smin", "The lesser signed integer.")
    smax = _intrinsic("smax", "The greater signed integer.")

    # Comparison and choice.

    def icmp(self, predicate: IntegerPredicate, x: Register, y: Register) -> Register:
        """Compare integers or pointers."""
        mask = x.type.with_scalar("i1")
        return self.value(mask, f"icmp {predicate} {x.type.text} {x.text}, {y.text}")

    def fcmp(self, predicate: FloatPredicate, x: Register, y: Register) -> Register:
        """Compare floats: `o…` is false on nan, `u…` true."""
        mask = x.type.with_scalar("i1")
        return self.value(mask, f"fcmp {predicate} {x.type.text} {x.text}, {y.text}")

    def select(self, condition: Register, x: Register, y: Register) -> Register:
        """x where the condition holds, else y; a scalar condition chooses whole vectors."""
        return self.value(x.type, f"select {condition.typed}, {x.typed}, {y.typed}")

    # Casts that are one instruction; `conversions` has those that are safe for every value and float type.

    def cast(self, opcode: str, x: Register, scalar: ScalarName) -> Register:
        """Write the LLVM cast `opcode` to lanes of `scalar`."""
        type = x.type.with_scalar(scalar)
        return self.value(type, f"{opcode} {x.typed} to {type.text}")

    def sext(self, x: Register, scalar: ScalarName) -> Register:
        """A wider signed integer."""
        return self.cast("sext", x, scalar)

    def zext(self, x: Register, scalar: ScalarName) -> Register:
        """A wider unsigned integer; 0 or 1 of an `i1`."""
        return self.cast("zext", x, scalar)

    def trunc(self, x: Register, scalar: ScalarName) -> Register:
        """The low bits of an integer."""
        return self.cast("trunc", x, scalar)

    def bitcast(self, x: Register, scalar: ScalarName) -> Register:
        """The same bits read as another scalar of the same width; x itself if it is that scalar.

        LLVM 22.1 gets loops wrong around which a value is passed on by a bitcast to its own type.
        """
        return x if x.type.scalar == scalar else self.cast("bitcast", x, scalar)

    def ptrtoint(self, x: Register) -> Register:
        """The address as `i64`."""
        return self.cast("ptrtoint", x, "i64")

    def inttoptr(self, x: Register) -> Register:
        """The pointer to an `i64` address."""
        return self.cast("inttoptr", x, "ptr")

    def fptosi(self, x: Register, scalar: ScalarName) -> Register:
        """Toward zero; out of range saturates and nan gives 0, so never poison."""
        x = self._at_least_float(x)
        type = x.type.with_scalar(scalar)
        name = f"llvm.fptosi.sat.{type.suffix}.{x.type.suffix}"
        return self.call(name, type, [x])

    def fptosi_in_range(self, x: Register, scalar: ScalarName) -> Register:
        """Toward zero, for values known to fit: one instruction, poison otherwise."""
        return self.cast("fptosi", x, scalar)

    def sitofp(self, x: Register, scalar: ScalarName) -> Register:
        """The nearest float of a signed integer."""
        return self._from_integer("sitofp", x, scalar)

    def uitofp(self, x: Register, scalar: ScalarName) -> Register:
        """The nearest float of an unsigned integer; 0.0 or 1.0 of an `i1`."""
        return self._from_integer("uitofp", x, scalar)

    def fpext(self, x: Register, scalar: ScalarName) -> Register:
        """A wider float type, exact. bfloat goes by shifting bits, without a library call on any machine."""
        if x.type.scalar == "bfloat":
            wide = self.zext(self.bitcast(x, "i16"), "i32")
            x = self.bitcast(self.shl(wide, constant(wide.type, 16)), "float")
        return x if x.type.scalar == scalar else self.cast("fpext", x, scalar)

    def fptrunc(self, x: Register, scalar: ScalarName) -> Register:
        """The nearest number of a narrower float type, ties to even; nan stays nan. No library calls."""
        if scalar == "float":
            return self.cast("fptrunc", x, scalar)
        if x.type.scalar == "double":
            x = self._round_to_odd_float(x)
        return self._bfloat_of_float(x) if scalar == "bfloat" else self.cast("fptrunc", x, scalar)

    def _at_least_float(self, x: Register) -> Register:
        return self.fpext(x, "float") if x.type.scalar in ("half", "bfloat") else x

    def _from_integer(self, opcode: str, x: Register, scalar: ScalarName) -> Register:
        if scalar not in ("half", "bfloat"):
            return self.cast(opcode, x, scalar)
        if x.type.bits > 32:
            x = self._round_to_odd_integer(x)
        return self.fptrunc(self.cast(opcode, x, "double"), scalar)

    def _bfloat_of_float(self, x: Register) -> Register:
        """Add half a unit below the bits that stay (and the odd bit, for ties); quiet a nan instead."""
        bits = self.bitcast(x, "i32")
        odd = self.and_(self.lshr(bits, constant(bits.type, 16)), constant(bits.type, 1))
        rounded = self.add(bits, self.add(odd, constant(bits.type, 0x7FFF)))
        quiet = self.or_(bits, constant(bits.type, 0x400000))
        bits = self.select(self.fcmp("uno", x, x), quiet, rounded)
        high = self.trunc(self.lshr(bits, constant(bits.type, 16)), "i16")
        return self.bitcast(high, "bfloat")

    def _round_to_odd_float(self, x: Register) -> Register:
        """double to float for a second rounding to be right: truncated, last bit set if inexact."""
        nearest = self.cast("fptrunc", x, "float")
        back = self.cast("fpext", nearest, "double")
        bits = self.bitcast(nearest, "i32")
        too_large = self.zext(self.fcmp("ogt", self.fabs(back), self.fabs(x)), "i32")
        inexact = self.zext(self.fcmp("one", back, x), "i32")
        return self.bitcast(self.or_(self.sub(bits, too_large), inexact), "float")

    def _round_to_odd_integer(self, x: Register) -> Register:
        """i64 with at most 53 significant bits: beyond ±2⁵³ truncated to a multiple of 2¹¹, odd if inexact."""
        dropped = self.and_(x, constant(x.type, 0x7FF))
        inexact = self.and_(self.add(dropped, constant(x.type, 0x7FF)), constant(x.type, 0x800))
        odd = self.or_(self.sub(x, dropped), inexact)
        small = self.icmp("ult", self.add(x, constant(x.type, 1 << 53)), constant(x.type, 1 << 54))
        return self.select(small, x, odd)

    # Memory.

    def gep(self, base: Register, element: LLVMType, index: Register) -> Register:
        """The address of element `index` (an `i64`, scalar or one per lane) of an array of `element`."""
        type = PTR.with_lanes(max(base.type.lanes, index.type.lanes))
        return self.value(
            type, f"getelementptr inbounds {element.text}, {base.typed}, {index.typed}"
        )

    def offset(self, base: Register, bytes: int) -> Register:
        """The address a constant number of bytes further; the base itself for 0."""
        if bytes == 0:
            return base
        return self.value(base.type, f"getelementptr inbounds i8, {base.typed}, i64 {bytes}")

    def load(
        self, pointer: Register, type: LLVMType, *, align: int | None = None, volatile: bool = False
    ) -> Register:
        """Read a value; aligned to its scalar unless said otherwise. Bools are `i8` in memory.

        Of what is `volatile` LLVM knows nothing, even if the memory is constant.
        """
        align = align or max(type.bits // 8, 1)
        opcode = "load volatile" if volatile else "load"
        return self.value(type, f"{opcode} {type.text}, {pointer.typed}, align {align}")

    def store(
        self,
        value: Register,
        pointer: Register,
        *,
        align: int | None = None,
        volatile: bool = False,
        nontemporal: bool = False,
    ) -> None:
        """Write a value, aligned as `load` expects it; what is `nontemporal` stays in no cache."""
        align = align or max(value.type.bits // 8, 1)
        opcode = "store volatile" if volatile else "store"
        hint = ", !nontemporal !{i32 1}" if nontemporal else ""
        self.line(f"{opcode} {value.typed}, {pointer.typed}, align {align}{hint}")

    def masked_load(
        self,
        pointer: Register,
        mask: Register,
        otherwise: Register,
    ) -> Register:
        """Read only the lanes whose mask is set; the others are not touched, but `otherwise`."""
        type = otherwise.type
        aligned = f"ptr align {max(type.bits // 8, 1)} {pointer.text}"
        name = f"llvm.masked.load.{type.suffix}.p0"
        self.declare(name, type, [PTR, mask.type, type])
        return self.value(
            type, f"call {type.text} @{name}({aligned}, {mask.typed}, {otherwise.typed})"
        )

    def masked_store(self, value: Register, pointer: Register, mask: Register) -> None:
        """Write only the lanes whose mask is set, which LLVM must not know: see Note [Stores under constant masks]."""
        if mask.is_constant:
            raise ValueError(f"a store under the constant mask {mask.text}")
        type = value.type
        aligned = f"ptr align {max(type.bits // 8, 1)} {pointer.text}"
        name = f"llvm.masked.store.{type.suffix}.p0"
        self.declare(name, None, [type, PTR, mask.type])
        self.line(f"call void @{name}({value.typed}, {aligned}, {mask.typed})")

    def gather(
        self,
        pointers: Register,
        type: LLVMType,
        *,
        mask: Register | None = None,
        otherwise: Register | None = None,
    ) -> Register:
        """Read each lane from its own address, where the mask is set."""
        mask = mask or constant(type.with_scalar("i1"), 1)
        otherwise = otherwise or poison(type)
        name = f"llvm.masked.gather.{type.suffix}.{pointers.type.suffix}"
        return self.call(name, type, [pointers, mask, otherwise])

    # Lanes.

    def extract(self, x: Register, lane: int | Register) -> Register:
        """One lane of a vector; a scalar is its own only lane."""
        if x.type.lanes == 1:
            return x
        index = lane.typed if isinstance(lane, Register) else f"i32 {lane}"
        return self.value(x.type.with_lanes(1), f"extractelement {x.typed}, {index}")

    def insert(self, x: Register, element: Register, lane: int | Register) -> Register:
        """The vector with one lane replaced."""
        if x.type.lanes == 1:
            return element
        index = lane.typed if isinstance(lane, Register) else f"i32 {lane}"
        return self.value(x.type, f"insertelement {x.typed}, {element.typed}, {index}")

    def splat(self, x: Register, lanes: int) -> Register:
        """A scalar in every lane."""
        if lanes == x.type.lanes:
            return x
        type = x.type.with_lanes(lanes)
        if x.is_constant and x.text[0] != "@":
            return Register(f"splat ({x.typed})", type)
        return self.shuffle(self.insert(poison(type), x, 0), None, [0] * lanes)

    def subvector(self, x: Register, first: int, count: int) -> Register:
        """The lanes `first` … `first + count - 1`; a scalar if that is one."""
        if count == x.type.lanes:
            return x
        return (
            self.extract(x, first)
            if count == 1
            else self.shuffle(x, None, range(first, first + count))
        )

    def shuffle(self, x: Register, y: Register | None, lanes: Sequence[int]) -> Register:
        """Lanes of x and y chosen by constants: 0…n-1 are of x, n…2n-1 of y, -1 is any."""
        type = x.type.with_lanes(len(lanes))
        second = y if y is not None else poison(x.type)
        mask = _shuffle_mask(tuple(lanes))
        return self.value(type, f"shufflevector {x.typed}, {second.typed}, {mask}")

    def lane_numbers(self, scalar: ScalarName, lanes: int) -> Register:
        """0, 1, 2, … in the lanes, a constant."""
        return constants(scalar, range(lanes))

    def reduce(self, reduction: Reduction, x: Register) -> Register:
        """All lanes as one. Float sums and products pair lanes as a tree, the same on every run.

        `fmax` and `fmin` pass over nan, `fmaximum` and `fminimum` keep it.
        """
        if x.type.lanes == 1:
            return x
        type = x.type.with_lanes(1)
        name = f"llvm.vector.reduce.{reduction}.{x.type.suffix}"
        if reduction not in ("fadd", "fmul"):
            return self.call(name, type, [x])
        start = constant(type, -0.0 if reduction == "fadd" else 1.0)
        self.declare(name, type, [type, x.type])
        return self.value(type, f"call reassoc {type.text} @{name}({start.typed}, {x.typed})")

    # Calls.

    def call(self, name: str, result: LLVMType, arguments: Sequence[Register]) -> Register:
        """Call a function by name, be it of this module, of another or of the process."""
        self.declare(name, result, [argument.type for argument in arguments])
        inside = ", ".join(argument.typed for argument in arguments)
        return self.value(result, f"call {result.text} @{name}({inside})")

    def call_void(self, name: str, arguments: Sequence[Register], *, is_rare: bool = False) -> None:
        """Call a function without result; LLVM lays a rare call out away from the usual path."""
        self.declare(name, None, [argument.type for argument in arguments])
        inside = ", ".join(argument.typed for argument in arguments)
        self.line(f"call void @{name}({inside}){' cold' if is_rare else ''}")

    def call_pointer(
        self, function: Register, result: LLVMType, arguments: Sequence[Register]
    ) -> Register:
        """Call the function at an address."""
        inside = ", ".join(argument.typed for argument in arguments)
        return self.value(result, f"call {result.text} {function.text}({inside})")

    def prefetch(self, address: Register) -> None:
        """Bring the cache line at an address, which may lie anywhere, to the nearest cache."""
        zero, most = constant(I32, 0), constant(I32, 3)
        data = constant(I32, 1)
        self.call_void("llvm.prefetch.p0", [address, zero, most, data])

    def intrinsic(self, name: str, result: LLVMType, arguments: Sequence[Register]) -> Register:
        """Call `llvm.<name>.<suffix>`, overloaded on the type of its result alone."""
        return self.call(f"llvm.{name}.{result.suffix}", result, arguments)


@lru_cache(maxsize=512)
def _shuffle_mask(lanes: tuple[int, ...]) -> str:
    """The constant that says which lanes a shuffle takes."""
    type = f"<{len(lanes)} x i32>"
    if not any(lanes):
        return f"{type} zeroinitializer"
    chosen = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes)
    return f"{type} <{chosen}>"


def _text(type: LLVMType | None) -> str:
    return "void" if type is None else type.text
