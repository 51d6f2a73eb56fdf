"""A scheduled function as LLVM text: the kernel `i64 @NAME(ptr inputs…, ptr outputs…, ptr arena)`.

1. Every value gets an address: a parameter, a constant, an output, or an offset into the arena; `shapeCast`
   is the same address.  Inputs are aligned to their elements, all else to 64 bytes.
2. Instructions are written in order, consecutive nests together (groups share a loop).
3. The kernel returns 0, or the number of the check that failed (see `checks`).

Constants of more than a few kilobytes are not part of the text: they are symbols, whose data `Program`
keeps.  So are the functions of the BLAS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...core.errors import InternalError
from ...core.ir.graph import Instruction, Value
from ...core.ir.module import Function
from ...core.ops.aggregate import Aggregate
from ...core.ops.literal import Literal
from ...core.ops.movement import ShapeCast
from ...core.ops.terminators import Return
from ...core.schedule.ops import Gemm, Loops, Place, ScheduledScan
from ...core.schedule.plan import arena_bytes, places_of, returned_values
from ...core.types import Array
from ..runtime.blas import Blas, find_blas
from .checks import Checks
from .library import SYMBOL, write_gemm
from .memory import NOTHING, define_nothing
from .nest import write_nests
from .plan import splat_read
from .scan import write_scan
from .steps import CheckSite
from .writer import I64, PTR, ModuleWriter, Parameter, Register, constant

INLINE_BYTES: Final = 4096
"""Constants up to this size stand in the text."""
_ALIGNMENT: Final = 64


@dataclass(frozen=True, eq=False)
class Program:
    """What a kernel that has been written needs besides its text.

    `symbols` are the addresses to link it with; they stay good while the program is referenced, which
    `data` sees to.  `sites[n - 1]` is the check that a result of n speaks of.
    """

    name: str
    symbols: Mapping[str, int]
    sites: tuple[CheckSite, ...]
    arena_bytes: int
    data: tuple[Array, ...]


def emit_program(
    module: ModuleWriter, function: Function, name: str, *, blas: Blas | None = None
) -> Program:
    """Write the kernel `name` of a function in stage schedule into `module`.

    Matrix products call `blas`, by default that of this process.
    """
    return _ProgramWriter(module, function, name, blas).write()


class _ProgramWriter:
    """Writes one kernel; knows the address of every value."""

    def __init__(
        self, module: ModuleWriter, function: Function, name: str, blas: Blas | None
    ) -> None:
        self.function = function
        self.name = name
        self.blas = blas
        self.returned = returned_values(function.entry)
        self.module = module
        define_nothing(self.module)
        inputs = [
            Parameter(PTR, f"noalias readonly align {p.tensor.dtype.bytes}")
            for p in function.parameters
        ]
        outputs = [Parameter(PTR, f"noalias align {r.tensor.dtype.bytes}") for r in self.returned]
        arena = Parameter(PTR, f"noalias align {_ALIGNMENT}")
        self.w = self.module.function(name, [*inputs, *outputs, arena], I64)
        self.addresses: dict[Value, Register] = dict(
            zip(function.parameters, self.w.parameters, strict=False)
        )
        self.outputs = self.w.parameters[len(inputs) : -1]
        self.arena = self.w.parameters[-1]
        self.checks = Checks()
        self.symbols: dict[str, int] = {}
        self.data: list[Array] = []

    def write(self) -> Program:
        pending: list[tuple[Instruction, Sequence[Register]]] = []
        for instruction in self.function.entry.instructions:
            if isinstance(instruction.op, Loops):
                pending.append((instruction, self._bases(instruction)))
                continue
            if not isinstance(instruction.op, ShapeCast | Literal):
                write_nests(self.w, pending, self.checks)
                pending = []
            self._write(instruction)
        self.w.ret(constant(I64, 0))
        self.checks.write_failures(self.w, self.arena)
        return Program(
            self.name,
            self.symbols,
            tuple(self.checks.sites),
            arena_bytes(self.function),
            tuple(self.data),
        )

    def _write(self, instruction: Instruction) -> None:
        match instruction.op:
            case ShapeCast():
                self.addresses[instruction.result] = self._address(instruction.operands[0])
            case Gemm() as op:
                self._write_gemm(instruction, op)
            case ScheduledScan() as op:
                bases = self._bases(instruction)
                write_scan(self.w, op, instruction.operands[0].tensor, bases)
            case Literal() | Aggregate() | Return():
                pass
            case op:
                raise InternalError(f"{op.name} cannot stand in stage schedule")

    def _write_gemm(self, instruction: Instruction, op: Gemm) -> None:
        blas = self.blas or find_blas()
        if blas is None:
            raise InternalError("the program has matrix products, and there is no BLAS")
        for name, address in blas.addresses.items():
            self.symbols[SYMBOL + name] = address
        a, b = (operand.tensor for operand in instruction.operands)
        write_gemm(self.w, op, a, b, self._bases(instruction), blas)

    def _bases(self, instruction: Instruction) -> list[Register]:
        """The addresses of the operands and then of the results, which are given theirs."""
        places = places_of(instruction.op)
        for result, place in zip(instruction.results, places, strict=True):
            self.addresses[result] = self._place(place)
        return [
            *(self._operand(instruction, number) for number in range(len(instruction.operands))),
            *(self.addresses[result] for result in instruction.results),
        ]

    def _operand(self, instruction: Instruction, number: int) -> Register:
        """The address of an operand; any for a splat whose one element stands in the text of the nest."""
        op, value = instruction.op, instruction.operands[number]
        if isinstance(op, Loops) and splat_read(value, op.accesses[number]):
            return NOTHING
        return self._address(value)

    def _address(self, value: Value) -> Register:
        if value not in self.addresses:
            if not isinstance(value.op, Literal):
                raise InternalError(f"a value of type {value.type} is used before it is made")
            self.addresses[value] = self._constant(value.op)
        return self.addresses[value]

    def _place(self, place: Place) -> Register:
        if place.space == "output":
            return self.outputs[place.offset]
        return self.w.offset(self.arena, place.offset)

    def _constant(self, literal: Literal) -> Register:
        """The address of all elements, a splat written out."""
        name = f"{self.name}.constant.{len(self.addresses)}"
        count = literal.type.size if literal.is_splat else 1
        if literal.type.bytes <= INLINE_BYTES:
            return self.module.data(name, literal.data * count)
        data = _aligned(literal.type.bytes)
        stored = np.frombuffer(literal.data, np.uint8)
        data[:] = np.tile(stored, count) if count > 1 else stored
        self.data.append(data)
        self.symbols[name] = data.ctypes.data
        return self.module.external(name)


def _aligned(size: int) -> Array:
    """Memory for constants, aligned as they are in the text."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    return memory[first : first + size]


__all__ = ["CheckSite", "Program", "emit_program"]
