"""A scheduled function as a Python callable: emit, compile, load, bind.

`host_machine()` tells the schedule about this machine.  `build` links kernel and native entry, so that a call
crosses from Python to the kernel once.  They are modules of their own: the entry is two thirds of what LLVM has to do
for a small program, and the same for all programs with such arguments and results, of any shapes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NoReturn

from ..core.errors import InternalError, NNKitError, OutOfMemoryError, UnsupportedError
from ..core.garbage import garbage_left
from ..core.host_calls import take_raised
from ..core.ir import Extern, Function
from ..core.ir.surgery import walk
from ..core.lazy_dataclass import dataclass
from ..core.location import located
from ..core.schedule.target import Target
from ..core.thread_stack import current_stack
from ..core.types import TensorType, written
from . import entry
from .cache_sizes import host_cache_sizes
from .emit.alignment import allocate_aligned
from .emit.checks import error_of
from .emit.effects import PRINT
from .emit.program import EmittedProgram, emit_program
from .emit.sites import CheckSite, Problem
from .emit.stack_use import SMALL, STACK_LIMIT
from .emit.writer import ModuleWriter
from .entry import Signature, bind, entry_text
from .llvm import LLVMError, compile_module, host_engine, host_machine
from .runtime.lapack import find_lapack
from .runtime.pool import thread_count
from .runtime.printing import print_function
from .runtime.process import this_process

KERNEL = "kernel"
ENTRY = "entry"


@cache
def host_target() -> Target:
    """The scheduling target of this machine."""
    found, caches = host_machine(), host_cache_sizes().planned()
    return Target(
        vector_bytes=found.vector_bytes,
        registers=found.vector_registers,
        fma=found.fma,
        cores=os.cpu_count() or 1,
        threads=thread_count(),
        own_l1_bytes=caches.first,
        own_l2_bytes=caches.second,
        has_lapack=find_lapack() is not None,
    )


@dataclass(frozen=True)
class Executable:
    """Compiled code: `call` takes and returns concrete values."""

    call: Callable[..., Any]
    text: str
    object_bytes: int
    arena_bytes: int


def kernel_text(function: Function, functions: Mapping[str, Function] | None = None) -> str:
    """The LLVM IR of the kernel, and of those of `functions` that it calls."""
    writer = _writer()
    emit_program(writer, function, KERNEL, functions=functions, process=this_process())
    return writer.text()


def kernel_assembly(function: Function, functions: Mapping[str, Function] | None = None) -> str:
    """The machine code of the same, for people to read."""
    return host_engine().assembly(kernel_text(function, functions))


def build(
    function: Function,
    signature: Signature,
    *,
    name: str,
    fallback: Callable[..., Any] | None = None,
    explain: Callable[[Sequence[CheckSite], int, int, int], object] | None = None,
    functions: Mapping[str, Function] | None = None,
    externs: Mapping[str, int] = MappingProxyType({}),
    markers: Sequence[object] = (),
) -> Executable:
    """Compile a scheduled function, with those of `functions` that it calls, and bind its entry.

    `fallback` gets the arguments of calls that the signature does not fit, by default an error; `explain` raises for
    a run-time check that failed, given all of them, its number from 1, the index and the bound, by default with the
    place as a note.
    `externs` are the addresses of functions that are defined elsewhere; those of the process are found by name.
    `markers` are what wrappers in the arguments that the signature says are donated hold after a call.
    Raises: UnsupportedError when there is no such function, InternalError when LLVM refuses the code.
    """
    writer = _writer()
    process = this_process()
    elsewhere = _externs(functions or {})
    known = {name: found.address for name, found in elsewhere.items() if found.address}
    with garbage_left():
        program = emit_program(writer, function, KERNEL, functions=functions, process=process)
    private = program.arena_bytes if program.polls else None
    holds = bool(program.polls or program.prints or program.externs) or writer.has(STACK_LIMIT)
    stack = program.stack if process is not None and program.stack > SMALL else 0
    made = entry_text(
        signature, KERNEL, ENTRY, private_arena=private, holds_arrays=holds, stack=stack
    )
    text = writer.text() + made.lengths
    symbols = {**program.symbols, **made.symbols, **extern_symbols(program, {**known, **externs})}
    prints, found = print_symbols(program)
    symbols |= found
    try:
        module = compile_module(text, symbols, shared=made.module)
        address = module.address(made.name)
    except LLVMError as error:
        raise InternalError(f"LLVM refused the code of {name}: {error.message}") from error
    try:
        arena = allocate_aligned(program.arena_bytes)
    except MemoryError:
        raise _too_large(function, name, program.arena_bytes) from None
    call = bind(
        address,
        signature=signature,
        arena=arena.ctypes.data,
        fallback=fallback or _refuse,
        explain=partial(explain or _explain, program.sites),  # which leaves no frame in a traceback
        keep_alive=(module, arena, program, prints, elsewhere),
        name=name,
        private_arena=private,
        markers=markers,
    )
    return Executable(call, text, module.object_bytes, program.arena_bytes)


def _externs(functions: Mapping[str, Function]) -> dict[str, Extern]:
    """What is said of the functions that are defined elsewhere."""
    declared = {name: function.declaration for name, function in functions.items()}
    return {name: found for name, found in declared.items() if isinstance(found, Extern)}


def _too_large(function: Function, name: str, size: int) -> NNKitError:
    """There is no memory for the buffers of `function`; the line of the largest is shown."""
    instructions = walk(function.body) if function.body is not None else ()
    largest, at = 0, None
    for instruction in instructions:
        tensors = (x.type for x in instruction.results if isinstance(x.type, TensorType))
        most = max((x.size * x.dtype.bytes for x in tensors), default=0)
        if most > largest:
            largest, at = most, instruction
    error = OutOfMemoryError(
        f"out of memory: {name} needs {size:,} bytes, {largest:,} of them for one value"
    )
    return located(error, at.location if at is not None else function.location)


def _refuse(*_: Any) -> NoReturn:
    raise InternalError("compiled code does not take the arguments that its signature promises")


def _explain(sites: Sequence[CheckSite], number: int, first: int, second: int) -> NoReturn:
    raised = take_raised()
    if raised is not None:
        raise raised
    site = sites[number - 1]
    raise located(error_of(site, first, bound_of(site, second)), site.location)


def bound_of(site: CheckSite, second: int) -> int:
    """What the check compared with; of a recursion, how much stack this thread has."""
    stack = current_stack() if site.problem is Problem.DEPTH else None
    return second if stack is None else stack.high - stack.limit


def extern_symbols(program: EmittedProgram, externs: Mapping[str, int]) -> dict[str, int]:
    """The addresses of the functions that a program needs from elsewhere, by their symbols.

    Raises: UnsupportedError when one is missing.
    """
    found: dict[str, int] = {}
    for name, symbol in program.externs.items():
        address = externs.get(name) or _address_in_process(name)
        if not address:
            raise UnsupportedError(
                f"{written('@', name)} is extern, and no library of this process has it: load one, with "
                "ctypes.CDLL(path, ctypes.RTLD_GLOBAL), or give its address"
            )
        found[symbol] = address
    return found


def print_symbols(program: EmittedProgram) -> tuple[object, dict[str, int]]:
    """The function that prints for a program, to be kept as long as the program, and its address by its symbol."""
    if not program.prints:
        return None, {}
    function = print_function(program.prints)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return function, {f"{program.name}{PRINT}": address}


def _address_in_process(name: str) -> int | None:
    """Where the process, or a library that it shows to all, has a function."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    except AttributeError:
        return None


def _writer() -> ModuleWriter:
    """For code of this machine."""
    found = host_machine()
    return ModuleWriter(scalef=found.scalef, fma=found.fma)


__all__ = [
    "Executable", "Signature", "build", "entry", "extern_symbols", "host_target", "kernel_assembly", "kernel_text",
    "print_symbols",
]  # fmt: skip
