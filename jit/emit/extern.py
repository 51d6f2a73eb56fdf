"""Emits wrappers around extern functions, which have the C interface of those that `dlc` compiles:

    int32_t NAME(const T *input…, T *output…)

A function of the calling convention of our own stands around each: a code that is not 0 is a failure.  It is called
with the GIL, as it may be a function of Python's.
"""

from __future__ import annotations

import re
from typing import Final

from ...core.errors import UnsupportedError
from ...core.ir import Function
from .function_emitter import ProgramContext
from .polls import reacquire_gil
from .sites import CheckSite, Problem
from .writer import I32, I64, PTR, Argument, constant

PREFIX: Final = "extern."
"""Before the name of an extern function, its name in our text."""


def write_extern(shared: ProgramContext, function: Function, symbol: str) -> None:
    """`i64 @SYMBOL(ptr inputs…, ptr outputs…, ptr report, ptr limit)`, which calls the function."""
    if not re.fullmatch(r"[A-Za-z_]\w*", function.name, re.ASCII):
        raise UnsupportedError(f"an extern function has a name of C, not {function.name!r}")
    count = len(function.type.parameters) + len(function.type.results)
    shared.externs[function.name] = f"{PREFIX}{function.name}"
    w = shared.module.function(symbol, [Argument(PTR)] * (count + 2), I64, linkage="internal")
    if shared.polls:
        reacquire_gil(w, w.parameters[count])
    code = w.call(shared.externs[function.name], I32, w.parameters[:count])
    failed, done = w.new_label("failed"), w.new_label("done")
    w.branch_if(w.icmp("ne", code, constant(I32, 0)), failed, done, rarely=True)
    w.begin(failed)
    shared.sites.append(CheckSite(None, Problem.EXTERN, function.name))
    report = w.parameters[count]
    w.store(w.cast("sext", code, "i64"), report)
    w.store(constant(I64, 0), w.offset(report, 8))
    w.ret(constant(I64, len(shared.sites)))
    w.begin(done)
    w.ret(constant(I64, 0))
