"""No two buffers that are alive at once overlap, and memory is used again.

The check is independent of the plan: it replays the program and asks of every read whether the bytes were
last written by the value that is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.bodies import base_of
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import passes_to
from nnkit.core.ir import HEADER_BYTES, Builder, Function, Instruction, Module, Value
from nnkit.core.ir.placement import Place
from nnkit.core.kernels.guarded_ops import CopyBuffer
from nnkit.core.kernels.ops import executed, is_kernel
from nnkit.core.ops import (
    Add,
    Cholesky,
    Combinator,
    Exp,
    Literal,
    Reduce,
    Scan,
    Scatter,
    ShapeCast,
    Transpose,
    splat,
)
from nnkit.core.ops.nest import Access, Bounds, Output, build_nest, coordinate
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule import idle_outputs
from nnkit.core.schedule.arena import aligned
from nnkit.core.schedule.live_ranges import may_overwrite
from nnkit.core.schedule.plan import arena_bytes, schedule, scratch_bytes
from nnkit.core.schedule.target import Target
from nnkit.core.stage import Stage
from nnkit.core.types import F32, I64, TensorType
from tests.core.compute.building import f32, module_of, softmax
from tests.programs import Program, programs

SMALL_CACHE = Target(vector_bytes=64, l1_bytes=16)
"""So small that rows are always grouped."""


def places(function: Function) -> dict[Value, Place]:
    """The place of every value that has one."""
    return {
        result: place
        for instruction in function.entry.instructions
        for result, place in zip(instruction.results, instruction.placement.results, strict=False)
    }


def span(place: Place, value: Value) -> tuple[str, int, int]:
    """Space, first byte and end; outputs are spaces of their own."""
    if place.space == "output":
        return f"output {place.offset}", 0, value.tensor.bytes
    return "arena", place.offset, place.offset + value.tensor.bytes


def check_scratch(function: Function) -> None:
    """Raises AssertionError when an instruction works where something lies that is needed."""
    where = places(function)
    order = list(function.entry.instructions)
    born = {result: t for t, instruction in enumerate(order) for result in instruction.results}
    dies = {base_of(x): t for t, instruction in enumerate(order) for x in instruction.operands}
    for t, instruction in enumerate(order):
        sizes = scratch_bytes(instruction)
        rooms = [
            (f"output {place.offset}", 0, size)
            if place.space == "output"
            else ("arena", place.offset, place.offset + size)
            for place, size in zip(instruction.placement.scratch, sizes, strict=True)
        ]
        for number, room in enumerate(rooms):
            assert not any(overlap(room, other) for other in rooms[:number])
            for value, place in where.items():
                is_there = born[value] <= t <= dies.get(value, born[value])
                assert not (is_there and overlap(room, span(place, value)))


def overlap(a: tuple[str, int, int], b: tuple[str, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def check_memory(function: Function) -> None:
    """Raises AssertionError when a value is overwritten while somebody needs it."""
    check_scratch(function)
    where = places(function)
    order = [i for i in function.entry.instructions if not isinstance(i.op, Literal | ShapeCast)]
    born = {result: t for t, instruction in enumerate(order) for result in instruction.results}
    dies = {base_of(x): t for t, instruction in enumerate(order) for x in instruction.operands}
    values = list(where)
    for number, a in enumerate(values):
        for b in values[:number]:
            if not overlap(span(where[a], a), span(where[b], b)):
                continue
            first, second = sorted((a, b), key=lambda value: born[value])
            end = dies.get(first, born[first])
            assert end <= born[second], f"{first.type} and {second.type} are alive at once"
            if end == born[second]:
                check_in_place(order[end], first, second)
    for number, value in enumerate(function.entry.terminator.operands):
        assert where[base_of(value)] == Place("output", number)


def check_in_place(instruction: Instruction, first: Value, second: Value) -> None:
    """The later value may take the room of the earlier one where each point touches one element only."""
    assert first.producer is not instruction, "two results of one nest overlap"
    assert first in map(base_of, instruction.operands)
    assert may_overwrite(instruction, second, first)


@given(programs(max_instructions=25), st.sampled_from([Target(), SMALL_CACHE]), st.booleans())
def test_no_two_live_buffers_overlap(program: Program, target: Target, lends: bool) -> None:
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    generate_compute(program.module)
    fuse(program.module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_outputs, "LEAST_BYTES", 1 if lends else idle_outputs.LEAST_BYTES)
        schedule(program.module, target)
    check_memory(program.module.functions[program.entry])


@given(programs(max_instructions=25))
def test_the_same_without_fusion(program: Program) -> None:
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    generate_compute(program.module)
    schedule(program.module, Target())
    check_memory(program.module.functions[program.entry])


def scheduled(module: Module, target: Target | None = None) -> Function:
    generate_compute(module)
    fuse(module)
    schedule(module, target or Target())
    return module.functions["main"]


def test_a_chain_needs_two_buffers() -> None:
    def build(b: Builder, x: Value) -> Value:
        for _ in range(50):
            x = b.emit(Cholesky(), x)
        return x

    function = scheduled(module_of(build, f32(40, 40)))
    assert arena_bytes(function) <= HEADER_BYTES + 2 * aligned(6400)


def test_a_scan_is_written_over_its_operand() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Scan(Combinator.ADD, 0), b.emit(Scan(Combinator.MAX, 0), x))

    assert arena_bytes(scheduled(module_of(build, f32(1000)))) == HEADER_BYTES


def test_results_are_written_over_operands() -> None:
    def build(b: Builder, x: Value) -> Value:
        found = b.emit(Cholesky(), x)
        return b.emit(Cholesky(), b.emit(Exp(), found))

    function = scheduled(module_of(build, f32(40, 40)))
    assert arena_bytes(function) == HEADER_BYTES + aligned(6400)


def test_intermediates_lie_in_the_output() -> None:
    function = scheduled(module_of(softmax, f32(200, 300)))
    assert arena_bytes(function) <= HEADER_BYTES + 2 * aligned(800)


def test_a_transposed_read_is_not_in_place() -> None:
    def build(b: Builder, x: Value) -> Value:
        found = b.emit(Cholesky(), x)
        turned = b.emit(Add(), found, b.emit(Transpose(), found))
        return b.emit(Cholesky(), turned)

    function = scheduled(module_of(build, f32(30, 30)))
    assert arena_bytes(function) >= HEADER_BYTES + 2 * aligned(3600)


RETURNED: list[Callable[[Builder, Value], list[Value]]] = [
    lambda b, x: [x],
    lambda b, x: [x, x],
    lambda b, x: [b.emit(ShapeCast((6,)), x), x],
    lambda b, x: [b.emit(splat(f32(5), 2))],
    lambda b, x: [y := b.emit(Exp(), x), y],
    lambda b, x: [y := b.emit(Exp(), x), b.emit(ShapeCast((3, 2)), y)],
    lambda b, x: [b.emit(Reduce(Combinator.ADD, ()), x)],
]


@pytest.mark.parametrize("build", RETURNED, ids=range(len(RETURNED)))
def test_every_output_has_a_buffer_of_its_own(
    build: Callable[[Builder, Value], list[Value]],
) -> None:
    check_memory(scheduled(module_of(build, f32(2, 3))))


def updated(*, read_again: bool) -> tuple[Function, Value, Value]:
    """A function that updates an element of exp x, with exp x and the result."""

    def build(b: Builder, x: Value, u: Value, i: Value) -> Value:
        y = b.emit(Exp(), x)
        z = b.emit(Scatter(), u, y, i)
        return b.emit(Add(), b.emit(Scan(Combinator.ADD, 0), z), y if read_again else x)

    module = module_of(build, f32(9), f32(), TensorType((), I64))
    generate_compute(module)
    fuse(module)
    schedule(module, Target())
    function = module.functions["main"]
    (update,) = (
        i
        for i in function.entry.instructions
        if is_kernel(i) and any(isinstance(one.op, CopyBuffer) for _, one in executed(i))
    )
    ((init, _),) = update.op.overwriting
    return function, update.operands[init], update.result


@pytest.mark.parametrize("read_again", [False, True])
def test_an_update_is_in_place_if_what_it_updates_is_dead_afterwards(read_again: bool) -> None:
    function, before, after = updated(read_again=read_again)
    where = places(function)
    assert (where[before] == where[after]) is not read_again


def test_a_point_that_reads_elsewhere_is_not_in_place() -> None:
    b = Builder()
    x = b.argument(TensorType((9,), F32))
    point = coordinate(0)
    reads = [(x, Access((point + 1,))), (x, Access((point,)))]
    output = Output(x.tensor, (point,), None, Bounds.INSIDE, 1)
    (result,) = build_nest(b, (8,), reads, [output], lambda _, __, read: [read[0]])
    assert result.producer is not None
    assert not may_overwrite(result.producer, result, x)
    (result,) = build_nest(b, (8,), reads[1:], [replace(output, init=0)], lambda _, __, read: read)
    assert result.producer is not None
    assert may_overwrite(result.producer, result, x)
