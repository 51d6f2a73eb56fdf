"""Sets a whole buffer to one value before a nest writes or joins its elements."""

from __future__ import annotations

from ...core.ops.nest import Output
from .elements import element, identity, memory_type, pack
from .memory import shift, step
from .writer import I1, I8, I64, FunctionWriter, Register, constant

_VECTOR_BYTES = 64


def write_fill(w: FunctionWriter, base: Register, output: Output) -> None:
    """Every element becomes the combinator's identity, or zero without one."""
    dtype, size = output.type.dtype, output.type.size
    if output.combinator is None:
        value = element(dtype, 0)
    else:
        value = identity(output.combinator, dtype)
    stored = dtype.store(dtype.numpy.type(output.fill)[None]).tobytes()
    if len(set(stored)) == 1:
        _write_bytes(w, base, stored[0], output.type.bytes)
        return
    lanes = _VECTOR_BYTES // dtype.bytes
    type = memory_type(dtype)
    vectors = size // lanes
    spread = pack(w, w.splat(value, lanes), dtype)
    if vectors:
        with w.loop(constant(I64, 0), constant(I64, vectors * lanes), constant(I64, lanes)) as loop:
            w.store(spread, step(w, base, type, loop.index))
    for number in range(vectors * lanes, size):
        w.store(w.extract(spread, 0), shift(w, base, number * dtype.bytes))


def _write_bytes(w: FunctionWriter, base: Register, byte: int, count: int) -> None:
    if count:
        arguments = [base, constant(I8, byte), constant(I64, count), constant(I1, 0)]
        w.call_void("llvm.memset.p0.i64", arguments)
