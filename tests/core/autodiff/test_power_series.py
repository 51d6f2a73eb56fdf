"""Series of ops against tangents of tangents, and of functions against their known series."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.errors import DifferentiationError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module, TangentOf
from nnkit.core.types import F64, TensorType
from tests.core.autodiff.building import Body, define, differentiate
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.samples import Sample
from tests.rows import each

DIFFERENTIABLE = [sample for sample in SAMPLES if sample.has_derivative]
ORDER = 3
"""Of the series of ops: the first whose terms are all of products of lower ones."""


def declare(module: Module, name: str, primal: str, **options: Any) -> Function:
    declaration = TangentOf(primal, **options)
    type = derivative_type(module.functions[primal].type, declaration)
    return module.add(Function(name, type, declaration=declaration))


def series_of(types: list[TensorType], body: Body, order: int, wrt: tuple[int, ...]) -> Module:
    """A module with `@f`, and its series `@series`."""
    module = Module()
    define(module, "f", types, body)
    declare(module, "series", "f", order=order, wrt=wrt, keeping=(0,))
    differentiate(module)
    return module


def coefficients(module: Module, *arguments: Any) -> list[Any]:
    """Those of `@series`, the value first."""
    *found, value = evaluate(module, "series", *arguments)
    return [value, *found]


def nested(sample: Sample, wrt: tuple[int, ...], order: int, arguments: list[Any]) -> list[Any]:
    """The coefficients of the series of an op by tangents of tangents of … of it."""
    module = Module()
    define(module, "f", sample.types, lambda *xs: xs[0].apply(sample.op, *xs[1:]))
    directions = arguments[len(sample.types) :]
    found: list[Any] = [evaluate(module, "f", *arguments[: len(sample.types)])]
    before = "f"
    for k in range(1, order + 1):
        declare(module, f"d{k}", before, wrt=wrt)
        before = f"d{k}"
    differentiate(module)
    for k in range(1, order + 1):
        value = evaluate(module, f"d{k}", *arguments, *directions * (k - 1))
        found.append(np.asarray(value) / math.factorial(k))
    return found


@each("sample", DIFFERENTIABLE, ids=str)
def test_the_series_of_an_op_is_that_of_tangents_of_tangents(sample: Sample) -> None:
    wrt = tuple(k for k, type in enumerate(sample.types) if type.dtype == F64)
    rng = np.random.default_rng(5)
    directions = [rng.uniform(-1, 1, sample.types[k].shape) for k in wrt]
    arguments = [*sample.operands(), *directions]
    order = ORDER
    with np.errstate(all="ignore"):
        while (expected := _nested_if_any(sample, wrt, order, arguments)) is None:
            with pytest.raises(DifferentiationError):
                _of_op(sample, order, wrt)
            order -= 1  # the derivative of trigamma is not there
        found = coefficients(_of_op(sample, order, wrt), *arguments)
    smooth = len(found) if sample.twice else 2
    for one, other in zip(found[:smooth], expected, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def _nested_if_any(
    sample: Sample, wrt: tuple[int, ...], order: int, arguments: list[Any]
) -> list[Any] | None:
    try:
        return nested(sample, wrt, order, arguments)
    except DifferentiationError:
        return None


def _of_op(sample: Sample, order: int, wrt: tuple[int, ...]) -> Module:
    return series_of(list(sample.types), lambda *xs: xs[0].apply(sample.op, *xs[1:]), order, wrt)
