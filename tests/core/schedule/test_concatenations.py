"""Concatenations: each piece is written in place, and every element of the whole by somebody."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ops import Concatenate, Multiply, Reduce, Select, ShapeCast, Sin, Slice
from nnkit.core.ops.combinator import Combinator
from nnkit.core.schedule.ops import Empty, Loops
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BF16, BOOL, DTYPES, F16, F64, Array, DType, TensorType
from nnkit.core.verify import verify
from tests.concatenation_programs import Concatenations, pool
from tests.core.compute.building import arguments_for, f32, module_of, results
from tests.core.schedule.decided import decided
from tests.jit.emit.running import run

ALL = sorted(DTYPES.values(), key=str)
"""Each dtype is as likely as any other."""


def lowered(module: Module, *, is_fused: bool = True, target: Target | None = None) -> list[Loops]:
    """The loops of @main."""
    generate_compute(module)
    verify(module)
    if is_fused:
        fuse(module)
    found = decided(module, target or Target())
    verify(module)
    instructions = module.functions["main"].entry.instructions
    assert not any(isinstance(i.op, Concatenate) for i in instructions)
    return found.loops


def garbage(op: Empty) -> Array:
    """What may be in a buffer: a number that no program here has."""
    return np.full(op.type.shape, 1 if op.type.dtype is BOOL else 77, op.type.dtype.numpy)


@given(st.integers(0, 2**32), st.sampled_from(ALL), st.booleans(), st.booleans())
def test_random_pieces_in_random_order(seed: int, dtype: DType, is_fused: bool, wide: bool) -> None:
    module = Concatenations(seed, dtype).module()
    arguments = [pool(dtype, seed)]
    expected = results(module, arguments)
    lowered(module, is_fused=is_fused, target=Target(vector_bytes=64 if wide else 16))
    with mock.patch.object(Empty, "evaluate", garbage):
        found = results(module, arguments)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    compiled = run(module.functions["main"], arguments)
    for one, other in zip(expected, compiled, strict=True):
        np.testing.assert_array_equal(np.asarray(one, other.dtype), other)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [5, 40])
def test_pieces_computed_together_are_written_by_one_nest(count: int, axis: int) -> None:
    def build(b: Builder, x: Value) -> Value:
        rows = [x]
        for _ in range(count - 1):
            rows.append(b.emit(Multiply(), rows[-1], x))
        shape = (1, 33) if axis == 0 else (33, 1)
        return b.emit(Concatenate(axis), *(b.emit(ShapeCast(shape), row) for row in rows[1:]))

    module = module_of(build, f32(33))
    arguments = arguments_for(module)
    (expected,) = results(module, arguments)
    (loops,) = lowered(module)
    assert len(loops.outputs) == count - 1
    np.testing.assert_array_equal(expected, results(module, arguments)[0])


def test_what_others_read_is_written_twice() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        y = b.emit(Sin(), x)
        pieces = [y, *(b.emit(Multiply(), y, x) for _ in range(5))]
        return [y, b.emit(Concatenate(0), *pieces)]

    module = module_of(build, f32(9))
    (loops,) = lowered(module)
    assert len(loops.own_outputs) == 2 and len(loops.outputs) == 7


def test_concatenations_of_concatenations_are_one() -> None:
    def build(b: Builder, x: Value) -> Value:
        rows = [b.emit(ShapeCast((1, 6)), b.emit(Sin(), x)) for _ in range(2)]
        inner = b.emit(Concatenate(0), *rows)
        flat = b.emit(ShapeCast((12,)), inner)
        return b.emit(Concatenate(0), flat, x)

    module = module_of(build, f32(6))
    lowered(module)
    ops = [i.op for i in module.functions["main"].entry.instructions]
    assert sum(isinstance(op, Empty) for op in ops) == 1


def test_few_pieces_that_only_a_nest_reads_are_selected() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        return b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Concatenate(0), x, y))

    module = module_of(build, f32(100), f32(50))
    generate_compute(module)
    fuse(module)
    nests = module.functions["main"].entry.instructions[:-1]
    assert len(nests) == 1
    assert any(isinstance(i.op, Select) for i in nests[0].regions[0].entry.instructions)


@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
def test_rows_cut_and_put_together_in_another_order(dtype: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        rows = [b.emit(Slice((k,), (k + 1,)), x) for k in (3, 0, 4, 1, 2, 0)]
        return b.emit(Concatenate(0), *rows)

    module = module_of(build, TensorType((5, 13), dtype))
    arguments = arguments_for(module)
    lowered(module)
    (found,) = run(module.functions["main"], arguments)
    np.testing.assert_array_equal(found, arguments[0][[3, 0, 4, 1, 2, 0]])
