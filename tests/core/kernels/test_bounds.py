"""Which accesses are proved to be inside of their buffers."""

from __future__ import annotations

import pytest

from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.ops import DataTypeCast
from nnkit.core.types import F32, I64, TensorType

TABLE: list[tuple[str, int, int, int, int, int, list[str]]] = [
    # an index `constant + times · i` of 5 iterations by 2 from 1: that is 1 to 9; lanes, how many are active
    ("inside", 0, 1, 0, 0, 0, []),
    ("one too far", 1, 1, 0, 0, 0, ["indices 2 to 10 along axis 0, which has 10 elements"]),
    ("before", -2, 1, 0, 0, 0, ["indices -1 to 7 along axis 0, which has 10 elements"]),
    ("backwards", 9, -1, 0, 0, 0, []),
    ("vector", -1, 1, 2, 1, 0, []),
    ("vector, one too far", 0, 1, 2, 1, 0, ["indices 1 to 10 along axis 0, which has 10 elements"]),
    ("vector of which one lane is active", 0, 1, 2, 1, 1, []),
    ("vector backwards", 0, 1, 4, -1, 0, ["indices -2 to 9 along axis 0, which has 10 elements"]),
    ("strided vector", 0, 0, 4, 3, 0, []),
]


@pytest.mark.parametrize(("name", "constant", "times", "lanes", "step", "active", "reasons"), TABLE)
def test_table(
    name: str, constant: int, times: int, lanes: int, step: int, active: int, reasons: list[str]
) -> None:
    build = KernelBuilder([TensorType((10,), F32)], [TensorType((10,), F32)])
    (x,), (y,) = build.operands, build.outputs
    with build.loop(10, lower=1, step=2) as loop:
        index = IndexSum(constant, {loop.index: times} if times else {})
        value = build.load(x, index, lanes=lanes, steps=(step,) if lanes else (), active=active)
        build.store(value, y, index, steps=(step,) if lanes else (), active=active)
    found = list(accesses_outside(build.block))
    assert [x.reason for x in found] == reasons * 2
    assert [x.instruction.op.name for x in found] == ["loadAt", "storeAt"][: len(found)]


def test_a_loop_that_does_not_run_touches_nothing_and_a_computed_index_anything() -> None:
    build = KernelBuilder([TensorType((10,), F32)], [TensorType((), F32)])
    (x,), (y,) = build.operands, build.outputs
    with build.loop(0):
        build.store(build.load(x, 10), y)
    where = build.emit(DataTypeCast(I64), build.load(x, 3))
    build.store(build.load(x, where), y)
    (found,) = accesses_outside(build.block)
    assert found.reason == "the index along axis 0 is computed from what is not known"
