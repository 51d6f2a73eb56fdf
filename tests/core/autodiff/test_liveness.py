"""What a list of values needs."""

from __future__ import annotations

from nnkit.core import ops
from nnkit.core.autodiff.liveness import backward_slice
from nnkit.core.ir import Builder

from .building import tensor


def test_what_is_needed_stays_in_order_and_the_rest_goes() -> None:
    b = Builder()
    x, y = b.argument(tensor()), b.argument(tensor())
    sine = b.emit(ops.Sin(), x)
    b.emit(ops.Cos(), sine)
    product = b.emit(ops.Multiply(), sine, x)
    kept, used = backward_slice(b.block.instructions, [product])
    assert [instruction.result for instruction in kept] == [sine, product]
    assert used == {product, sine, x}
    assert backward_slice(b.block.instructions, [y]) == ([], {y})
