"""Loops over blocks: wherever they stand, each point is visited once, and totals are those of the evaluator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Output, coordinate
from nnkit.core.types import F16, F32, I32, Array, DType, Shape, TensorType

from .running import Decisions, compare, expected, run_all, scheduled
from .test_nests_in_every_order import access, mapped

D = tuple(coordinate(axis) for axis in range(3))


def ways(extents: Shape, kept: frozenset[int]) -> Iterator[Decisions]:
    """Each axis that is summed in blocks, of one level or two, right around its loop or outside of all others."""
    axes = range(len(extents))
    for order in itertools.permutations(axes):
        for axis in sorted(set(axes) - kept):
            place = order.index(axis)
            for vector, lanes in ((-1, 1), *((v, 4) for v in {0, len(extents) - 1})):
                for accumulators in (1, 2) if order[-1] == axis else (1,):
                    unit = lanes if vector == axis else 1
                    unit *= accumulators if order[-1] == axis else 1
                    for first, sizes in ((place, (6, 3)), (place, (1,)), (0, (2,))):
                        blocks = [0] * (len(order) + len(sizes))
                        blocks[first : first + len(sizes)] = [size * unit for size in sizes]
                        loops = list(order)
                        loops[first:first] = [axis] * len(sizes)
                        for compensated in (False, True):
                            yield Decisions(
                                tuple(loops),
                                vector,
                                lanes,
                                accumulators,
                                -1,
                                tuple(blocks),
                                compensated,
                            )


@pytest.mark.parametrize("dtype", [F32, F16, I32], ids=str)
@pytest.mark.parametrize("by", [Combinator.ADD, Combinator.MAX], ids=str)
@pytest.mark.parametrize(
    ("extents", "kept"),
    [((27,), ()), ((5, 19), (0,)), ((19, 6), (1,)), ((2, 3, 5), (1,))],
    ids=str,
)
def test_blocks_anywhere(
    extents: Shape, kept: tuple[int, ...], by: Combinator, dtype: DType
) -> None:
    type = TensorType(extents, dtype)
    result = TensorType(tuple(extents[axis] for axis in kept), dtype)
    output = Output(result, tuple(D[axis] for axis in kept), by)
    build = mapped(extents, [access(*D[: len(extents)])], output)
    if (by is Combinator.MAX or len(extents) == 3) and dtype is not F32:
        return  # only sums depend on the element type, and two axes show how
    decisions = list(ways(extents, frozenset(kept)))
    numbers = np.random.default_rng(0).integers(-9, 10, extents).astype(dtype.numpy)
    infinite = numbers.copy()
    if dtype.is_float:
        infinite.reshape(-1)[3] = np.inf
    functions = [scheduled([type], build, decided) for decided in decisions]
    for array in (numbers, infinite):
        wanted = expected(functions[0], [array])
        for decided, found in zip(decisions, run_all(functions, [array]), strict=True):
            try:
                compare(functions[0], wanted, found)
            except AssertionError as error:
                error.add_note(str(decided))
                raise


def test_a_compensated_sum_keeps_what_rounding_cuts_off() -> None:
    array: Array = np.full(30_001, 0.1, np.float32)
    type = TensorType((30_001,), F32)
    build = mapped((30_001,), [access(D[0])], Output(TensorType((), F32), (), Combinator.ADD))
    decisions = [
        Decisions((0, 0), -1, 1, 1, -1, (8, 0), compensated) for compensated in (False, True)
    ]
    functions = [scheduled([type], build, decided) for decided in decisions]
    wanted = float(np.float32(0.1)) * 30_001
    plain, compensated = (abs(float(found[0]) - wanted) for found in run_all(functions, [array]))
    assert compensated <= 8 * 2**-24 * wanted < plain
