"""Emits a scheduled function as LLVM text: the kernel `i64 @NAME(ptr inputs…, ptr outputs…, ptr arena)`.

1. The kernel is written, then every function that it or another one calls (`calls`).
2. Instructions of a block are written in order, the bodies of structured instructions where they are met
   (`structured_ops`).
3. The kernel returns 0, or the number of the check that failed (see `checks`).

Constants of more than a few kilobytes are not part of the text: they are symbols, whose data `EmittedProgram`
keeps.  So are the routines of the LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from ...core.compute.bodies import bodies_of
from ...core.compute.ops import CallAddress
from ...core.errors import InternalError
from ...core.ir import Block, Function, Instruction, Op
from ...core.kernels.guarded_ops import CheckIndex, CopyBuffer
from ...core.kernels.ops import AllocateLocal, Kernel, executed, is_kernel
from ...core.kernels.parallelise import has_parallel_loops
from ...core.kernels.same import written_body
from ...core.lazy_dataclass import dataclass
from ...core.ops.aggregate import Apply
from ...core.ops.byte_memory import (
    AddressOf,
    AllocateBytes,
    CheckAddress,
    FreeBytes,
    FunctionAddress,
    MoveBytes,
    ReadBytes,
    StopIf,
    WriteBytes,
)
from ...core.ops.effects import Check, Print
from ...core.ops.literal import Literal
from ...core.ops.matrix_form import MatrixFunction
from ...core.ops.movement import ShapeCast
from ...core.ops.nest import Yield
from ...core.ops.structured import For, If, While
from ...core.ops.terminators import Return
from ...core.schedule.ops import Empty
from ...core.schedule.plan import arena_bytes
from ...core.schedule.safepoints import Safepoints
from ...core.schedule.switches import is_enabled
from ...core.types import Array
from ..llvm import DEEP_LOOPS
from ..runtime.lapack import find_lapack
from ..runtime.pool import this_pool
from ..runtime.process import Process
from .byte_memory import (
    write_address,
    write_allocate,
    write_check,
    write_free,
    write_function_address,
    write_move,
    write_read,
    write_stop,
    write_write,
)
from .calls import (
    begin_callee,
    begin_kernel,
    owners_of,
    write_call,
    write_call_address,
)
from .effects import write_check_condition, write_print
from .element_access import define_zero_element
from .extern import write_extern
from .function_emitter import INLINE_BYTES, FunctionEmitter, ProgramContext
from .kernels import write_kernel
from .matrix_functions import LAPACK, LAPACK_CALLS, LAPACK_STACK, write_matrix_function
from .parallel import ParallelLoops
from .parts import part, parts_of, share_variables
from .sites import CheckSite, PrintSite
from .stack_use import STACK_BYTES, stack_use
from .structured_ops import write_for, write_if, write_while, write_yield
from .writer import I64, PTR, Argument, ModuleWriter, constant


@dataclass(frozen=True, eq=False)
class EmittedProgram:
    """What an emitted kernel needs besides its text: arena, constants, checks, external symbols.

    `symbols` are the addresses to link it with; they stay good while the program is referenced, which
    `data` sees to.  `sites[n - 1]` is the check that a result of n speaks of.  `externs` are the symbols of functions
    that are defined elsewhere, by name.  `prints` are what it prints, by the number that it calls `PRINT` with.
    """

    name: str
    symbols: Mapping[str, int]
    sites: tuple[CheckSite, ...]
    arena_bytes: int
    data: tuple[Array, ...]
    externs: Mapping[str, str]
    prints: tuple[PrintSite, ...] = ()
    polls: bool = False
    """Whether it may give up the GIL while it runs: then each call needs an arena of its own."""
    stack: int = 0
    """Bytes of the stack that a call takes, but for functions that it calls, which ask for themselves."""


def emit_program(
    module: ModuleWriter,
    function: Function,
    name: str,
    *,
    functions: Mapping[str, Function] | None = None,
    stack_bytes: int = STACK_BYTES,
    sites: list[CheckSite] | None = None,
    process: Process | None = None,
) -> EmittedProgram:
    """Write the kernel `name` of a function in stage schedule into `module`.

    `functions` are those that it may call, by name.
    `process` is the one that runs the program; without it nothing is known of the GIL and the thread's stack, of which
    calls then may take `stack_bytes`.  `sites` are those of programs written before, whose
    functions this one might meet as values: the checks of this one are added to them.
    """
    polls = process is not None and Safepoints(function).runs_long
    kept = [] if sites is None else sites
    shared = ProgramContext(module, name, functions or {}, stack_bytes, process, polls, kept)
    if process is not None:
        shared.symbols |= process.symbols
    _count_bodies(shared, function)
    define_zero_element(module)
    kernel = begin_kernel(shared, function)
    _write_function(kernel, function)
    written = 0
    while written < len(shared.callees):
        callee, symbol = list(shared.callees.items())[written]
        inner = shared.functions[callee]
        if inner.body is None:
            write_extern(shared, inner, symbol)
        else:
            _write_function(begin_callee(shared, inner, symbol), inner)
        written += 1
    for check in shared.stack_checks:
        check.settle(module, frozenset(shared.callees.values()))
    return EmittedProgram(
        name,
        shared.symbols,
        tuple(shared.sites),
        arena_bytes(function),
        tuple(shared.data),
        shared.externs,
        tuple(shared.prints),
        polls,
        _stack_of(shared),
    )


def _stack_of(shared: ProgramContext) -> int:
    """What the kernel takes of the stack."""
    if any(symbol.startswith(LAPACK) for symbol in shared.symbols):
        return LAPACK_STACK
    return stack_use(shared.module, shared.name, but=frozenset(shared.callees.values()))


def _count_bodies(shared: ProgramContext, function: Function) -> None:
    """How many kernels have the same body."""
    for one in {id(f): f for f in (function, *shared.functions.values())}.values():
        for body in bodies_of(one) if one.body is not None else ():
            for instruction in body.block.instructions:
                if is_kernel(instruction):
                    shared.bodies[instruction] = written = written_body(instruction)
                    shared.uses[written] += 1


MOST_OPTIMIZED_LOOPS: Final = 256
"""Loops inside each other, of the most that LLVM optimizes: that is some 2 s, growing with the cube
(`DEEP_LOOPS`)."""


def _write_function(k: FunctionEmitter, function: Function) -> None:
    """All of the function after its head; bodies wait on a list for the ones inside them."""
    if max(body.loops for body in bodies_of(function)) > MOST_OPTIMIZED_LOOPS:
        k.w.add_attribute(f'"{DEEP_LOOPS}"')
    running = [_write_entry(k, function)]
    while running:
        inner = next(running[-1], None)
        if inner is None:
            running.pop()
        else:
            running.append(_write_block(k, inner.instructions))
    k.checks.write_failures(k.w, k.report, k.leave)


def _write_entry(k: FunctionEmitter, function: Function) -> Iterator[Block]:
    """The outermost block, in parts if it is long; memory that lives as long as the call has to be the function's."""
    block = function.entry
    parts = parts_of(block, partial(_size_of, k))
    if len(parts) == 1 or owners_of(function):
        yield from _write_block(k, block.instructions)
        return
    share_variables(k, block)
    for number, instructions in enumerate(parts):
        with part(k, number):
            yield from _write_block(k, instructions)
    yield from _write_block(k, [block.terminator])


def _write_block(k: FunctionEmitter, instructions: Sequence[Instruction]) -> Iterator[Block]:
    """The instructions of a block; a body inside is given out to be written before going on."""
    for instruction in instructions:
        op = instruction.op
        write = WRITERS.get(type(op))
        if write is None:
            raise InternalError(f"{op.name} cannot stand in stage schedule")
        if op.is_structured:
            _pay_for(k, instruction)
            yield from write(k, instruction) or ()
        else:
            with _paying_for(k, instruction):
                write(k, instruction)


@contextmanager
def _paying_for(k: FunctionEmitter, instruction: Instruction) -> Generator[None]:
    """Poll before an instruction that exceeds the poll budget, and in its loops if these are long."""
    nanoseconds = _pay_for(k, instruction)
    if k.polls is None:
        yield
        return
    with k.polls.pacing(nanoseconds):
        yield


def _pay_for(k: FunctionEmitter, instruction: Instruction) -> int:
    """Poll if an instruction is to pay for itself and those that follow; for how many nanoseconds."""
    if k.polls is None:
        return 0
    nanoseconds = k.polls.safepoints.before(instruction)
    if nanoseconds:
        k.polls.spend(nanoseconds)
    return nanoseconds


def _write_matrix_function(k: FunctionEmitter, instruction: Instruction[MatrixFunction]) -> None:
    lapack = find_lapack()
    if lapack is None:
        raise InternalError("the program has functions of matrices, and there is no LAPACK")
    for name, address in lapack.addresses.items():
        k.shared.symbols[LAPACK + name] = address
    write_matrix_function(k.w, instruction, k.bases(instruction), lapack.integer_bits)


def _write_kernel(k: FunctionEmitter, instruction: Instruction[Kernel]) -> None:
    """As a function, which all kernels with the same body call; in place where it polls, or is short."""
    bases = k.bases(instruction)
    shared = k.shared
    parallel = _parallel_loops(shared) if has_parallel_loops(instruction) else None
    body = shared.bodies[instruction]
    if _is_in_place(k, instruction):
        write_kernel(k.w, instruction, bases, parallel, k.checks, k.report)
        return
    symbol = shared.kernels.get(body)
    if symbol is None:
        symbol = shared.kernels[body] = f"{shared.name}.kernel.{len(shared.kernels)}"
        w = shared.module.function(
            symbol, [Argument(PTR)] * len(bases), None, linkage="internal", attributes=_OF_KERNELS
        )
        write_kernel(w, instruction, w.parameters, parallel)
        w.ret()
    k.w.call_void(symbol, bases)


def _is_in_place(k: FunctionEmitter, kernel: Instruction[Kernel]) -> bool:
    body = k.shared.bodies[kernel]
    is_short = len(body) < (_IN_PLACE if k.shared.uses[body] == 1 else _TINY)
    # a function that calls others may be on the stack many times
    if is_short and (k.limit is None or _largest_local(kernel) <= _SMALL_LOCAL):
        return True
    if k.polls is not None and k.polls.safepoints.before(kernel):
        return True
    return any(isinstance(one.op, _IN_PLACE_OPS) for _, one in executed(kernel))


def _largest_local(kernel: Instruction[Kernel]) -> int:
    """Bytes of the largest buffer that a kernel has on the stack."""
    ops = [one.op for _, one in executed(kernel)]
    return max((op.type.bytes for op in ops if isinstance(op, AllocateLocal)), default=0)


def _size_of(k: FunctionEmitter, instruction: Instruction) -> int:
    """How many scalar instructions stand in this function for one, with those in its body."""
    size, pending = 0, [instruction]
    while pending:
        one = pending.pop()
        if is_kernel(one):
            size += max(_OF_A_CALL, len(k.shared.bodies[one]) if _is_in_place(k, one) else 0)
            continue
        size += _OF_A_CALL if one is instruction or one.regions else 1
        pending += (i for region in one.regions for b in region.blocks for i in b.instructions)
    return size


_OF_A_CALL: Final = 12
"""Instructions that a call counts for, with the addresses that it is given, and a nest, with its loops."""


def _parallel_loops(shared: ProgramContext) -> ParallelLoops | None:
    """How parallel loops are written in a program for a process with a pool."""
    if shared.process is None or not is_enabled("threads"):
        return None
    pool = this_pool()
    if pool is None:
        return None
    shared.symbols |= pool.symbols
    return ParallelLoops(shared.module)


_IN_PLACE: Final = 256
"""Instructions of a kernel that is no function of its own: a function costs LLVM a millisecond, but more than linear
time in its length."""

_SMALL_LOCAL: Final = 1024
"""Bytes of a local buffer that each call of a function may have in its frame."""

_TINY: Final = 16
"""The same of one that others are equal to: a call takes as long as so many instructions."""

_IN_PLACE_OPS: Final = (CheckIndex, CopyBuffer)
"""Checks leave the function that the kernel is in; and in it is known whether two buffers are one."""

_OF_KERNELS: Final = "nounwind noinline"


def _write_return(k: FunctionEmitter, instruction: Instruction) -> None:
    """Tensors lie in the outputs already, scalars perhaps in variables."""
    write_yield(k, instruction)
    k.leave(constant(I64, 0))


def _write_buffer(k: FunctionEmitter, instruction: Instruction[Empty]) -> None:
    """Only the address: what is in the buffer is never read."""
    k.place_results(instruction)


def _write_nothing(k: FunctionEmitter, instruction: Instruction) -> None:
    """Literals are written where they are read, and views lie where what they view does."""


InstructionRule: TypeAlias = Callable[[FunctionEmitter, Instruction[Any]], Iterator[Block] | None]

WRITERS: Final[Mapping[type[Op], InstructionRule]] = {
    Literal: _write_nothing,
    ShapeCast: _write_nothing,
    Kernel: _write_kernel,
    **dict.fromkeys(LAPACK_CALLS, _write_matrix_function),
    Empty: _write_buffer,
    Apply: write_call,
    CallAddress: write_call_address,
    ReadBytes: write_read,
    WriteBytes: write_write,
    MoveBytes: write_move,
    AllocateBytes: write_allocate,
    FreeBytes: write_free,
    AddressOf: write_address,
    FunctionAddress: write_function_address,
    CheckAddress: write_check,
    StopIf: write_stop,
    Check: write_check_condition,
    Print: write_print,
    If: write_if,
    While: write_while,
    For: write_for,
    Yield: write_yield,
    Return: _write_return,
}
"""How each op is written that stands in a scheduled function; those with bodies give out the blocks in them."""


__all__ = ["INLINE_BYTES", "MOST_OPTIMIZED_LOOPS", "CheckSite", "EmittedProgram", "emit_program"]
