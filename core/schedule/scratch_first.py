"""Kernels that need much room to work in, before others that only make results: so they find it in outputs.

    %x = kernel …                     into output 0         %w = kernel … using <1630720 x f32> … scratch output 0
    %w = kernel … using <1630720 x f32> … scratch arena     %x = kernel …                     into output 0

The gradients of a layer by its input and by its weights are independent of each other, and the second one turns a
matrix (`kernels.turned`) for which the first one's output is room, as long as that has not been made
(`idle_outputs`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

from ..compute.bodies import base_of
from ..ir import Instruction, Value
from ..kernels.guarded_ops import CheckIndex
from ..kernels.ops import Kernel, executed, is_kernel
from ..types import TensorType
from .idle_outputs import LEAST_SCRATCH
from .switches import is_enabled


def order_by_scratch(
    instructions: Sequence[Instruction], returned: Collection[Value], replaced: Collection[Value]
) -> list[Instruction]:
    """The instructions of a block that returns these bases, whose results may replace others."""
    found = list(instructions)
    if not is_enabled("idle-outputs"):
        return found
    results, others = set(returned), set(replaced)
    last_reads = {base_of(x): one for one in found for x in one.operands}
    for position in range(1, len(found)):
        at = position
        while at and _pays(found[at - 1], found[at]):
            first, second = found[at - 1], found[at]
            if not _may_change(first, second, last_reads, results, others):
                break
            found[at - 1], found[at] = second, first
            at -= 1
    return found


def _pays(first: Instruction, second: Instruction) -> bool:
    """Whether the second one needs more room than the first one, which the results of that have."""
    if not (is_kernel(first) and is_kernel(second)):
        return False
    needed = _shared_bytes(second.op)
    rooms = (result.tensor.bytes for result in first.results)
    return needed >= LEAST_SCRATCH and _shared_bytes(first.op) < needed <= max(rooms, default=0)


def shared_buffers(kernel: Kernel) -> dict[int, TensorType]:
    """The buffers that all threads of a kernel work with, by their numbers among those it uses."""
    pairs = enumerate(zip(kernel.using, kernel.copies, strict=True))
    return {n: t for n, (t, copies) in pairs if not copies and isinstance(t, TensorType)}


def _shared_bytes(kernel: Kernel) -> int:
    return max((type.bytes for type in shared_buffers(kernel).values()), default=0)


def _may_change(
    first: Instruction,
    second: Instruction,
    last_reads: dict[Value, Instruction],
    returned: AbstractSet[Value],
    replaced: AbstractSet[Value],
) -> bool:
    """Whether the two may change places, and nothing lives longer in the arena then."""
    made = {*first.results, *second.results}
    read = {base_of(x) for x in first.operands}
    return (
        made <= returned
        and made.isdisjoint(base_of(x) for x in second.operands)
        # what the first one reads is read by others later, or nobody's room
        and not any(x.producer is not None and last_reads[x] is first for x in read - returned)
        and read.isdisjoint(replaced)
        and not _overwrites(second, read)
        and not (_fails(first) and _fails(second))
    )


def _overwrites(kernel: Instruction, bases: Collection[Value]) -> bool:
    """Whether a result of a kernel may lie where one of these does."""
    assert is_kernel(kernel)
    return any(base_of(kernel.operands[n]) in bases for n, _ in kernel.op.overwriting)


def _fails(kernel: Instruction) -> bool:
    """Whether it checks anything: of two errors the first one is told."""
    assert is_kernel(kernel)
    return any(isinstance(one.op, CheckIndex) for _, one in executed(kernel))
