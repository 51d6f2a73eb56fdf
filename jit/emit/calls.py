"""Emits calls, and the prologues and epilogues of kernels and callees.

    i64 @KERNEL.call.N(ptr inputs…, ptr outputs…, ptr report, ptr limit)

Such a function makes its own arena: on the stack up to `ON_STACK`, else by `malloc`.  It fails if its stack reaches
below `limit`, an address that the kernel finds and all calls pass on: where the stack of the thread ends, but for some
room, or so many bytes below the kernel in code for a process that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ...core.compute.bodies import bodies_of
from ...core.compute.ops import CallAddress
from ...core.ir import ALIGNMENT, HEADER_BYTES, Effect, Function, Instruction, Op, Value
from ...core.ir.donation import donated_parameters
from ...core.ops.aggregate import Apply
from ...core.ops.byte_memory import AllocateBytes
from ...core.schedule.plan import arena_bytes, has_variables
from ..llvm import REGISTERS
from .alignment import emit_aligned, emit_malloc
from .bump_allocator import begin_allocations, end_allocations, free_chunks
from .checks import Checks
from .element_access import ZERO_ELEMENT
from .fill import write_copy
from .function_emitter import BlockBuffers, FunctionEmitter, ProgramContext
from .polls import Polls, reacquire_gil
from .sites import CheckSite, Problem
from .stack_use import StackCheck, frame_address, stack_limit
from .writer import I8, I64, PTR, Argument, FunctionWriter, Register, constant

ON_STACK: Final = 2048
"""Bytes of an arena that lies on the stack: above 1 KiB, glibc's `malloc` and `free` take 16 ns, where a call takes 3,
and a recursion of 500 still fits into 1 MiB."""


def write_call(k: FunctionEmitter, instruction: Instruction[Apply]) -> None:
    """A call of a function of the program; if it fails, so does the caller."""
    op = instruction.op
    assert k.limit is not None
    operands = [k.address(value) for value in instruction.operands]
    results = k.place_results(instruction)
    symbol = k.shared.symbol(op.callee)
    with handing_over(k):
        code = k.w.call(symbol, I64, [*operands, *results, k.report, k.limit])
    k.checks.pass_on(k.w, code)


def write_call_address(k: FunctionEmitter, instruction: Instruction[CallAddress]) -> None:
    """An indirect call of the function at an address, which has been checked."""
    assert k.limit is not None
    function, *arguments = instruction.operands
    operands = [k.address(value) for value in arguments]
    results = k.place_results(instruction)
    pointer = k.w.inttoptr(k.w.load(k.address(function), I64))
    with handing_over(k):
        code = k.w.call_pointer(pointer, I64, [*operands, *results, k.report, k.limit])
    k.checks.pass_on(k.w, code)


@contextmanager
def handing_over(k: FunctionEmitter) -> Generator[None]:
    """Wraps a call: the poll budget passes to the callee and comes back."""
    if k.polls is not None:
        k.polls.hand_over()
    yield
    if k.polls is not None:
        k.polls.receive()


def begin_kernel(shared: ProgramContext, function: Function) -> FunctionEmitter:
    """The kernel itself, `i64 @NAME(ptr inputs…, ptr outputs…, ptr arena)`."""
    arena = Argument(PTR, f"noalias align {ALIGNMENT}")
    attributes = _attributes(function)
    w = shared.module.function(
        shared.name, [*_tensors(function), arena], I64, attributes=attributes
    )
    arena_address = w.parameters[-1]
    limit = _stack_limit(shared, w) if _has_calls(function) else None
    uses_bump_allocator = _uses_bump_allocator(shared, function)
    if uses_bump_allocator:
        begin_allocations(w, arena_address)

    def leave(code: Register) -> None:
        if shared.polls:
            reacquire_gil(w, arena_address)
        if uses_bump_allocator:
            end_allocations(shared.module, w, arena_address)
        w.ret(code)

    frame = BlockBuffers(arena_address, ())
    return _kernel(shared, function, w, frame, arena_address, limit, leave, is_called=False)


def begin_callee(shared: ProgramContext, function: Function, symbol: str) -> FunctionEmitter:
    """A callee, up to its first instruction."""
    parameters = [*_tensors(function), Argument(PTR, "noalias"), Argument(PTR)]
    attributes = _attributes(function)
    w = shared.module.function(symbol, parameters, I64, linkage="internal", attributes=attributes)
    report, limit = w.parameters[-2:]
    reach = frame_address(w)
    shared.stack_checks.append(StackCheck(w, len(w.lines) - 1))
    too_deep = w.icmp("ult", reach, limit)
    _stop_if(shared, w, report, too_deep, function, Problem.DEPTH, shared.stack_bytes)
    size = arena_bytes(function) - HEADER_BYTES
    arena: Register = ZERO_ELEMENT
    leave: Callable[[Register], None] = w.ret
    if 0 < size <= ON_STACK:
        arena = w.allocate(I8, size)
    elif size:
        arena, leave = _on_heap(shared, w, report, function, size)
    frame = BlockBuffers(arena, (), HEADER_BYTES)
    return _kernel(shared, function, w, frame, report, limit, leave, is_called=True)


def _kernel(
    shared: ProgramContext,
    function: Function,
    w: FunctionWriter,
    frame: BlockBuffers,
    report: Register,
    limit: Register | None,
    leave: Callable[[Register], None],
    *,
    is_called: bool,
) -> FunctionEmitter:
    inputs = len(function.parameters)
    outputs = w.parameters[inputs : inputs + len(function.type.results)]
    addresses = dict(zip(function.parameters, w.parameters, strict=False))
    frame = replace(frame, outputs=outputs)
    _take_over(w, function, addresses, outputs)
    checks = Checks(shared.sites)
    chain: Register | None = None
    if _keeps_list(function):
        chain = w.allocate(PTR, align=8)
        w.store(constant(PTR, 0), chain)
        leave = _giving_back(shared, w, chain, leave)
    k = FunctionEmitter(shared, w, report, [frame], limit, leave, addresses, checks, chain)
    if shared.process is not None and shared.polls:
        k.polls = Polls.begin(
            shared.module, w, report, checks, shared.process, function, is_called=is_called
        )
        if is_called:
            k.leave = k.polls.before_return(leave)
    return k


def _giving_back(
    shared: ProgramContext, w: FunctionWriter, chain: Register, leave: Callable[[Register], None]
) -> Callable[[Register], None]:
    """The epilogue of a function that frees a list of heap memory."""

    def give_back(code: Register) -> None:
        free_chunks(shared.module, w, w.load(chain, PTR))
        leave(code)

    return give_back


def _take_over(
    w: FunctionWriter,
    function: Function,
    addresses: dict[Value, Register],
    outputs: Sequence[Register],
) -> None:
    """Let donated parameters lie in the outputs of their results: copied there, if the caller gives two buffers."""
    for parameter, target in zip(donated_parameters(function), outputs, strict=False):
        if parameter is not None:
            with w.when(w.icmp("ne", addresses[parameter], target), hint="donated"):
                write_copy(w, addresses[parameter], target, parameter.tensor)
            addresses[parameter] = target


def _tensors(function: Function) -> list[Argument]:
    """Parameters that point to the operands and the results; one of each may be one buffer where it is donated."""
    donated = donated_parameters(function)
    results = function.entry.terminator.operands
    taken = (
        f"{'' if p in donated else 'noalias '}readonly align {p.tensor.dtype.bytes}"
        for p in function.parameters
    )
    made = (
        f"{'noalias ' if n >= len(donated) or donated[n] is None else ''}align {r.tensor.dtype.bytes}"
        for n, r in enumerate(results)
    )
    return [*(Argument(PTR, text) for text in taken), *(Argument(PTR, text) for text in made)]


def _on_heap(
    shared: ProgramContext, w: FunctionWriter, report: Register, function: Function, size: int
) -> tuple[Register, Callable[[Register], None]]:
    """Allocates an arena for each call, with the epilogue that frees it."""
    block = emit_malloc(w, size)
    missing = w.icmp("eq", block, constant(PTR, 0))
    _stop_if(shared, w, report, missing, function, Problem.MEMORY, size)

    def leave(code: Register) -> None:
        w.call_void("free", [block])
        w.ret(code)

    return emit_aligned(w, block), leave


def _stop_if(
    shared: ProgramContext,
    w: FunctionWriter,
    report: Register,
    failed: Register,
    function: Function,
    problem: Problem,
    size: int,
) -> None:
    """Return at once if it has failed."""
    name = function.made_from or function.name
    shared.sites.append(CheckSite(function.entry.instructions[0].location, problem, name))
    stops, goes_on = w.new_label("stop"), w.new_label("begin")
    w.branch_if(failed, stops, goes_on, rarely=True)
    w.begin(stops)
    w.store(constant(I64, 0), report)
    w.store(constant(I64, size), w.offset(report, 8))
    w.ret(constant(I64, len(shared.sites)))
    w.begin(goes_on)


def _stack_limit(shared: ProgramContext, w: FunctionWriter) -> Register:
    """The address below which the stack of this thread must not reach."""
    if shared.process is None:
        return frame_address(w, shared.stack_bytes)
    return stack_limit(shared.module, w, shared.stack_bytes)


def _has_calls(function: Function) -> bool:
    return any(op.effect & Effect.CALL for op in _ops(function))


def _keeps_list(function: Function) -> bool:
    """Whether the function allocates heap memory with the lifetime of the call."""
    return not {"call", "frame"}.isdisjoint(owners_of(function))


def owners_of(function: Function) -> set[str]:
    """The lifetimes of the heap memory that the function allocates."""
    return {op.owner for op in _ops(function) if isinstance(op, AllocateBytes)}


def _uses_bump_allocator(shared: ProgramContext, function: Function) -> bool:
    """Whether the function or a callee allocates memory with the lifetime of the run."""
    found = {function.name}
    pending = [function]
    while pending:
        caller = pending.pop()
        if "run" in owners_of(caller):
            return True
        for op in _ops(caller):
            name = op.called or op.referred
            callee = shared.functions.get(name) if name is not None else None
            if callee is not None and callee.name not in found and callee.body is not None:
                found.add(callee.name)
                pending.append(callee)
    return False


def _ops(function: Function) -> Iterator[Op]:
    return (i.op for body in bodies_of(function) for i in body.block.instructions)


def _attributes(function: Function) -> str:
    """LLVM attributes; mem2reg is asked for where control flow or memory makes scalars stack variables."""
    return f'nounwind "{REGISTERS}"' if has_variables(function) else "nounwind"
