"""Nests over the same rows go block by block: what is independent, and that results stay bit by bit."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.bodies import base_of
from nnkit.core.compute.contracted import block_bytes_of, bytes_of_block
from nnkit.core.compute.footprint import Footprint
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Function, Value
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
from nnkit.core.schedule import block_groups, idle_outputs
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.plan import arena_bytes, schedule
from nnkit.core.schedule.switches import VARIABLE
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
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


def scheduled(program: Rows, *, is_fused: bool, bytes: int) -> Function:
    module = module_of(program, f32(program.rows, 1), f32(program.rows, 3))
    generate_compute(module)
    if is_fused:
        fuse(module)
    with (
        mock.patch.object(block_groups, "_SHARE", 1),
        mock.patch.object(idle_outputs, "LEAST_BYTES", 0),
    ):
        schedule(module, Target(vector_bytes=bytes, l1_bytes=256, l2_bytes=4096))
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return module.functions["main"]


def blocks_in(function: Function) -> int:
    loops = [i.op for i in function.entry.instructions if isinstance(i.op, Loops)]
    return sum(op.group >= 0 and max(op.blocks, default=0) >= 32 for op in loops)


def check_rooms(function: Function) -> int:
    """Asserts that what has room for one block overlaps nothing that a later member reads; how many there are."""
    steps = function.entry.instructions
    lives: dict[int, list[tuple[range, range]]] = {}
    for position, maker in enumerate(steps):
        if not isinstance(maker.op, Loops):
            continue
        for result, place in zip(maker.results, maker.placement.results, strict=True):
            if place.space == "block":
                reads = [n for n, i in enumerate(steps) if result in map(base_of, i.operands)]
                room = range(place.offset, place.offset + bytes_of_block(result, maker.op))
                life = range(position, max(reads) + 1)
                lives.setdefault(maker.op.group, []).append((room, life))
    for members in lives.values():
        for (room, life), (other, time) in itertools.combinations(members, 2):
            assert not (set(room) & set(other) and set(life) & set(time))
    assert block_bytes_of(steps) == max((r.stop for m in lives.values() for r, _ in m), default=0)
    return sum(map(len, lives.values()))


@pytest.mark.parametrize("rows", [320, 331])
def test_results_stay_bit_by_bit(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = contracted = 0
    for seed in range(4):
        is_fused, bytes = seed % 4 == 0, 16 << seed % 3
        module = module_of(Rows(seed, rows), f32(rows, 1), f32(rows, 3))
        arguments = arguments_for(module)
        expected = results(module, arguments)
        monkeypatch.setenv(VARIABLE, "blocks")
        alone = scheduled(Rows(seed, rows), is_fused=is_fused, bytes=bytes)
        monkeypatch.delenv(VARIABLE)
        grouped = scheduled(Rows(seed, rows), is_fused=is_fused, bytes=bytes)
        assert not blocks_in(alone)
        found += blocks_in(grouped)
        contracted += check_rooms(grouped)
        with sharing_everything():
            shared = run(grouped, arguments)
        found_all = *run_all([alone, grouped], arguments), shared, expected
        for one, other, third, exact in zip(*found_all, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, third)
            np.testing.assert_allclose(exact, other, rtol=1e-4, atol=1e-4)
    assert found > 10
    assert contracted > 10


def test_rows_of_large_results_are_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all members that write there, and never those of what has room for a block."""
    function = scheduled(Rows(2, 3200), is_fused=False, bytes=32)
    ahead = [
        (instruction.op.group, instruction.results[written.within or number], written)
        for instruction in function.entry.instructions
        if isinstance(instruction.op, Loops)
        for number, written in enumerate(instruction.op.outputs)
        if number in instruction.op.ahead
    ]
    assert ahead
    for _, result, written in ahead:
        assert written.type.bytes > 4096
        assert result.producer and result.producer.placement.results[result.index].space != "block"
    monkeypatch.setenv(VARIABLE, "prefetch")
    alone = scheduled(Rows(2, 3200), is_fused=False, bytes=32)
    assert not any(i.op.ahead for i in alone.entry.instructions if isinstance(i.op, Loops))


def test_a_block_takes_less_room_than_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "contract")
    whole = scheduled(Rows(1, 3200), is_fused=False, bytes=32)
    assert not check_rooms(whole)
    monkeypatch.delenv(VARIABLE)
    function = scheduled(Rows(1, 3200), is_fused=False, bytes=32)
    assert arena_bytes(function) + block_bytes_of(function.entry.instructions) < arena_bytes(whole)


def chain(b: Builder, x: Value) -> Value:
    for _ in range(5):
        x = b.emit(Add(), b.emit(Sin(), x), x)
    return x


def test_a_group_over_rows_has_room_for_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members go through their rows as before, to the bit."""
    arguments = arguments_for(module_of(chain, f32(80, 130)))

    def function() -> Function:
        module = module_of(chain, f32(80, 130))
        generate_compute(module)
        with mock.patch.object(block_groups, "_LEAST_FOLDED", 1):
            schedule(module, Target(vector_bytes=32, l1_bytes=256, l2_bytes=20000))
        verify(module)
        return module.functions["main"]

    folded = function()
    monkeypatch.setenv(VARIABLE, "contract")
    whole = function()
    assert check_rooms(folded) == 9 and not check_rooms(whole)
    assert arena_bytes(folded) < arena_bytes(whole) // 10
    expected, found = run_all([whole, folded], arguments)
    with sharing_everything():
        shared = run(folded, arguments)
    for one, other, third in zip(expected, found, shared, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
