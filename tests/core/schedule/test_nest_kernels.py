"""Nests become kernels with the loops that were decided of them; those that stay have a reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest

from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Instruction, Module, Value
from nnkit.core.kernels.ops import Kernel, Loop
from nnkit.core.ops import (
    Bounds,
    Exp,
    Gather,
    Nest,
)
from nnkit.core.schedule import cuts, nest_kernels, shared_loops
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import I64, TensorType
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.core.schedule.row_programs import RowProgram
from tests.rows import each

from .checked import kernels_in
from .nest_kinds import KINDS, Build, total

TARGETS = (
    Target(vector_bytes=64, registers=32, fma=True),
    Target(vector_bytes=32, fma=True),
    Target(vector_bytes=16),
    Target(vector_bytes=4),
)


def nests_in(module: Module) -> list[Instruction]:
    """Those that stay."""
    return [i for i in module.functions["main"].entry.instructions if isinstance(i.op, Nest)]


def test_random_programs_keep_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    found = 0
    for seed in range(200, 224):
        program = RowProgram(seed)
        module = program.at_compute()
        expected = results(module, program.arguments)
        found += len(kernels_in(module, TARGETS[seed % len(TARGETS)]))
        assert_close(expected, results(module, program.arguments))
    assert found > 40


@each(("build", "types"), KINDS)
def test_kinds_of_nests_are_kernels(
    build: Build, types: tuple[TensorType, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where memory is far, so that sums over rows are kept there, and where threads share all loops."""
    for number, target in enumerate(TARGETS):
        if number % 2:
            target = replace(target, l2_bytes=256)
        if number > 1:
            monkeypatch.setattr(shared_loops, "LEAST_JOB", 0.0)
            monkeypatch.setattr(shared_loops, "BLOCK", 0.01)
        module = fused(module_of(build, *types))
        arguments = arguments_for(module)
        expected = results(module, arguments)
        assert kernels_in(module, target)
        assert not nests_in(module)
        assert_close(expected, results(module, arguments))


def _at_compute(build: Build, types: tuple[TensorType, ...]) -> Module:
    module = module_of(build, *types)
    generate_compute(module)
    return module


def test_random_cuts_keep_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of any axis but of float sums may be cut anywhere, into any number of parts."""
    rng = Random(0)
    drawn = 0

    def random_cuts(_: Instruction, loops: Loops) -> tuple[tuple[int, int], ...]:
        nonlocal drawn
        found: list[tuple[int, int]] = []
        for axis in cuts._axes(loops):
            inner = range(1, loops.extents[axis])
            found += [
                (axis, point) for point in rng.sample(inner, min(len(inner), rng.randint(0, 2)))
            ]
        drawn += len(found)
        return tuple(sorted(found))

    monkeypatch.setenv("NNKIT_DISABLE", "rows,cuts")
    kinds = [partial(_at_compute, build, types) for build, types in KINDS[::3]]
    for number, make in enumerate([*kinds, *[RowProgram(seed).at_compute for seed in range(5)]]):
        target = TARGETS[number % len(TARGETS)]
        whole = make()
        arguments = arguments_for(whole)
        text = print_module(whole)
        schedule(whole, target)
        cut = parse_module(text)
        with monkeypatch.context() as patch:
            patch.setattr(nest_kernels, "plan_cuts", random_cuts)
            kernels_in(cut, target)
        for one, other in zip(results(whole, arguments), results(cut, arguments), strict=True):
            np.testing.assert_array_equal(one, other, text)
    assert drawn > 40


def test_threads_share_totals() -> None:
    """Two blocks of the sum at a time store what they came to, which is joined in their order."""
    module = fused(module_of(total, f32(1_000_000)))
    (kernel,) = kernels_in(module, TARGETS[0])
    loops = [i.op for i in kernel.regions[0].entry.instructions if isinstance(i.op, Loop)]
    assert [loop.grain for loop in loops] == [3, *[0] * (len(loops) - 1)]
    assert (loops[0].upper, loops[-1].lower, loops[-1].upper) == (93, 1, 94)


def test_an_operand_that_is_dead_is_overwritten() -> None:
    def build(b: Builder, x: Value, i: Value) -> Value:
        return b.emit(Exp(), b.emit(Gather(0, Bounds.CHECK), b.emit(Exp(), x), i))

    module = module_of(build, f32(64), TensorType((64,), I64))
    generate_compute(module)
    found = [kernel.op for kernel in kernels_in(module, TARGETS[0])]
    assert [op.overwriting for op in found if isinstance(op, Kernel)] == [((0, 0),), (), ((0, 0),)]


def _raised(b: Builder, x: Value) -> Value:
    return b.emit(Exp(), x)


def test_threads_share_the_outermost_loop() -> None:
    for shape, wanted in (((300, 1000), [16]), ((300_000,), [987]), ((30, 30), [0])):
        module = fused(module_of(_raised, f32(*shape)))
        (kernel,) = kernels_in(module, TARGETS[0])
        loops = [i.op for i in kernel.regions[0].entry.instructions if isinstance(i.op, Loop)]
        assert [loop.grain for loop in loops] == wanted
