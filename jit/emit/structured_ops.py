"""Writes `if`, `while` and `for`: branches and loops around the blocks of their bodies.

What is carried lies in the buffers of the results all along: the first values are copied there before the loop,
and `yield` copies what does not lie there already.

Each writer yields the body whose block is to be written next, so that bodies in bodies do not become depth of
Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from ...core.ir import Block, Instruction, Value
from ...core.ops.flows import Role, element_of, flows_in, operands_of
from ...core.ops.structured import For, If, While
from ...core.types import BOOL, TensorType
from .element_access import element_address
from .elements import memory_type, unpack
from .fill import write_copy
from .function_emitter import BlockBuffers, FunctionEmitter
from .indices import multiply_constant
from .sites import CheckSite, Problem
from .writer import I8, I64, OpenLoop, Register, constant


def write_if(k: FunctionEmitter, instruction: Instruction[If]) -> Iterator[Block]:
    """One of two bodies, both of which write to the results."""
    w = k.w
    results = k.place_results(instruction)
    condition, inputs = instruction.operands[0], _inputs(k, instruction)
    labels = w.new_label("then"), w.new_label("else")
    done = w.new_label("if.done")
    frame = BlockBuffers(k.in_arena(instruction.placement.frame), results)
    w.branch_if(as_i1(k, condition), *labels)
    for region, label in zip(instruction.regions, labels, strict=True):
        w.begin(label)
        k.enter(region.entry, inputs, frame)
        yield region.entry
        k.exit()
        w.branch(done)
    w.begin(done)


def write_while(k: FunctionEmitter, instruction: Instruction[While]) -> Iterator[Block]:
    """A loop with its condition in the header; where it polls, unrolled so that several iterations share a poll."""
    w = k.w
    carried = _carry(k, instruction)
    arguments = [*carried, *_inputs(k, instruction)]
    arena = k.in_arena(instruction.placement.frame)
    condition, body = (region.entry for region in instruction.regions)
    head, done = w.new_label("while"), w.new_label("while.done")
    copies = 1 if k.polls is None else k.polls.copies(condition, body)
    w.branch(head)
    w.begin(head)
    for copy in range(copies):
        k.enter(condition, arguments, BlockBuffers(arena, ()))
        yield condition
        k.exit()
        inside = w.new_label("do")
        w.branch_if(as_i1(k, condition.terminator.operands[0]), inside, done)
        w.begin(inside)
        if k.polls is not None and copy == 0:
            k.polls.spend(copies * sum(map(k.polls.safepoints.at_start, (condition, body))))
        k.enter(body, arguments, BlockBuffers(arena, carried))
        yield body
        k.exit()
    w.branch(head)
    w.begin(done)


def write_for(k: FunctionEmitter, instruction: Instruction[For]) -> Iterator[Block]:
    """A loop that keeps its index in a variable, and stacks into row after row."""
    op, w = instruction.op, k.w
    carried = _carry(k, instruction)
    inputs = _inputs(k, instruction)
    arena = k.in_arena(instruction.placement.frame)
    lower, upper = (w.load(k.address(bound), I64) for bound in instruction.operands[:2])
    if op.stacked:
        _check_trips(k, instruction, op, lower, upper)
    stacked = instruction.results[len(carried) :]
    body = instruction.regions[0].entry
    index = w.allocate(I64, align=8)
    with _iterations(k, instruction, lower, upper) as loop:
        w.store(loop.index, index)
        rows = _rows(k, stacked, w.sub(loop.index, lower)) if stacked else []
        k.enter(body, [index, *carried, *inputs], BlockBuffers(arena, [*carried, *rows]))
        yield body
        k.exit()


@contextmanager
def _iterations(
    k: FunctionEmitter, instruction: Instruction, lower: Register, upper: Register
) -> Generator[OpenLoop]:
    """The loop of a `for`; a long one as a loop of blocks of iterations, each of which polls once."""
    w, one = k.w, constant(I64, 1)
    body = instruction.regions[0].entry
    if k.polls is None or not k.polls.safepoints.is_long(instruction):
        with w.loop(lower, upper, one, hint="for") as loop:
            yield loop
        return
    most = constant(I64, k.polls.block_length(body))
    blocks, done = w.new_label("for.blocks"), w.new_label("for.done")
    before = w.block
    w.branch_if(w.icmp("slt", lower, upper), blocks, done)
    w.begin(blocks)
    start = w.phi(I64)
    start.add_incoming(lower, before)
    rest = w.sub(upper, start.register)  # it may be 2⁶³ or more
    count = w.select(w.icmp("ult", rest, most), rest, most)
    end = w.add(start.register, count)
    k.polls.spend_for(count, body)
    with w.loop(start.register, end, one, hint="for", guarded=False) as loop:
        yield loop
    start.add_incoming(end, w.block)
    w.branch_if(w.icmp("slt", end, upper), blocks, done)
    w.begin(done)


def write_yield(k: FunctionEmitter, instruction: Instruction) -> None:
    """Copy yielded values that are not in their destination buffers yet; buffer assignment rules out overlaps."""
    for value, target in zip(instruction.operands, k.frame.outputs, strict=False):
        write_copy(k.w, k.address(value), target, value.tensor)


def _carry(k: FunctionEmitter, instruction: Instruction) -> list[Register]:
    """The buffers of the carried values, initialised."""
    first = [k.address(value) for value in _operands(instruction, Role.CARRIED)]
    buffers = k.place_results(instruction)[: len(first)]
    for source, target, result in zip(first, buffers, instruction.results, strict=False):
        write_copy(k.w, source, target, result.tensor)
    return buffers


def _inputs(k: FunctionEmitter, instruction: Instruction) -> list[Register]:
    return [k.address(value) for value in _operands(instruction, Role.INPUT)]


def _operands(instruction: Instruction, role: Role) -> list[Value]:
    return [x for flow in flows_in(instruction, role) for x in operands_of(instruction, flow)]


def _check_trips(
    k: FunctionEmitter, instruction: Instruction, op: For, lower: Register, upper: Register
) -> None:
    """Check that the trip count is the extent of the stacked results."""
    w = k.w
    (extent, *_) = (type.shape[0] for type in op.stacked if isinstance(type, TensorType))
    runs = w.icmp("slt", lower, upper)
    trips = w.select(runs, w.sub(upper, lower), constant(I64, 0))
    site = k.checks.add(CheckSite(instruction.location, Problem.TRIPS))
    wanted = constant(I64, extent)
    k.checks.stop_if(w, w.icmp("ne", trips, wanted), site, trips, wanted)


def _rows(k: FunctionEmitter, stacked: Sequence[Value], number: Register) -> list[Register]:
    """Where iteration `number` puts its element of each stacked result."""
    rows: list[Register] = []
    for result in stacked:
        element = element_of(result.type)
        assert isinstance(element, TensorType)
        distance = multiply_constant(k.w, number, element.bytes)
        rows.append(element_address(k.w, k.address(result), I8, distance))
    return rows


def as_i1(k: FunctionEmitter, value: Value) -> Register:
    """A bool as an `i1`."""
    return unpack(k.w, k.w.load(k.address(value), memory_type(BOOL)), BOOL)
