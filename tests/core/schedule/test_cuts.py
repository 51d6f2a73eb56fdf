"""Loops are cut where masks change: what holds in a part, that results stay, that inner loops have no masks left."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Function, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import (
    Add,
    Combinator,
    Concatenate,
    Equal,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Multiply,
    NotEqual,
    Pad,
    Reduce,
    Slice,
    Subtract,
    constant,
)
from nnkit.core.ops.nest import Affine
from nnkit.core.schedule.cuts import decided_comparison, decided_inside
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.switches import VARIABLE
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, Shape, scalar
from nnkit.core.verify import verify
from nnkit.jit.emit.program import emit_program
from nnkit.jit.emit.writer import ModuleWriter
from tests.core.compute.building import arguments_for, f32, module_of, results
from tests.jit.emit.running import run, run_all
from tests.jit.sharing import sharing_everything

COMPARISONS = {
    LessThan: operator.lt, LessThanOrEqual: operator.le, GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge, Equal: operator.eq, NotEqual: operator.ne,
}  # fmt: skip


def affine(constant: int, coefficients: tuple[int, int]) -> Affine:
    return Affine(constant, tuple((axis, c) for axis, c in enumerate(coefficients) if c))


AFFINE = st.builds(affine, st.integers(-6, 6), st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
RANGE = st.tuples(st.integers(0, 5), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair)))


@given(AFFINE, st.tuples(RANGE, RANGE), st.integers(0, 7))
def test_what_is_decided_holds_at_each_point(
    index: Affine, box: tuple[tuple[int, int], tuple[int, int]], extent: int
) -> None:
    points = itertools.product(*(range(low, high + 1) for low, high in box))
    values = [int(index.evaluate(point)) for point in points]
    ranges = dict(enumerate(box))
    inside = {0 <= value < extent for value in values}
    assert decided_inside(index, extent, ranges) in {None, *inside}
    if decided_inside(index, extent, ranges) is not None:
        assert len(inside) == 1
    for op, holds in COMPARISONS.items():
        found = {holds(value, 0) for value in values}
        decided = decided_comparison(op(), index, ranges)
        assert decided is None or found == {decided}
        if len(index.terms) < 2 and max(map(abs, dict(index.terms).values()), default=0) < 2:
            assert (decided is None) == (len(found) == 2)  # no number is left out


def padded(b: Builder, x: Value, low: Shape, total: int) -> Value:
    high = tuple(total - k for k in low)
    return b.emit(Pad(low, high), x, constant(b, scalar(F32), 0))


def stencil(b: Builder, x: Value) -> Value:
    return b.emit(Add(), *(padded(b, x, (k,), 4) for k in (0, 3)))


def put_together(b: Builder, x: Value) -> Value:
    twice = b.emit(Add(), x, x)
    whole = b.emit(Concatenate(0), x, b.emit(Slice((3,), (40,)), twice))
    return b.emit(Multiply(), whole, whole)


def framed(b: Builder, x: Value) -> Value:
    return b.emit(Subtract(), *(padded(b, x, (k, 40 - k), 40) for k in (0, 30)))


def summed_columns(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0,)), framed(b, x))


def largest(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.MAX, (0,)), stencil(b, x))


PROGRAMS = [
    (stencil, (700,), True), (put_together, (500,), True), (framed, (3, 300), True),
    (framed, (300, 3), True), (summed_columns, (90, 70), True), (largest, (600,), True),
    (stencil, (20,), False),
]  # fmt: skip


def scheduled(build: Callable[..., Value], shape: Shape, target: Target) -> Function:
    module = module_of(build, f32(*shape))
    generate_compute(module)
    fuse(module)
    schedule(module, target)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return module.functions["main"]


def size_of(function: Function) -> int:
    """How many instructions it has, those of kernels included."""
    assert function.body is not None
    return len(list(walk(function.body)))


@pytest.mark.parametrize("bytes", [16, 32, 64])
def test_results_stay_bit_by_bit(bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for build, shape, is_cut in PROGRAMS:
        module = module_of(build, f32(*shape))
        arguments = arguments_for(module)
        monkeypatch.setenv(VARIABLE, "cuts")
        whole = scheduled(build, shape, Target(vector_bytes=bytes))
        monkeypatch.delenv(VARIABLE)
        cut = scheduled(build, shape, Target(vector_bytes=bytes))
        assert (size_of(cut) != size_of(whole)) == is_cut
        for kernel in filter(is_kernel, cut.entry.instructions):
            assert not list(accesses_outside(kernel.regions[0].entry))
        one, other = run_all([whole, cut], arguments)
        np.testing.assert_array_equal(one, other)
        with sharing_everything():
            np.testing.assert_array_equal(one, run(cut, arguments))
        np.testing.assert_allclose(results(module, arguments), other, rtol=1e-4, atol=1e-4)


def test_loops_have_no_masks() -> None:
    """What is left of them stands in steps that run once."""
    for build, shape, is_cut in PROGRAMS:
        if is_cut and len(shape) == 1:
            module = ModuleWriter(scalef=True, fma=True)
            emit_program(module, scheduled(build, shape, Target(vector_bytes=64)), "kernel")
            loops = re.findall(r"^(loop\S*):$(.*?br i1 .*?label %\1,)", module.text(), re.M | re.S)
            assert loops
            assert not any("masked" in body for _, body in loops), module.text()
