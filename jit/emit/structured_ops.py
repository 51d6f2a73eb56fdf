"""Writes `if`, `while` and `for`: branches and loops around the blocks of their bodies.

What is carried lies in the buffers of the results all along: the first values are copied there before the loop,
and `yield` copies what does not lie there already.  Where a value that is yielded as it was given changes places with
others, its buffer does (`moved_buffers`).

Each writer yields the body whose block is to be written next, so that bodies in bodies do not become depth of
Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from ...core.ir import Block, Instruction, Value
from ...core.lazy_dataclass import dataclass
from ...core.ops.flows import Role, element_of, flows_in, operands_of
from ...core.ops.structured import For, If, While
from ...core.schedule.moved_buffers import moved_buffers
from ...core.types import BOOL, TensorType
from .element_access import element_address
from .elements import memory_type, unpack
from .fill import write_copy
from .function_emitter import BlockBuffers, FunctionEmitter
from .indices import multiply_constant
from .sites import CheckSite, Problem
from .writer import I8, I64, PTR, FunctionWriter, OpenLoop, Register, constant


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
    carried = _Carried.of(k, instruction, _carry(k, instruction))
    inputs = _inputs(k, instruction)
    arena = k.in_arena(instruction.placement.frame)
    condition, body = (region.entry for region in instruction.regions)
    head, done = w.new_label("while"), w.new_label("while.done")
    copies = 1 if k.polls is None else k.polls.copies(condition, body)
    w.branch(head)
    w.begin(head)
    for copy in range(copies):
        now = carried.now(w)
        k.enter(condition, [*now, *inputs], BlockBuffers(arena, ()))
        yield condition
        k.exit()
        inside = w.new_label("do")
        w.branch_if(as_i1(k, condition.terminator.operands[0]), inside, done)
        w.begin(inside)
        if k.polls is not None and copy == 0:
            k.polls.spend(copies * sum(map(k.polls.safepoints.at_start, (condition, body))))
        k.enter(body, [*now, *inputs], carried.frame(arena, now))
        yield body
        k.exit()
    w.branch(head)
    w.begin(done)
    carried.bring_home(w)


def write_for(k: FunctionEmitter, instruction: Instruction[For]) -> Iterator[Block]:
    """A loop that keeps its index in a variable, and stacks into row after row."""
    op, w = instruction.op, k.w
    carried = _Carried.of(k, instruction, _carry(k, instruction))
    inputs = _inputs(k, instruction)
    arena = k.in_arena(instruction.placement.frame)
    lower, upper = (w.load(k.address(bound), I64) for bound in instruction.operands[:2])
    if op.stacked:
        _check_trips(k, instruction, op, lower, upper)
    stacked = instruction.results[len(carried.homes) :]
    body = instruction.regions[0].entry
    index = w.allocate(I64, align=8)
    with _iterations(k, instruction, lower, upper) as loop:
        w.store(loop.index, index)
        rows = _rows(k, stacked, w.sub(loop.index, lower)) if stacked else []
        now = carried.now(w)
        k.enter(body, [index, *now, *inputs], carried.frame(arena, now, rows))
        yield body
        k.exit()
    carried.bring_home(w)


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
    frame = k.frame
    places = frame.moves or range(len(frame.outputs))
    for value, place in zip(instruction.operands, places, strict=False):
        write_copy(k.w, k.address(value), frame.outputs[place], value.tensor)
    for number, variable in frame.moving.items():
        k.w.store(frame.outputs[places[number]], variable, align=8)


def _carry(k: FunctionEmitter, instruction: Instruction) -> list[Register]:
    """The buffers of the carried values, initialised."""
    first = [k.address(value) for value in _operands(instruction, Role.CARRIED)]
    buffers = k.place_results(instruction)[: len(first)]
    for source, target, result in zip(first, buffers, instruction.results, strict=False):
        write_copy(k.w, source, target, result.tensor)
    return buffers


@dataclass(frozen=True)
class _Carried:
    """The buffers of what a loop carries: where they begin, and variables with the addresses of those that move."""

    homes: Sequence[Register]
    types: Sequence[TensorType]
    moves: Sequence[int]
    moving: Mapping[int, Register]

    @classmethod
    def of(cls, k: FunctionEmitter, loop: Instruction, homes: Sequence[Register]) -> Self:
        moves = moved_buffers(loop)
        moving = {
            number: k.w.allocate(PTR, align=8)
            for number in range(len(homes))
            if moves[number] != number
        }
        for number, variable in moving.items():
            k.w.store(homes[number], variable, align=8)
        types = [result.tensor for result in loop.results[: len(homes)]]
        return cls(homes, types, moves if moving else (), moving)

    def now(self, w: FunctionWriter) -> list[Register]:
        """Where they are in this iteration."""
        return [
            w.load(self.moving[n], PTR, align=8) if n in self.moving else home
            for n, home in enumerate(self.homes)
        ]

    def frame(
        self, arena: Register, now: Sequence[Register], rows: Sequence[Register] = ()
    ) -> BlockBuffers:
        """That of the body."""
        return BlockBuffers(arena, [*now, *rows], moves=self.moves, moving=self.moving)

    def bring_home(self, w: FunctionWriter) -> None:
        """Have everything where it began, element by element, as buffers may have changed places with each other."""
        waiting = set(self.moving)
        while waiting:
            cycle = [min(waiting)]
            while (following := self.moves[cycle[-1]]) != cycle[0]:
                cycle.append(following)
            waiting -= set(cycle)
            self._bring(w, cycle)

    def _bring(self, w: FunctionWriter, numbers: Sequence[int]) -> None:
        """The same of buffers that change places with each other: if one is not at home, none is."""
        type = self.types[numbers[0]]
        element, one = memory_type(type.dtype), constant(I64, 1)
        now = [w.load(self.moving[number], PTR, align=8) for number in numbers]
        away, done = w.new_label("away"), w.new_label("home")
        w.branch_if(w.icmp("ne", now[0], self.homes[numbers[0]]), away, done)
        w.begin(away)
        with w.loop(
            constant(I64, 0), constant(I64, type.size), one, hint="bring", guarded=False
        ) as loop:
            places = [element_address(w, base, element, loop.index) for base in now]
            values = [w.load(place, element, align=type.dtype.bytes) for place in places]
            for number, value in zip(numbers, values, strict=True):
                place = element_address(w, self.homes[number], element, loop.index)
                w.store(value, place, align=type.dtype.bytes)
        w.branch(done)
        w.begin(done)


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
