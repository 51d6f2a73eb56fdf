"""Hides from LLVM that a kernel writes narrow integers over an operand that they were selected from.

LLVM takes a store of `select(mask, truncated, what is there)` for a masked store, and stores too much where it knows
the mask (Note [Stores under constant masks] in `element_access`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.ir import Instruction
from ...core.kernels.ops import Kernel, executed
from ...core.ops.comparison import Select
from ...core.types import I64, DType
from .element_access import opaque_address
from .writer import FunctionWriter, Register


def hidden_results(
    w: FunctionWriter, kernel: Instruction[Kernel], bases: Sequence[Register]
) -> Sequence[Register]:
    """The addresses, those of results hidden that could be selected of what is there and of something truncated."""
    narrow = [n for n, result in enumerate(kernel.results) if _is_narrow(result.tensor.dtype)]
    if not narrow or not _selects(kernel):
        return bases
    first = len(kernel.operands)
    operands = [
        (base, value.tensor.dtype) for base, value in zip(bases, kernel.operands, strict=False)
    ]
    found = list(bases)
    for number in narrow:
        dtype, base = kernel.results[number].tensor.dtype, bases[first + number]
        may_be_there = any(
            dtype == other and (base == there or (_is_computed(base) and _is_computed(there)))
            for there, other in operands
        )
        if may_be_there:
            found[first + number] = opaque_address(w, base)
    return found


def _selects(kernel: Instruction[Kernel]) -> bool:
    """Whether something is selected: by a mask that LLVM knows, perhaps, as another kernel stored numbers of lanes."""
    return any(isinstance(one.op, Select) for _, one in executed(kernel))


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits < I64.bits


def _is_computed(base: Register) -> bool:
    """Whether an address is computed, neither a parameter nor a constant, so that it may be selected with another."""
    return not base.text.startswith(("%p", "@"))
