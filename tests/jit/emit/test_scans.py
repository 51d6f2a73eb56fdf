"""Scans against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.ir.builder import start_function
from nnkit.core.ir.module import Function, Module
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.scan import Scan
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.stage import Stage
from nnkit.core.types import BF16, BOOL, F16, F32, F64, I32, I64, DType, Shape, TensorType
from nnkit.core.verify import verify

from .running import agree, finish, sample


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((7,), 0), ((5, 19), 0), ((5, 19), 1), ((3, 4, 70), 1), ((2, 0), 1), ((0, 3), 1), ((4, 1), 1)],
    ids=str,
)
@pytest.mark.parametrize(
    ("by", "dtype"),
    [
        (Combinator.ADD, F32),
        (Combinator.ADD, F64),
        (Combinator.ADD, BF16),
        (Combinator.ADD, I32),
        (Combinator.MULTIPLY, I64),
        (Combinator.MAX, F16),
        (Combinator.MIN, F32),
        (Combinator.OR, BOOL),
    ],
    ids=str,
)
def test_scan(
    by: Combinator, dtype: DType, shape: Shape, axis: int, reverse: bool, exclusive: bool
) -> None:
    type = TensorType(shape, dtype)
    agree(scanned(Scan(by, axis, reverse, exclusive), type), [sample(type)], exact=False)


def scanned(op: Scan, type: TensorType) -> Function:
    """A function that scans."""
    builder = start_function([type])
    function = finish(builder, builder.emit_many(op, builder.block.arguments))
    module = Module(stage=Stage.COMPUTE)
    module.add(function)
    schedule(module, Target(vector_bytes=64))
    verify(module)
    return function


@pytest.mark.parametrize("shape", [(20,), (20, 19)], ids=str)
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("by", [Combinator.MAX, Combinator.MIN], ids=str)
def test_running_extremes_order_zeros(by: Combinator, dtype: DType, shape: Shape) -> None:
    type = TensorType(shape, dtype)
    function = scanned(Scan(by, 0), type)
    random = np.random.default_rng(4).random(shape)
    x = np.select([random < 0.1, random < 0.5, random < 0.9], [-1.0, -0.0, 0.0], 1.0)
    agree(function, [x.astype(dtype.numpy)])
