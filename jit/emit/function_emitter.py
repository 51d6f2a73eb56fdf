"""Emits one function: addresses of its values, and the block that is being written.

Every value gets an address: a parameter, a constant, an output, a variable, or an offset into the arena; `shapeCast`
is the same address.  Inputs are aligned to their elements, so are outputs, all else to 64 bytes.

What the functions of a program have in common is `ProgramContext`: constants, symbols, check sites, and which functions
are called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np

from ...core.compute.bodies import base_of
from ...core.errors import InternalError
from ...core.ir import Block, Function, Instruction, Place, Value
from ...core.kernels.guarded_ops import copied_operands
from ...core.kernels.ops import is_kernel
from ...core.lazy_dataclass import dataclass
from ...core.ops.literal import Literal, literal_of
from ...core.schedule.live_ranges import replaced_operands
from ...core.types import Array, written
from ..runtime.process import Process
from .alignment import allocate_aligned
from .checks import Checks
from .elements import memory_type
from .polls import Polls
from .sites import CheckSite, PrintSite
from .stack_use import StackCheck
from .writer import FunctionWriter, ModuleWriter, Register

INLINE_BYTES: Final = 4096
"""Constants up to this size stand in the text, of which LLVM reads a MiB in 19 ms; larger ones are memory that the text
has the address of."""


@dataclass(eq=False)
class ProgramContext:
    """State shared by all functions of a program; `name` is the kernel's, and prefixes all other symbols.

    `functions` are those of the module; `stack_bytes` is how much of the stack calls may take where the stack of
    the thread is not known.  `process` is the one that runs the program, if it is known, and `polls` says whether the
    program runs so long that it polls for interrupts.
    """

    module: ModuleWriter
    name: str
    functions: Mapping[str, Function]
    stack_bytes: int
    process: Process | None = None
    polls: bool = False
    sites: list[CheckSite] = field(default_factory=list[CheckSite])
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    prints: list[PrintSite] = field(default_factory=list[PrintSite])
    data: list[Array] = field(default_factory=list[Array])
    callees: dict[str, str] = field(default_factory=dict[str, str])
    """The symbols of functions that are called, in the order in which they were met."""
    stack_checks: list[StackCheck] = field(default_factory=list[StackCheck])
    constants: dict[Literal, Register] = field(default_factory=dict[Literal, Register])
    kernels: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    """The symbols of kernels, by what their bodies do."""
    bodies: dict[Instruction, tuple[Hashable, ...]] = field(
        default_factory=dict[Instruction, tuple[Hashable, ...]]
    )
    """What the body of each kernel does."""
    uses: Counter[Hashable] = field(default_factory=Counter[Hashable])
    """How many kernels there are of each body."""
    externs: dict[str, str] = field(default_factory=dict[str, str])
    """The symbols of functions that are defined elsewhere, by name."""

    def symbol(self, callee: str) -> str:
        """What the function `callee` is called in the text."""
        if self.functions.get(callee) is None:
            raise InternalError(f"{written('@', callee)} is called and not part of the program")
        return self.callees.setdefault(callee, f"{self.name}.call.{len(self.callees)}")

    def constant(self, literal: Literal) -> Register:
        """The address of all elements, a splat written out."""
        if literal not in self.constants:
            self.constants[literal] = self._write(literal)
        return self.constants[literal]

    def _write(self, literal: Literal) -> Register:
        name = f"{self.name}.constant.{len(self.constants)}"
        count = literal.type.size if literal.is_splat else 1
        if literal.type.bytes <= INLINE_BYTES:
            return self.module.data(name, literal.data * count)
        data = allocate_aligned(literal.type.bytes)
        stored = np.frombuffer(literal.data, np.uint8)
        data[:] = np.tile(stored, count) if count > 1 else stored
        self.data.append(data)
        self.symbols[name] = data.ctypes.data
        return self.module.external(name)


@dataclass(frozen=True, slots=True)
class BlockBuffers:
    """The base addresses that a block's places are relative to: its arena, and the buffers of its results.

    The arena begins at offset `first`: functions that are called have no head there for failures.  `variables` are
    where scalars lie side by side, in functions of several parts (`parts`).  `moves` are the outputs that the values of
    a loop's body belong in, where these are not in order, and `moving` the variables with the outputs that move.
    """

    arena: Register
    outputs: Sequence[Register]
    first: int = 0
    variables: Register | None = None
    moves: Sequence[int] = ()
    moving: Mapping[int, Register] = field(default_factory=dict[int, Register])

    def at(self, w: FunctionWriter, offset: int) -> Register:
        """The address of an offset in the arena."""
        return w.offset(self.arena, max(offset - self.first, 0))

    def address(self, w: FunctionWriter, place: Place) -> Register | None:
        """Where a place in the arena, or a shared variable, is; None for others."""
        if place.space == "arena":
            return self.at(w, place.offset)
        if place.space == "register" and self.variables is not None:
            return w.offset(self.variables, _VARIABLE * place.offset)
        return None


@dataclass(frozen=True, slots=True)
class _Home:
    """A place in a frame, that of the function if not said, and the LLVM block in which its address is written."""

    frame: BlockBuffers | None
    place: Place
    block: tuple[str, str]


_VARIABLE: Final = 8
"""Bytes of a scalar of any dtype."""


@dataclass(eq=False)
class FunctionEmitter:
    """Emits one function of the program, block by block.

    `report` is where the details of a failure go, `limit` the address below which the stack must not reach (only in
    functions that call others); `leave` returns a code.  `chain` is the variable with the list of memory that is
    given back then, in functions that have such.  `polls` writes those of the function, if the program polls.
    """

    shared: ProgramContext
    w: FunctionWriter
    report: Register
    frames: list[BlockBuffers]
    limit: Register | None
    leave: Callable[[Register], None]
    addresses: dict[Value, Register]
    checks: Checks
    chain: Register | None = None
    polls: Polls | None = None
    homes: dict[Value, _Home] = field(default_factory=dict[Value, _Home])

    @property
    def frame(self) -> BlockBuffers:
        """That of the block being written."""
        return self.frames[-1]

    def enter(self, block: Block, arguments: Sequence[Register], frame: BlockBuffers) -> None:
        """Begin a body."""
        self.addresses.update(zip(block.arguments, arguments, strict=True))
        self.frames.append(frame)

    def exit(self) -> None:
        """End the body entered last."""
        self.frames.pop()

    # Where values lie.

    def bases(self, instruction: Instruction) -> list[Register]:
        """The addresses of the operands, of the outputs, whose results are given theirs, and of scratch buffers."""
        results = self.place_results(instruction)
        operands = map(self.address, instruction.operands)
        scratch = instruction.placement.scratch
        return [*operands, *results, *map(self._room, scratch)]

    def place_results(self, instruction: Instruction) -> list[Register]:
        """The addresses of the results, from their places."""
        places = instruction.placement.results
        for result, place, base in zip(
            instruction.results, places, _updated(instruction), strict=True
        ):
            is_there = base is not None and _place_of(base) == place
            if base is not None and is_there:
                self.addresses[result] = self.address(base)
            else:
                self.addresses[result] = self._place(result, place)
            if place.space != "output":
                frame = self.frame if len(self.frames) > 1 else None
                self.homes[result] = _Home(frame, place, (self.w.name, self.w.block))
        return [self.addresses[result] for result in instruction.results]

    def _room(self, place: Place) -> Register:
        """Where a scratch buffer lies."""
        return (
            self.frame.outputs[place.offset]
            if place.space == "output"
            else self.in_arena(place.offset)
        )

    def in_arena(self, offset: int) -> Register:
        """The address of an offset in the arena of the block being written."""
        return self.frame.at(self.w, offset)

    def address(self, value: Value) -> Register:
        """Where a value lies, or what it is a view of; a literal wherever it is wanted first.

        Addresses in an arena are made anew in each LLVM block, where an addition is part of the access: one that lives
        from the forward pass to the backward one takes a register, and finding it one takes time for each block between
        (400 calls with their gradient: a third of what LLVM takes).  A part of a function makes them anew in any case.
        """
        value = base_of(value)
        home, block = self.homes.get(value), (self.w.name, self.w.block)
        if home is not None and home.block != block:
            found = (home.frame or self.frames[0]).address(self.w, home.place)
            self.addresses[value] = found or self.addresses[value]
            self.homes[value] = replace(home, block=block)
        if value not in self.addresses:
            literal = literal_of(value)
            if literal is None:
                raise InternalError(f"a value of type {value.type} is used before it is made")
            self.addresses[value] = self.shared.constant(literal)
        return self.addresses[value]

    def _place(self, result: Value, place: Place) -> Register:
        match place.space:
            case "output":
                return self.frame.outputs[place.offset]
            case "register" if self.frame.variables is None:
                dtype = result.tensor.dtype
                return self.w.allocate(memory_type(dtype), align=dtype.bytes)
            case _:
                found = self.frame.address(self.w, place)
                assert found is not None
                return found


def _updated(instruction: Instruction) -> Sequence[Value | None]:
    """For each result the base in whose place it is updated, if both have the same: then both have one address."""
    if instruction.op.is_structured:
        return replaced_operands(instruction)
    if not is_kernel(instruction):
        return [None] * len(instruction.results)
    copied = copied_operands(instruction)
    numbers = [copied.get(result.index) for result in instruction.results]
    return [None if n is None else base_of(instruction.operands[n]) for n in numbers]


def _place_of(base: Value) -> Place | None:
    """Where a base lies that an instruction of the block has made."""
    if base.producer is None or not base.producer.placement.results:
        return None
    return base.producer.placement.results[base.index]
