"""Writes the loops of kernels: a loop is a loop, and a parallel one a function that the threads of the pool call."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import InternalError
from ...core.ir import Block, Instruction, Value
from ...core.kernels.guarded_ops import CheckIndex
from ...core.kernels.loops import inside
from ...core.kernels.ops import BoundedLoop, Loop, body_nanoseconds
from ..runtime.pool_code import MOST_BLOCKS, MOST_THREADS
from .element_access import element_address
from .indices import add_constant, multiply_constant
from .kernel_writer import KernelWriter
from .parallel import ParallelLoops
from .parallel_checks import FailureRecord
from .writer import I8, I64, FunctionWriter, Register, constant


def write_loop(k: KernelWriter, instruction: Instruction[Loop]) -> None:
    op, block = instruction.op, instruction.regions[0].entry
    if k.parallel is not None and 0 < op.grain < op.count:
        _write_parallel_loop(k, instruction, k.parallel)
        return
    carried = [k.values[value] for value in instruction.operands]
    bounds = [constant(I64, number) for number in (op.lower, op.upper, op.step)]
    results: Sequence[Register] = carried
    if op.count == 1:
        results = k.enter(block, [bounds[0], *carried])
    elif op.count:
        start, stop, step = bounds
        with k.w.loop(start, stop, step, carried, guarded=False) as loop:
            loop.carry(*k.enter(block, [loop.index, *loop.values]))
        results = loop.results
    k.values.update(zip(instruction.results, results, strict=True))


def write_bounded_loop(k: KernelWriter, instruction: Instruction[BoundedLoop]) -> None:
    op, w = instruction.op, k.w
    first, stop, *carried = [k.values[value] for value in instruction.operands]
    start = w.smax(first, constant(I64, op.lower))
    end = w.smin(stop, constant(I64, op.upper))
    with w.loop(start, end, constant(I64, 1), carried, most=op.count) as loop:
        loop.carry(*k.enter(instruction.regions[0].entry, [loop.index, *loop.values]))
    k.values.update(zip(instruction.results, loop.results, strict=True))


def _write_parallel_loop(
    k: KernelWriter, instruction: Instruction[Loop], parallel: ParallelLoops
) -> None:
    """Blocks of `grain` iterations; what is read of outside is given to the function that runs one."""
    op, block = instruction.op, instruction.regions[0].entry
    grain = max(op.grain, -(-op.count // MOST_BLOCKS))
    length = grain * op.step
    outside = _values_outside(block)
    private = [value for value in outside if value in k.private]
    threads = min((k.private[buffer].threads for buffer in private), default=MOST_THREADS)
    given = [k.values[value] for value in outside]
    record = _failure_record(k, block)
    if record is not None:
        given += [record.record, record.report]

    def write(
        w: FunctionWriter, given: Sequence[Register], number: Register, thread: Register
    ) -> None:
        values = dict(zip(outside, given, strict=False))
        for buffer in private:
            own = multiply_constant(w, thread, k.private[buffer].apart)
            values[buffer] = element_address(w, values[buffer], I8, own)
        inner = k.within(w, values)
        if record is None:
            write_block(inner, number)
            return
        assert k.checks is not None
        own_record = FailureRecord(*given[len(outside) :])
        with own_record.block(parallel.module, w, number, k.checks.sites) as inner.checks:
            write_block(inner, number)

    def write_block(inner: KernelWriter, number: Register) -> None:
        w = inner.w
        inner.write_sums(outside)
        first = add_constant(w, multiply_constant(w, number, length), op.lower)
        if grain == 1:
            inner.enter(block, [first])
            return
        stop = add_constant(w, first, length)
        if op.count % grain:
            stop = w.smin(stop, constant(I64, op.upper))
        with w.loop(first, stop, constant(I64, op.step), guarded=False) as loop:
            inner.enter(block, [loop.index])

    work = op.count * body_nanoseconds(instruction)
    parallel.write(k.w, -(-op.count // grain), given, write, nanoseconds=work, threads=threads)
    if record is not None:
        assert k.checks is not None
        k.checks.pass_on(k.w, record.code(k.w))


def _failure_record(k: KernelWriter, block: Block) -> FailureRecord | None:
    """That of the blocks of a loop, if any check stands in it."""
    if not any(isinstance(one.op, CheckIndex) for one in inside(block)):
        return None
    if k.report is None:
        raise InternalError("a kernel that is a function has no checks")
    return FailureRecord.begin(k.w, k.report)


def _values_outside(block: Block) -> list[Value]:
    """What the body of a loop reads of the instructions and arguments around it."""
    made: set[Value] = set()
    read: dict[Value, None] = {}
    pending = [block]
    while pending:
        inner = pending.pop()
        made.update(inner.arguments)
        for instruction in inner.instructions:
            made.update(instruction.results)
            read.update(dict.fromkeys(instruction.operands))
            pending += [region.entry for region in instruction.regions]
    return [value for value in read if value not in made]
