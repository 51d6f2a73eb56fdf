"""Nests over the same rows go block by block: what is independent, and that results stay bit by bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.footprint import Footprint
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Function, Instruction, Module, Stage, Value
from nnkit.core.kernels.access_ops import PrefetchAt
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import AllocateLocal, Kernel, executed, is_kernel
from nnkit.core.kernels.parallelise import has_parallel_loops
from nnkit.core.ops import (
    Add,
    Combinator,
    Concatenate,
    Multiply,
    Reduce,
    Reverse,
    ShapeCast,
    Sin,
    Slice,
    Transpose,
)
from nnkit.core.ops.nest import Output
from nnkit.core.schedule import block_groups, idle_outputs, long_rows, plan
from nnkit.core.schedule.group import GroupedInstruction
from nnkit.core.schedule.group_buffers import GroupBuffers, Member
from nnkit.core.schedule.nest_kernels import write_nest_kernels
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.plan import arena_bytes
from nnkit.core.schedule.switches import VARIABLE
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, f32, module_of, results
from tests.jit.emit.running import run, run_all
from tests.jit.sharing import sharing_everything


def footprint_of(stride: int, low: int, length: int, rows: int) -> Footprint:
    return Footprint(stride, low, low + length, rows)


FOOTPRINTS = st.builds(
    footprint_of, st.integers(-3, 5), st.integers(0, 12), st.integers(0, 4), st.integers(1, 5)
)


def elements(found: Footprint, row: int) -> set[int]:
    return {found.stride * row + place for place in range(found.low, found.high + 1)}


@given(FOOTPRINTS, FOOTPRINTS)
def test_rows_of_independent_footprints_have_nothing_in_common(a: Footprint, b: Footprint) -> None:
    together = any(
        elements(a, row) & elements(b, other)
        for row in range(a.rows)
        for other in range(b.rows)
        if row != other
    )
    assert not (a.is_independent(b) and together)


class Rows:
    """A random program over tensors of so many rows: computed, put together, taken apart, summed, turned around."""

    def __init__(self, seed: int, rows: int) -> None:
        self.random = np.random.default_rng(seed)
        self.rows = rows

    def __call__(self, b: Builder, x: Value, y: Value) -> list[Value]:
        made = [x, y]
        for _ in range(14):
            made.append(self._next(b, made))
        wide = b.emit(Concatenate(1), made[-1], made[-2], made[-1])
        return [wide, made[-1], made[int(self.random.integers(2, len(made) - 1))]]

    def _next(self, b: Builder, made: list[Value]) -> Value:
        x = made[max(0, len(made) - 1 - int(self.random.integers(4)))]
        columns = x.tensor.shape[1]
        match int(self.random.integers(9)):
            case 0:
                return b.emit(Sin(), x)
            case 1 | 2:
                fits = [y for y in made if y.tensor.shape == x.tensor.shape]
                return b.emit(Multiply(), x, fits[int(self.random.integers(len(fits)))])
            case 3 | 4:
                pieces = [y for y in made if y.tensor.shape[1] < 4][-3:]
                return b.emit(Concatenate(1), *pieces, b.emit(Add(), x, x))
            case 5 if columns > 1:
                return b.emit(Slice((0, 1), (self.rows, columns)), x)
            case 6 | 7:
                summed = b.emit(Reduce(Combinator.ADD, (1,)), x)
                return b.emit(ShapeCast((self.rows, 1)), summed)
            case 8:
                return b.emit(Reverse((0,)), x)
            case _:
                turned = b.emit(Transpose(), b.emit(Sin(), b.emit(Transpose(), x)))
                return b.emit(Add(), turned, x)


class Decided(NamedTuple):
    """What a schedule decides of groups, before they are kernels."""

    blocks: int
    """Nests that go through their rows block by block."""
    rooms: int
    """What has room for one block, or one row."""
    far: list[tuple[Value, Output]]
    """The outputs whose rows are fetched a block ahead, and the results that they are in."""


def decide(steps: Sequence[GroupedInstruction], *rest: Any) -> Decided:
    """Asserts that what has room for one block overlaps nothing that a later member reads."""
    contracted, far = rest
    found = list[tuple[Value, Output]]()
    groups: dict[int, list[Member]] = {}
    for step in steps:
        instruction, loops = step.instruction, step.loops
        if loops is None:
            continue
        if loops.group >= 0:
            groups.setdefault(loops.group, []).append(Member(instruction, loops))
        for number in far.get(instruction, ()):
            written = loops.outputs[number]
            found.append((instruction.results[written.within or number], written))
    rooms = 0
    for members in groups.values():
        group = GroupBuffers(members, contracted)
        rooms += len(group.rooms)
        for (value, room), (other, same) in itertools.combinations(group.rooms.items(), 2):
            lives = [life(x, members) for x in (value, other)]
            assert room[0] != same[0] or not set(lives[0]) & set(lives[1])
        for value, home in group.homes.items():
            assert life(value, members)[-1] == life(home, members)[0]
    blocks = sum(max(m.loops.blocks, default=0) >= 32 for g in groups.values() for m in g)
    return Decided(blocks, rooms, found)


def life(value: Value, members: Sequence[Member]) -> range:
    """The members from the one that makes a value to the last that reads it."""
    touching = [n for n, m in enumerate(members) if value in m.nest.results or m.reads(value)]
    return range(touching[0], touching[-1] + 1)


def scheduled(
    build: Callable[..., Any], *types: TensorType, is_fused: bool, target: Target, share: int = 1
) -> tuple[Function, Decided]:
    """The function with its kernels, inside of whose buffers all accesses are."""
    module = module_of(build, *types)
    generate_compute(module)
    if is_fused:
        fuse(module)
    decided = list[Decided]()

    def write(
        steps: Sequence[GroupedInstruction], target: Target, *rest: Any
    ) -> list[GroupedInstruction]:
        decided.append(decide(steps, *rest))
        return write_nest_kernels(steps, target, *rest)

    with (
        mock.patch.object(block_groups, "_SHARE", share),
        mock.patch.object(idle_outputs, "LEAST_BYTES", 0),
        mock.patch.object(plan, "write_nest_kernels", write),
    ):
        plan.schedule(module, target)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    for instruction in module.functions["main"].entry.instructions:
        assert not isinstance(instruction.op, Loops)
        if is_kernel(instruction):
            assert not list(accesses_outside(instruction.regions[0].entry))
    return module.functions["main"], decided[0]


def rows_scheduled(
    program: Rows, *, is_fused: bool = False, bytes: int = 32
) -> tuple[Function, Decided]:
    types = f32(program.rows, 1), f32(program.rows, 3)
    target = Target(vector_bytes=bytes, l1_bytes=256, l2_bytes=4096)
    return scheduled(program, *types, is_fused=is_fused, target=target)


def kernels_in(function: Function) -> list[Instruction[Kernel]]:
    return [i for i in function.entry.instructions if is_kernel(i)]


def local_bytes(function: Function) -> int:
    """What kernels have on the stack."""
    ops = [one.op for kernel in kernels_in(function) for _, one in executed(kernel)]
    return sum(op.type.bytes for op in ops if isinstance(op, AllocateLocal))


@pytest.mark.parametrize("rows", [320, 331])
def test_results_stay_bit_by_bit(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = rooms = 0
    for seed in range(4):
        is_fused, bytes = seed % 4 == 0, 16 << seed % 3
        program = Rows(seed, rows)
        module = module_of(program, f32(rows, 1), f32(rows, 3))
        arguments = arguments_for(module)
        expected = results(module, arguments)
        monkeypatch.setenv(VARIABLE, "blocks")
        alone, decided = rows_scheduled(Rows(seed, rows), is_fused=is_fused, bytes=bytes)
        assert not decided.blocks
        monkeypatch.delenv(VARIABLE)
        grouped, decided = rows_scheduled(Rows(seed, rows), is_fused=is_fused, bytes=bytes)
        blocks, rooms = blocks + decided.blocks, rooms + decided.rooms
        with sharing_everything():
            parallel, _ = rows_scheduled(Rows(seed, rows), is_fused=is_fused, bytes=bytes)
            assert any(has_parallel_loops(i) for i in kernels_in(parallel))
            shared = run(parallel, arguments)
        scheduled_module = Module(stage=Stage.SCHEDULE)
        scheduled_module.add(grouped)
        evaluated = results(scheduled_module, arguments)
        found_all = *run_all([alone, grouped], arguments), shared, evaluated, expected
        for one, other, third, *exact in zip(*found_all, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, third)
            for by_definition in exact:
                np.testing.assert_allclose(by_definition, other, rtol=1e-4, atol=1e-4)
    assert blocks > 10
    assert rooms > 10


def test_rows_of_large_results_are_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all members that write there, and never those of what has room for a block."""

    def fetches(function: Function) -> int:
        loops = [i for kernel in kernels_in(function) for _, i in executed(kernel)]
        bodies = [i.regions[0].entry.instructions for i in loops if i.regions]
        return sum(len(b) == 2 and isinstance(b[0].op, PrefetchAt) for b in bodies)

    function, decided = rows_scheduled(Rows(2, 3200))
    assert decided.far and fetches(function) == len(decided.far)
    for _, written in decided.far:
        assert written.type.bytes > 4096
    assert local_bytes(function)
    monkeypatch.setenv(VARIABLE, "prefetch")
    alone, decided = rows_scheduled(Rows(2, 3200))
    assert decided.far and not fetches(alone)


def test_a_block_takes_less_room_than_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "contract")
    whole, decided = rows_scheduled(Rows(2, 3200))
    assert not decided.rooms and not local_bytes(whole)
    monkeypatch.delenv(VARIABLE)
    function, _ = rows_scheduled(Rows(2, 3200))
    assert arena_bytes(function) + local_bytes(function) < arena_bytes(whole)


def test_the_least_block_may_take_more_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of which fewer than that fit the part that is wanted go block by block all the same."""
    target = Target(vector_bytes=32, l1_bytes=256, l2_bytes=1 << 16)

    def decided() -> Decided:
        types = f32(6400, 1), f32(6400, 3)
        _, found = scheduled(Rows(2, 6400), *types, is_fused=False, target=target, share=1024)
        return found

    assert decided().blocks
    monkeypatch.setattr(block_groups, "_MOST_SHARE", 1 << 16)
    assert not decided().blocks


def chain(b: Builder, x: Value) -> Value:
    for _ in range(5):
        x = b.emit(Add(), b.emit(Sin(), x), x)
    return x


def test_a_group_over_rows_has_room_for_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members go through their rows as before, to the bit."""
    arguments = arguments_for(module_of(chain, f32(80, 130)))
    target = Target(vector_bytes=32, l1_bytes=256, l2_bytes=20000)
    monkeypatch.setattr(block_groups, "LEAST_FOLDED", 1)
    folded, decided = scheduled(chain, f32(80, 130), is_fused=False, target=target)
    assert decided.rooms == 9
    monkeypatch.setenv(VARIABLE, "contract")
    whole, decided = scheduled(chain, f32(80, 130), is_fused=False, target=target)
    assert not decided.rooms
    assert arena_bytes(folded) < arena_bytes(whole) // 10
    expected, found = run_all([whole, folded], arguments)
    with sharing_everything():
        parallel, _ = scheduled(chain, f32(80, 130), is_fused=False, target=target)
        assert any(map(has_parallel_loops, kernels_in(parallel)))
        shared = run(parallel, arguments)
    for one, other, third in zip(expected, found, shared, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


@pytest.mark.parametrize("rows", [16, 80])
def test_long_rows_are_split_where_no_nest_asks_which_they_are(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Then they have room for a part of one, and all numbers are the same, to the bit."""

    def both(b: Builder, x: Value) -> list[Value]:
        y = chain(b, x)
        return [y, b.emit(Reduce(Combinator.ADD, (1,)), y), chain(b, y)]

    arguments = arguments_for(module_of(both, f32(rows, 1040)))
    target = Target(vector_bytes=32, l1_bytes=256, l2_bytes=20000)
    for module in (block_groups, long_rows):
        monkeypatch.setattr(module, "LEAST_FOLDED", 1)
        monkeypatch.setattr(module, "MOST_FOLDED_ROW", 9 * 700)
    split, decided = scheduled(both, f32(rows, 1040), is_fused=False, target=target)
    assert decided.rooms >= 9
    casts = [i.op for i in split.entry.instructions if isinstance(i.op, ShapeCast)]
    assert ShapeCast((8 * rows, 130)) in casts
    monkeypatch.setattr(long_rows, "_LEAST_ROW", 2000)
    whole, decided = scheduled(both, f32(rows, 1040), is_fused=False, target=target)
    assert not decided.rooms
    assert arena_bytes(split) <= arena_bytes(whole)
    for one, other in zip(*run_all([whole, split], arguments), strict=True):
        np.testing.assert_array_equal(one, other)
