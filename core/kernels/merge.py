"""Makes one kernel of several that follow each other, of which some read what those before them make.

What lies between them need not be stored: `cse` gives loads the values that were stored, and what nobody reads any more
is dropped, with its buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Region, Value
from ..ir.surgery import with_bodies
from .access_ops import StoreAt, buffer_of
from .cse import cse, drop_dead_code
from .errors import IllegalRewrite
from .guarded_ops import ReshapeBuffer
from .loops import body_of, inside, loop_op, loops_of, make_yield, take_apart
from .ops import BoundedLoop, Kernel, Loop
from .unroll import unroll

_MOST_ITERATIONS: Final = 4
"""Of a loop that is written out: as many as there are numbers of f64 in half of a cache line."""


def merge(kernels: Sequence[Instruction[Kernel]]) -> Instruction[Kernel]:
    """The kernel of all of these, in no block yet: its results are theirs, as far as others use them.

    Loops of few iterations are written out, so that numbers in them can be lanes of vectors that are known.

    Raises: IllegalRewrite when threads have buffers of their own in one of them.
    """
    if any(kernel.op.private for kernel in kernels):
        raise IllegalRewrite("threads have buffers of their own")
    joined = _joined_buffers(kernels)
    results = [result for kernel in kernels for result in kernel.results]
    scratch = [x for kernel in kernels for x in _arguments(kernel)[2]]
    said = set(_said(kernels))
    instructions = [i for kernel in kernels for i in take_apart(kernel.regions[0].entry)[0]]
    body = Block([], [*instructions, make_yield()], "body")
    touched = _touched(body.instructions)
    operands = [x for x, buffer in joined.items() if buffer in touched and x not in set(results)]
    overwriting = [
        (x, y)
        for x in operands
        for y in results
        if x.type == y.type and ((x, y) in said or touched[joined[x]][1] < touched[joined[y]][0])
    ]
    for kernel in kernels:
        kernel.set_operands(())
    _unroll_short_loops(body)
    cse(body)  # nothing is read of an operand where a result in its place has been written
    kept = [y for y in results if y.uses]
    unread = [joined[y] for y in results if not y.uses]
    _drop_stores(body, unread)
    drop_dead_code(body)
    operands = [x for x in operands if joined[x].uses]
    scratch = [buffer for buffer in (*scratch, *unread) if buffer.uses]
    body.arguments = [*(joined[x] for x in (*operands, *kept)), *scratch]
    pairs = [(x, y) for x, y in overwriting if x in operands and y in kept]
    op = Kernel(
        tuple([y.type for y in kept]),
        tuple([(operands.index(x), kept.index(y)) for x, y in pairs]),
        tuple([buffer_of("kernel", buffer.type) for buffer in scratch]),
    )
    made = Instruction(op, tuple(operands), tuple(kept), (Region([body]),), kernels[0].location)
    for number, result in enumerate(kept):  # which those that use them know already
        result.producer, result.index = made, number
    return made


def is_plain(instruction: Instruction) -> bool:
    """Whether it computes, loads, or stores at affine indices, on one thread: what `cse` sees through."""
    op = instruction.op
    if isinstance(op, Loop):
        return not op.grain
    if isinstance(op, ReshapeBuffer | BoundedLoop):
        return False
    return op.effect in (Effect.NONE, Effect.READ) or isinstance(op, StoreAt)


def _arguments(kernel: Instruction[Kernel]) -> tuple[list[Value], list[Value], list[Value]]:
    """The buffers of a kernel: those of its operands, of its results, and what it works with."""
    arguments, count = kernel.regions[0].entry.arguments, len(kernel.operands)
    end = count + len(kernel.results)
    return arguments[:count], arguments[count:end], arguments[end:]


def _joined_buffers(kernels: Sequence[Instruction[Kernel]]) -> dict[Value, Value]:
    """One buffer for each value, which all kernels use now."""
    joined: dict[Value, Value] = {}
    for kernel in kernels:
        read, made, _ = _arguments(kernel)
        for value, buffer in zip(kernel.operands, read, strict=True):
            buffer.replace_all_uses_with(joined.setdefault(value, buffer))
        joined.update(zip(kernel.results, made, strict=True))
    return joined


def _said(kernels: Sequence[Instruction[Kernel]]) -> Iterator[tuple[Value, Value]]:
    """Operands and results that may share a buffer, as one of them says, and as none behind it reads the operand."""
    later: set[Value] = set()
    for kernel in reversed(kernels):
        for x, y in kernel.op.overwriting:
            if kernel.operands[x] not in later:
                yield kernel.operands[x], kernel.results[y]
        later.update(kernel.operands)


def _touched(instructions: Sequence[Instruction]) -> dict[Value, tuple[int, int]]:
    """Between which instructions each value is used."""
    found: dict[Value, tuple[int, int]] = {}
    for number, instruction in enumerate(instructions):
        for one in with_bodies([instruction]):
            for operand in one.operands:
                first, _ = found.get(operand, (number, number))
                found[operand] = first, number
    return found


def _unroll_short_loops(block: Block) -> None:
    for loop in loops_of(block):
        if not loops_of(body_of(loop)) and loop_op(loop).count <= _MOST_ITERATIONS:
            unroll(block, loop)


def _drop_stores(body: Block, buffers: Iterable[Value]) -> None:
    """Drop the stores to buffers that are only stored to."""
    stores = {
        store
        for buffer in buffers
        if all(isinstance(use.op, StoreAt) for use in buffer.uses)
        for store in buffer.uses
    }
    if not stores:
        return
    for block in (body, *(body_of(one) for one in inside(body) if one.regions)):
        block.instructions[:] = [i for i in block.instructions if i not in stores]
    for store in stores:
        store.set_operands(())
