"""Checks in parallel loops: whichever indices are wrong, the error is that of one thread, each time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.guarded_ops import CheckIndex
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import Combinator, Exp, Gather, Reduce, Tanh
from nnkit.core.ops.nest import Bounds
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import I64, TensorType
from tests.core.compute.building import f32, fused, module_of
from tests.jit.sharing import alone, sharing_everything
from tests.values import same_bits

from .running import CheckFailed, run

Operands = tuple[TensorType, ...]
Body = Callable[..., Value | list[Value]]


def _elements(b: Builder, x: Value, i: Value) -> Value:
    return b.emit(Exp(), b.emit(Gather(0, bounds=Bounds.CHECK), x, i))


def _rows(b: Builder, x: Value, i: Value) -> Value:
    return b.emit(Tanh(), b.emit(Gather(0, bounds=Bounds.CHECK), x, i))


def _total(b: Builder, x: Value, i: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0, 1)), _rows(b, x, i))


def _rows_and_sums(b: Builder, x: Value, i: Value) -> list[Value]:
    y = _rows(b, x, i)
    return [y, b.emit(Reduce(Combinator.ADD, (1,)), y)]


PROGRAMS: dict[str, tuple[Body, TensorType]] = {
    "elements": (_elements, f32(7)),
    "rows": (_rows, f32(7, 40)),
    "total": (_total, f32(7, 40)),
    "rows and sums": (_rows_and_sums, f32(7, 33)),
}


@pytest.mark.parametrize("kind", PROGRAMS)
@settings(max_examples=15)
@given(st.integers(40, 300), st.data())
def test_the_first_wrong_index_is_told(kind: str, count: int, data: st.DataObject) -> None:
    body, table = PROGRAMS[kind]
    module = fused(module_of(body, table, TensorType((count,), I64)))
    x = np.random.default_rng(count).standard_normal(table.shape).astype(np.float32)
    indices = np.arange(count) % 7
    with sharing_everything():
        schedule(module, Target(vector_bytes=64, registers=32, threads=2))
        function = module.functions["main"]
        kernels = list(filter(is_kernel, function.entry.instructions))
        shared = [
            loop
            for kernel in kernels
            for loop in inside(kernel.regions[0].entry)
            if is_loop(loop) and loop_op(loop).grain
        ]
        assert any(
            isinstance(one.op, CheckIndex)
            for loop in shared
            for one in inside(loop.regions[0].entry)
        )
        found = run(function, [x, indices])
        with alone():
            assert all(map(same_bits, found, run(function, [x, indices])))
        places = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=6, unique=True))
        for place in places:
            indices[place] = 100 + place if place % 2 else -1 - place
        wanted = indices[min(places)]
        with pytest.raises(
            IndexError, match=f"index {wanted} is out of range for an axis of extent 7"
        ):
            evaluate(module, "main", x, indices)
        for _ in range(5):
            with pytest.raises(CheckFailed) as failed:
                run(function, [x, indices])
            assert failed.value.args[1:3] == (wanted, 7)
            assert f"index {wanted} " in str(failed.value.error)
