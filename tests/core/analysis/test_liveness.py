"""What a list of values needs, and what nothing needs."""

from __future__ import annotations

import pytest

from nnkit.core import ops
from nnkit.core.analysis import Effects
from nnkit.core.analysis.liveness import backward_slice, erase_dead
from nnkit.core.ir import Builder, Module, Region
from nnkit.core.ops.trap import Trap
from nnkit.core.types import BOOL, F64, TensorType, scalar

F = TensorType((), F64)


def test_what_is_needed_stays_in_order_and_the_rest_goes() -> None:
    b = Builder()
    x, y = b.argument(F), b.argument(F)
    sine = b.emit(ops.Sin(), x)
    b.emit(ops.Cos(), sine)
    product = b.emit(ops.Multiply(), sine, x)
    kept, used = backward_slice(b.block.instructions, [product])
    assert [instruction.result for instruction in kept] == [sine, product]
    assert used == {product, sine, x}
    assert backward_slice(b.block.instructions, [y]) == ([], {y})


@pytest.mark.parametrize("stops", [False, True])
def test_what_nothing_uses_is_erased_unless_it_has_an_effect(stops: bool) -> None:
    b = Builder()
    x, condition = b.argument(F), b.argument(scalar(BOOL))
    sine = b.emit(ops.Sin(), x)
    b.emit(ops.Cos(), b.emit(ops.Exp(), sine))
    bodies = [Builder(), Builder()]
    for body in bodies:
        body.emit(ops.Tan(), sine)
        if stops:
            body.emit_many(Trap(), ())
        body.emit_many(ops.Yield(), ())
    b.emit_many(ops.If(), (condition,), [Region([body.block]) for body in bodies])
    b.emit_many(ops.Return(), (x,))
    erase_dead(b.block, Effects(Module()))
    names = [instruction.op.name for instruction in b.block.instructions]
    assert names == (["sin", "if", "return"] if stops else ["return"])
    assert len(sine.uses) == (2 if stops else 0) and len(x.uses) == 1 + stops
