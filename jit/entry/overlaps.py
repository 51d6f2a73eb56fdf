"""Emits the check that arrays to write to share no memory with arguments, nor with each other."""

from __future__ import annotations

from ..emit.writer import I1, I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant
from .access import require
from .signature import Signature


def require_disjoint(
    module: ModuleWriter, w: FunctionWriter, signature: Signature, pointers: Register, mismatch: str
) -> None:
    """Go to the label `mismatch` if a result overlaps an argument or a result before it.

    `pointers` are the addresses of the arguments' leaves, then of the results'.
    """
    if signature.outputs:
        overlap = w.call(_write_overlaps(module, w.name, signature), I1, [pointers])
        require(w, [w.icmp("eq", overlap, constant(I1, 0))], mismatch)


def _write_overlaps(module: ModuleWriter, entry: str, signature: Signature) -> str:
    """`i1 overlaps(ptr pointers)`: whether any two ranges have a byte in common, one of which is a result's."""
    name = f"{entry}.overlaps"
    lengths = [leaf.bytes for leaf in (*signature.inputs, *signature.outputs)]
    table = b"".join(length.to_bytes(8, "little") for length in lengths)
    sizes = module.data(f"{entry}.bytes", table, align=8)
    w = module.function(name, [Argument(PTR)], I1, linkage="internal")
    (pointers,) = w.parameters
    zero, one = constant(I64, 0), constant(I64, 1)
    first, count = constant(I64, len(signature.inputs)), constant(I64, len(lengths))
    found = constant(I1, 0)
    with w.loop(first, count, one, [found]) as written:
        start, end = _range(w, pointers, sizes, written.index)
        with w.loop(zero, written.index, one, written.values) as other:
            begins, ends = _range(w, pointers, sizes, other.index)
            meets = w.and_(w.icmp("ult", start, ends), w.icmp("ult", begins, end))
            # what is empty has no byte, wherever it lies
            filled = w.and_(w.icmp("ult", start, end), w.icmp("ult", begins, ends))
            other.carry(w.or_(other.values[0], w.and_(meets, filled)))
        written.carry(other.results[0])
    w.ret(written.results[0])
    return name


def _range(
    w: FunctionWriter, pointers: Register, sizes: Register, index: Register
) -> tuple[Register, Register]:
    """The bytes of a leaf, as addresses."""
    start = w.load(w.gep(pointers, I64, index), I64)
    return start, w.add(start, w.load(w.gep(sizes, I64, index), I64))
