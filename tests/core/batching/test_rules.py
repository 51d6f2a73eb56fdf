"""The law of batches, over the samples of all ops: the batched op is the op on one element after the other.

For every choice of operands that differ among the elements; the others are the same for all, and have no further axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from nnkit.core.driver.stages import advance
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import BatchOf, Function, Module, Op, finish_function, start_function
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import For, Return
from nnkit.core.stage import Stage
from nnkit.core.types import Array, FunctionType, TensorType
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.running import result_of
from tests.core.ops.samples import Sample
from tests.rows import each

EXTENT = 3

FEW = 3
"""More operands than that all play the same part."""


def subsets(count: int) -> Iterator[tuple[bool, ...]]:
    """Every choice of some of so many operands; of more than a few, each alone, all but each, and all."""
    for which in itertools.product([True, False], repeat=count):
        if any(which) and (count <= FEW or sum(which) in (1, count - 1, count)):
            yield which


CASES = [(sample, which) for sample in SAMPLES for which in subsets(len(sample.types))]


def batched_module(op: Op, types: tuple[TensorType, ...], which: tuple[bool, ...]) -> Module:
    """`@main`, the batch of a function that runs the op."""
    module = Module()
    b = start_function(types)
    y = b.emit(op, *b.block.arguments)
    b.emit_many(Return(), [y])
    module.add(finish_function("one", b, y.type))
    given = tuple(
        type.with_shape((EXTENT, *type.shape)) if is_batched else type
        for type, is_batched in zip(types, which, strict=True)
    )
    made = y.tensor.with_shape((EXTENT, *y.tensor.shape))
    declaration = BatchOf("one", tuple(0 if is_batched else None for is_batched in which))
    module.add(Function("main", FunctionType(given, made), declaration=declaration))
    return module


def elements(sample: Sample) -> list[list[Any]]:
    """Operands for each element: the sample's, with their elements in another order each time."""
    return [
        [np.roll(x.ravel(), k).reshape(x.shape) for x in sample.operands()] for k in range(EXTENT)
    ]


def batch(rows: list[list[Any]], which: tuple[bool, ...]) -> list[Array]:
    return [
        np.stack([row[k] for row in rows]) if is_batched else rows[0][k]
        for k, is_batched in enumerate(which)
    ]


def name(case: object) -> str:
    return str(case) if isinstance(case, Sample) else "".join("b" if x else "-" for x in case)  # type: ignore[attr-defined]


@each(("sample", "which"), CASES, ids=name)
def test_the_batched_op_is_a_loop_over_the_elements(
    sample: Sample, which: tuple[bool, ...]
) -> None:
    module = batched_module(sample.op, sample.types, which)
    advance(module, Stage.OPTIMIZABLE, "main", level=0)
    rows = elements(sample)
    found = np.asarray(evaluate(module, "main", *batch(rows, which)))
    for number, row in enumerate(rows):
        operands = [x if b else first for x, first, b in zip(row, rows[0], which, strict=True)]
        expected = result_of(sample.op, sample.types, operands)
        np.testing.assert_allclose(found[number], expected, rtol=1e-13, atol=1e-13)
    # without a batched form it would run for one element after the other
    bodies = [f.body for f in module.functions.values() if f.body is not None]
    assert not any(isinstance(i.op, For) for body in bodies for i in walk(body))
