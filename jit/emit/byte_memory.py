"""Writes the ops on bytes: reads, writes, allocations, addresses, checks.

| memory lasts until   | comes from            | is given back                                      |
|----------------------|-----------------------|----------------------------------------------------|
| heap                 | `calloc`              | by `freeBytes`                                     |
| frame                | the function's stack  | with it                                            |
| call                 | `calloc`, in a list   | when the function returns (`FunctionEmitter.chain`)         |
| run                  | chunks, piece by piece (`bump_allocator`) | when the kernel returns                 |
| program              | `calloc`              | never                                              |
"""

from __future__ import annotations

from typing import Final

from ...core.errors import InternalError
from ...core.ir import Instruction, Value
from ...core.ops.byte_memory import (
    FIRST_ADDRESS,
    AddressOf,
    AllocateBytes,
    CheckAddress,
    FunctionAddress,
    ReadBytes,
    StopIf,
    WriteBytes,
)
from ...core.ops.literal import number_of
from .bump_allocator import allocated_bytes, bump_allocate
from .element_access import offset_bytes
from .fill import write_copy
from .function_emitter import FunctionEmitter
from .sites import CheckSite, Problem
from .structured_ops import as_i1
from .writer import I1, I8, I64, PTR, Register, constant

CHAIN_HEAD: Final = 16
"""Bytes before what lasts until the function returns: the address of the block before it, and what follows is aligned
as `calloc` does."""


def write_read(k: FunctionEmitter, instruction: Instruction[ReadBytes]) -> None:
    """Copy from memory to the buffer of the result."""
    op = instruction.op
    source = _pointer(k, instruction.operands[0], op.offset)
    (target,) = k.place_results(instruction)
    write_copy(k.w, source, target, op.type)


def write_write(k: FunctionEmitter, instruction: Instruction[WriteBytes]) -> None:
    """Copy from a buffer to memory."""
    op = instruction.op
    value, address = instruction.operands
    write_copy(k.w, k.address(value), _pointer(k, address, op.offset), value.tensor)


def write_move(k: FunctionEmitter, instruction: Instruction) -> None:
    """`memmove`."""
    source, target, count = instruction.operands
    arguments = [_pointer(k, target), _pointer(k, source), _word(k, count), constant(I1, 0)]
    k.w.call_void("llvm.memmove.p0.p0.i64", arguments)


def write_free(k: FunctionEmitter, instruction: Instruction) -> None:
    """`free`, which does nothing for null."""
    k.w.call_void("free", [_pointer(k, instruction.operands[0])])


def write_allocate(k: FunctionEmitter, instruction: Instruction[AllocateBytes]) -> None:
    """Allocates memory, zeroed except for the bump allocator's."""
    op, w = instruction.op, k.w
    (count,) = instruction.operands
    size = _word(k, count)
    (target,) = k.place_results(instruction)
    known = number_of(count)
    if op.owner == "frame" and known is not None:
        memory = w.allocate(I8, known, align=16)
        w.call_void("llvm.memset.p0.i64", [memory, constant(I8, 0), size, constant(I1, 0)])
    elif op.owner == "run":
        memory = bump_allocate(
            k.shared.module, w, k.report, size, is_limited=k.shared.process is not None
        )
        site = k.checks.add(CheckSite(instruction.location, Problem.KEPT))
        missing = w.icmp("eq", memory, constant(PTR, 0))
        k.checks.stop_if(w, missing, site, size, allocated_bytes(w, k.report))
    elif op.owner in ("call", "frame"):
        memory = _chained(k, instruction, size)
    else:
        memory = w.call("calloc", PTR, [constant(I64, 1), size])
        _check_there(k, instruction, memory, size)
    w.store(w.ptrtoint(memory), target)


def write_address(k: FunctionEmitter, instruction: Instruction[AddressOf]) -> None:
    """The address of a global variable, which is zero at first."""
    op = instruction.op
    variable = k.shared.module.variable(variable_symbol(op.symbol), op.bytes)
    (target,) = k.place_results(instruction)
    k.w.store(k.w.ptrtoint(variable), target)


def write_function_address(k: FunctionEmitter, instruction: Instruction[FunctionAddress]) -> None:
    """The address of a function of the program, which is emitted as a callee if it has not been yet."""
    op = instruction.op
    function = Register(f"@{k.shared.symbol(op.symbol)}", PTR)
    (target,) = k.place_results(instruction)
    k.w.store(k.w.ptrtoint(function), target)


def write_check(k: FunctionEmitter, instruction: Instruction[CheckAddress]) -> None:
    """Leave the program if an address leads nowhere."""
    op = instruction.op
    address = _word(k, instruction.operands[0])
    site = k.checks.add(CheckSite(instruction.location, Problem.ADDRESS, text=op.action))
    nowhere = k.w.icmp("slt", address, constant(I64, FIRST_ADDRESS))
    k.checks.stop_if(k.w, nowhere, site, address, constant(I64, 0))


def write_stop(k: FunctionEmitter, instruction: Instruction[StopIf]) -> None:
    """Leave the program if a condition is true."""
    op = instruction.op
    site = k.checks.add(CheckSite(instruction.location, Problem.STOP, text=op.message))
    zero = constant(I64, 0)
    k.checks.stop_if(k.w, as_i1(k, instruction.operands[0]), site, zero, zero)


def variable_symbol(name: str) -> str:
    """What a global variable is called in the text; other names give other symbols."""
    plain = (c if c.isascii() and (c.isalnum() or c == ".") else f"_{ord(c):x}_" for c in name)
    return f"nnkit.variable.{''.join(plain)}"


def _chained(k: FunctionEmitter, instruction: Instruction, size: Register) -> Register:
    """Allocates from the heap, on the list that the function frees when it returns."""
    w = k.w
    if k.chain is None:
        raise InternalError("memory is allocated until a function returns that keeps no list of it")
    whole = w.add(size, constant(I64, CHAIN_HEAD))
    block = w.call("calloc", PTR, [constant(I64, 1), whole])
    _check_there(k, instruction, block, size)
    w.store(w.load(k.chain, PTR), block)
    w.store(block, k.chain)
    return offset_bytes(w, block, CHAIN_HEAD)


def _check_there(
    k: FunctionEmitter, instruction: Instruction, memory: Register, size: Register
) -> None:
    site = k.checks.add(CheckSite(instruction.location, Problem.STOP, text="out of memory"))
    missing = k.w.icmp("eq", memory, constant(PTR, 0))
    k.checks.stop_if(k.w, missing, site, size, constant(I64, 0))


def _word(k: FunctionEmitter, value: Value) -> Register:
    return k.w.load(k.address(value), I64)


def _pointer(k: FunctionEmitter, address: Value, offset: int = 0) -> Register:
    return offset_bytes(k.w, k.w.inttoptr(_word(k, address)), offset)
