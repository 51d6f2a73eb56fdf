"""The abstract machine: call stack, memory, random state and fuel.

Calls and bodies that are being run are frames on a list, so that the depth of a program never becomes depth
of Python's stack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from ..errors import NNKitError, RecursionDepthError, ShapeError, UnsupportedError, VerifyError
from ..host_calls import call_c
from ..ir import Extern, Function, Instruction, Module, Region
from ..location import located
from ..ops.random import RANDOM_SEED
from ..types import I64, VOID, scalar, written
from .arguments import convert
from .byte_memory import Memory
from .frame import Frame
from .runtime_values import unpacked_data

MOST_FRAMES = 500_000
"""Calls and bodies inside each other: an endless recursion ends before memory does.

Frames of a call take 270 bytes: 130 MiB, after 2 s.
"""


Observer: TypeAlias = Callable[[Instruction, Sequence[Any], Sequence[Any]], None]
"""Told of an instruction that computes, of its operands and its results."""


class Machine:
    """One run of a module's functions: its memory, its random numbers, and what is left of its fuel."""

    def __init__(
        self,
        module: Module,
        externs: Mapping[str, Callable[..., Any]],
        seed: int,
        fuel: int | None,
        memory: Memory | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.module = module
        self.externs = externs
        self.observe = observe
        self.frames: list[Frame] = []
        self.memory = memory or Memory()
        self.variables: dict[str, int] = {}
        self.constants: dict[Instruction, Sequence[Any]] = {}
        self.paths: dict[Instruction, tuple[int, list[tuple[int, int]]]] = {}
        """Where each `elementPointer` leads, as `Layout.path` says it."""
        self.seed = ((seed + (1 << 63)) % (1 << 64)) - (1 << 63)  # its last 64 bits, as an i64
        self.random_count = 0
        self.fuel = fuel
        self.budget: Iterable[None] = (
            repeat(None) if fuel is None else repeat(None, min(max(fuel, 0), sys.maxsize))
        )
        self.inside = 0

    def call(
        self, name: str, arguments: Sequence[Any], caller: Instruction | None = None
    ) -> Sequence[Any] | None:
        """Begin a call; its results if they are there at once, those of an extern function."""
        function = self.module.functions.get(name)
        if function is None:
            raise VerifyError(
                f"the module {self.module.name!r} has no function {written('@', name)}"
            )
        count = len(function.type.parameters)
        if len(arguments) != count:
            raise ShapeError(
                f"{written('@', name)} takes {count} argument{'s' * (count != 1)}, not {len(arguments)}"
            )
        if function.body is None:
            return unpacked_data(function.type.result, self.outside(function, arguments))
        values = dict(zip(function.parameters, arguments, strict=True))
        self.push(Frame(function, function.entry.instructions, values, caller))
        return None

    def outside(self, function: Function, arguments: Sequence[Any]) -> Any:
        """Call an extern function."""
        name = function.name
        if not isinstance(function.declaration, Extern):
            raise UnsupportedError(
                f"{written('@', name)} has no body: differentiate the module first"
            )
        address = function.declaration.address
        if name not in self.externs and address is not None:
            made = call_c(address, name, function.type, arguments)
            return made[0] if len(made) == 1 else tuple(made)
        if name not in self.externs:
            raise UnsupportedError(
                f"{written('@', name)} is extern: pass evaluate a callable as externs[{name!r}]"
            )
        result, data = function.type.result, self.externs[name](*arguments)
        return () if data is None and result == VOID else convert(result, data)

    def enter(
        self, frame: Frame, region: Region, arguments: Sequence[Any], resume: Callable[..., None]
    ) -> None:
        """Begin to run a body of an instruction of `frame`; what it yields is given to `resume`."""
        body = Frame(frame.function, (), frame.values, None, resume, frame.memory)
        body.go_to(region.entry, arguments)
        self.push(body)

    def push(self, frame: Frame) -> None:
        if len(self.frames) >= MOST_FRAMES:
            name = written("@", frame.function.name)
            raise RecursionDepthError(
                f"{name} is called too deeply: more than {MOST_FRAMES} calls and bodies lie in each other"
            )
        self.frames.append(frame)

    def variable(self, name: str) -> int:
        """The address of a global variable."""
        if name not in self.variables:
            declared = self.module.variables.get(name)
            if declared is None:
                raise VerifyError(
                    f"the module {self.module.name!r} has no variable {written('@', name)}"
                )
            size = self.memory.layout.extent(declared.type).bytes
            self.variables[name] = self.memory.allocate(written("@", name), size).address
            if name == RANDOM_SEED and declared.type == scalar(I64):
                self.memory.write(declared.type, self.seed, self.variables[name])
        return self.variables[name]

    def place(self, error: NNKitError, base: int) -> NNKitError:
        """The error, which says in its notes where it happened; the frames above `base` are left."""
        if len(self.frames) > base:
            frame = self.frames[-1]
            instruction = frame.instructions[frame.position - 1]
            error.add_note(f"  in {instruction.op.name} of {written('@', frame.function.name)}")
            located(error, instruction.location or frame.function.location)
            del self.frames[base:]
        return error
