"""Axes that are walked through as one become one, and the nest gives what it gave."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Instruction, Value, finish_function, start_function
from nnkit.core.ir.module import Module
from nnkit.core.ops import Add, Combinator, Return, constant
from nnkit.core.ops.nest import Access, Affine, Nest, Output, build_nest, coordinate, is_nest
from nnkit.core.schedule.collapse import axes_of_rows, emit_collapsed, joined_axes
from nnkit.core.stage import Stage
from nnkit.core.types import F64, Shape, TensorType, one_or_tuple
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, results

Reading = tuple[TensorType, Access]


def plain(extents: Shape) -> Reading:
    return TensorType(extents, F64), Access(tuple(map(coordinate, range(len(extents)))))


def counted(extents: Shape) -> Reading:
    """By one index for all axes."""
    strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
    return TensorType((math.prod(extents),), F64), Access((_sum(strides),))


def backwards(extents: Shape) -> Reading:
    """The same from the last one, every second."""
    strides = [-2 * math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
    last = 2 * math.prod(extents) - 1
    return TensorType((2 * math.prod(extents),), F64), Access((_sum(strides) + last,))


def rows_counted(extents: Shape) -> Reading:
    """A matrix, whose rows all axes but the last count."""
    *rows, columns = extents
    strides = [math.prod(rows[axis + 1 :]) for axis in range(len(rows))]
    matrix = TensorType((math.prod(rows), columns), F64)
    return matrix, Access((_sum(strides), coordinate(len(rows))))


def of_row(extents: Shape) -> Reading:
    return TensorType(extents[:-1], F64), Access(tuple(map(coordinate, range(len(extents) - 1))))


def of_column(extents: Shape) -> Reading:
    return TensorType(extents[-1:], F64), Access((coordinate(len(extents) - 1),))


def of_first(extents: Shape) -> Reading:
    """What forbids to join the first two axes."""
    return TensorType(extents[:1], F64), Access((coordinate(0),))


def apart(extents: Shape) -> Reading:
    """Rows of a tensor that is larger than what is read of it: one axis after the other."""
    wide = (*(n + 1 for n in extents[:-1]), extents[-1])
    return TensorType(wide, F64), Access(tuple(map(coordinate, range(len(extents)))))


def _sum(strides: list[int]) -> Affine:
    index = Affine()
    for axis, stride in enumerate(strides):
        index = index + coordinate(axis) * stride
    return index


READINGS: tuple[Callable[[Shape], Reading], ...] = (
    *(plain, counted, backwards, rows_counted, of_row, of_column, of_first, apart),
)
FREE = plain, counted, backwards, rows_counted
"""What keeps no two axes of rows apart; `of_row` and `of_column` do not, either."""


def nest_of(extents: Shape, readings: list[Callable[[Shape], Reading]], *, sums: bool) -> Module:
    """The sum of what is read at each point, and of each row."""
    reads = [reading(extents) for reading in readings]
    b = start_function([type for type, _ in reads])
    whole, _ = plain(extents)
    outputs = [Output(whole, plain(extents)[1].indices)]
    if sums:
        row, access = of_row(extents)
        outputs.append(Output(row, access.indices, Combinator.ADD))

    def body(inner: Builder, _: object, scalars: object) -> list[Value]:
        total = constant(inner, TensorType((), F64), 1.0)
        assert isinstance(scalars, list)
        for scalar in scalars:
            total = inner.emit(Add(), total, scalar)
        return [total] * len(outputs)

    operands = list(zip(b.block.arguments, (access for _, access in reads), strict=True))
    made = build_nest(b, extents, operands, outputs, body)
    b.emit_many(Return(), made)
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("main", b, one_or_tuple([x.type for x in made])))
    return module


Joined = Callable[[Instruction, Nest], "frozenset[int] | None"]


@given(
    st.lists(st.sampled_from((1, 2, 3, 5, 0)), min_size=2, max_size=4).map(tuple),
    st.lists(st.sampled_from(READINGS), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from((axes_of_rows, joined_axes)),
)
def test_a_nest_over_joined_axes_gives_the_same(
    extents: Shape, readings: list[Callable[[Shape], Reading]], sums: bool, join: Joined
) -> None:
    module = nest_of(extents, readings, sums=sums)
    verify(module)
    arguments = arguments_for(module)
    expected = results(module, arguments)
    block = module.functions["main"].entry
    nest = next(i for i in block.instructions if isinstance(i.op, Nest))
    assert is_nest(nest)
    joined = join(nest, nest.op)
    if not joined:
        is_free = all(reading in (*FREE, of_row, of_column) for reading in readings)
        assert join is joined_axes or len(extents) < 3 or 0 in extents or not is_free
        return
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        if instruction is nest:
            nest.replace_with(*emit_collapsed(b, nest, nest.op, joined))
        else:
            block.instructions.append(instruction)
    verify(module)
    for one, other in zip(results(module, arguments), expected, strict=True):
        np.testing.assert_array_equal(one, other)
