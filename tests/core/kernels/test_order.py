"""What is used in turn is computed in turn; what is stored and loaded stays in order."""

from __future__ import annotations

from nnkit.core.ir import Builder
from nnkit.core.kernels.access_ops import LoadAt, StoreAt
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.ops import LaneNumbers
from nnkit.core.kernels.order import shorten_live_ranges
from nnkit.core.ops import Add, Negate, Yield
from nnkit.core.ops.nest import Affine
from nnkit.core.types import F32, PointerType, TensorType

BUFFER = PointerType(TensorType((4,), F32))


def test_loads_stand_before_their_first_use() -> None:
    b = Builder()
    source, target = b.argument(BUFFER), b.argument(BUFFER)
    loads = [b.emit(LoadAt((Affine(k),)), source) for k in range(4)]
    values = [b.emit(Negate(), x) for x in loads]
    for k, value in enumerate(values):
        b.emit_many(StoreAt((Affine(k),)), [value, target])
    b.emit_many(Yield(), [])
    shorten_live_ranges(b.block)
    names = [i.op.name for i in b.block.instructions]
    assert names == ["loadAt", "negate", "storeAt"] * 4 + ["yield"]


def test_loads_of_what_is_stored_stay() -> None:
    b = Builder()
    buffer = b.argument(BUFFER)
    old = b.emit(LoadAt((Affine(0),)), buffer)
    other = b.emit(LoadAt((Affine(1),)), buffer)
    b.emit_many(StoreAt((Affine(1),)), [old, buffer])
    b.emit_many(StoreAt((Affine(0),)), [other, buffer])
    b.emit_many(Yield(), [])
    before = list(b.block.instructions)
    shorten_live_ranges(b.block)
    assert b.block.instructions == before


def test_results_that_alias_operands_count_as_stored() -> None:
    b = Builder()
    source, target = b.argument(BUFFER), b.argument(BUFFER)
    first = b.emit(LoadAt((Affine(0),)), source)
    second = b.emit(LoadAt((Affine(1),)), source)
    b.emit_many(StoreAt((Affine(1),)), [first, target])
    b.emit_many(StoreAt((Affine(0),)), [second, target])
    b.emit_many(Yield(), [])
    before = list(b.block.instructions)
    shorten_live_ranges(b.block, aliases=[(source, target)])
    assert b.block.instructions == before
    shorten_live_ranges(b.block)
    assert b.block.instructions != before


def test_what_a_loop_that_never_runs_uses_stands_before_it() -> None:
    build = KernelBuilder([], [])
    one = build.emit(LaneNumbers(4, 2))
    two = build.emit(Add(), one, one)
    with build.loop(0):
        build.emit(Negate(), two)
    shorten_live_ranges(build.block)
    names = [instruction.op.name for instruction in build.block.instructions]
    assert names == ["laneNumbers", "add", "loop"]
