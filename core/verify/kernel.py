"""Rules 31 to 33: kernels, and what stands in them.

That indices lie inside is no rule of the text: the evaluator, and `kernels.bounds`, say so.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Instruction, Op
from ..kernels.guarded_ops import GUARDED
from ..kernels.ops import KERNEL, Kernel
from ..ops import Literal, Pointwise, Yield
from ..ops.aggregate import listed
from ..ops.bits import BitCast
from ..ops.reduction import Broadcast
from ..types import PointerType, TensorType, Type

_OTHERS: tuple[type[Op], ...] = (*KERNEL[1:], *GUARDED, Literal, Broadcast, BitCast, Yield)


def body_violations(instruction: Instruction, op: Kernel) -> Iterator[str]:
    """Rule 31 of a kernel."""
    if len(instruction.regions) != 1 or len(instruction.regions[0].blocks) != 1:
        return
    block = instruction.regions[0].entry
    given: list[Type] = [argument.type for argument in block.arguments]
    tensors = [operand.type for operand in instruction.operands]
    expected: list[Type] = [PointerType(type) for type in (*tensors, *op.outputs, *op.using)]
    if given != expected:
        yield f"the body takes ({listed(given)}); it should take ({listed(expected)})"
    last = block.instructions[-1] if block.instructions else None
    if last is not None and isinstance(last.op, Yield) and last.operands:
        yield "the body of a kernel yields nothing: it writes its results"
    if any(not isinstance(type, TensorType) for type in (*op.outputs, *op.using)):
        yield f"a kernel writes tensors, not ({listed((*op.outputs, *op.using))})"
    if len(instruction.placement.scratch) != len(op.using):
        yield f"{len(instruction.placement.scratch)} scratch buffers for {len(op.using)}"
    if op.private and (len(op.private) != len(op.using) or min(op.private) < 0):
        yield f"there are {op.private} copies of {len(op.using)} buffers"


def kernel_violations(instruction: Instruction) -> Iterator[str]:
    """Rules 32 and 33 of an instruction in a kernel."""
    op = instruction.op
    if not (isinstance(op, Pointwise) or type(op) in _OTHERS):
        yield f"{op.name} cannot stand in a kernel"
        return
    for result in instruction.results:
        if isinstance(result.type, TensorType) and result.type.rank > 1:
            yield f"{op.name} makes a {result.type}; values in a kernel are scalars and vectors"
