"""Writes `check`, and `print`: a call of Python, which has the values shown.

    i32 @NAME.print(i64 site, ptr operands)

`operands` are the addresses of the tensors; what else is to be known of a `print`, its number says.  The function is
that of the program (`jit.runtime.printing`), and is called with the GIL.  If it fails, so does the program.
"""

from __future__ import annotations

from typing import Final

from ...core.errors import UnsupportedError
from ...core.ir import Instruction
from ...core.location import located
from ...core.ops.effects import Check, Print
from .function_emitter import FunctionEmitter
from .polls import reacquire_gil
from .sites import CheckSite, PrintSite, Problem
from .structured_ops import as_i1
from .writer import I32, I64, Register, constant

PRINT: Final = ".print"
"""Behind the name of a program, the symbol of the function that prints for it."""


def write_check_condition(k: FunctionEmitter, instruction: Instruction[Check]) -> None:
    """Leave the program unless a condition is true."""
    site = k.checks.add(CheckSite(instruction.location, Problem.CHECK, text=instruction.op.message))
    holds = as_i1(k, instruction.operands[0])
    zero = constant(I64, 0)
    k.checks.stop_if(k.w, k.w.not_(holds), site, zero, zero)


def write_print(k: FunctionEmitter, instruction: Instruction[Print]) -> None:
    """Hand the addresses of the operands to Python."""
    shared, w = k.shared, k.w
    if shared.process is None:
        error = UnsupportedError(
            "print needs Python, which compiled files do without: leave it out, or return the value"
        )
        raise located(error, instruction.location)
    types = tuple(operand.tensor for operand in instruction.operands)
    shared.prints.append(PrintSite(instruction.op, types))
    operands: Register = w.allocate(I64, max(len(types), 1), align=8)
    for position, operand in enumerate(instruction.operands):
        w.store(w.ptrtoint(k.address(operand)), w.offset(operands, 8 * position))
    if shared.polls:
        reacquire_gil(w, k.report)
    code = w.call(f"{shared.name}{PRINT}", I32, [constant(I64, len(shared.prints) - 1), operands])
    site = k.checks.add(CheckSite(instruction.location, Problem.RAISED))
    failed = w.icmp("ne", code, constant(I32, 0))
    k.checks.stop_if(w, failed, site, constant(I64, 0), constant(I64, 0))
