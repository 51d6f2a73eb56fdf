"""Products that are equal are scheduled once, whatever programs they are in."""

from typing import Any

import numpy as np

from nnkit.core.compute.ops import MatrixProduct
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Instruction, Module, Stage, finish_function, start_function
from nnkit.core.kernels.same import written_body
from nnkit.core.ops import Return
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, TensorType, TupleType
from nnkit.core.verify import verify

TARGET = Target(vector_bytes=64, registers=32, fma=True)


def products(m: int) -> Module:
    """Two products of the same matrix in stage schedule."""
    b = start_function([TensorType((m, 8), F32), *[TensorType((8, 20), F32)] * 2])
    x, *others = b.block.arguments
    made = [b.emit(MatrixProduct(), x, other) for other in others]
    b.emit_many(Return(), made)
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("main", b, TupleType(tuple([one.type for one in made]))))
    schedule(module, TARGET)
    verify(module)
    return module


def test_equal_products_are_tiled_once_and_right_each_time() -> None:
    bodies: list[object] = []
    for m in (5, 5, 6):
        module = products(m)
        kernels: list[Instruction[Any]] = [
            i for i in module.functions["main"].entry.instructions if i.regions
        ]
        bodies += [written_body(kernel) for kernel in kernels]
        random = np.random.default_rng(m)
        x, u, v = (random.integers(-4, 4, s).astype(np.float32) for s in ((m, 8), (8, 20), (8, 20)))
        found = evaluate(module, "main", x, u, v)
        for one, w in zip(found, (u, v), strict=True):
            np.testing.assert_array_equal(one, x @ w)
    assert len(set(bodies[:4])) == 1 and bodies[4] not in bodies[:4]
