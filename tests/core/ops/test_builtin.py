"""Builtins: samples for the laws, then overflow, and names that do not exist."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from nnkit.core.errors import DTypeError, RankError, VerifyError
from nnkit.core.ops import Builtin
from nnkit.core.ops.builtin import BUILTINS
from nnkit.core.types import BF16, F16, F32, F64, Array, DType, TensorType
from tests.accuracy import samples, truth, ulps

from .samples import ErrorSample, Sample, f64, i32


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))))


BY_ELEMENT: dict[str, Callable[..., Any]] = {
    "sigmoid": sigmoid,
    "logistic": sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "silu": lambda x: x * sigmoid(x),
    "gelu": gelu,
}
ALONG: dict[str, Callable[..., Any]] = {
    "softmax": softmax,
    "logSoftmax": lambda x: np.log(softmax(x)),
}
OF_ALL: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "product": np.prod, "mean": np.mean, "variance": np.var,
    "l2Norm": lambda x: np.sqrt((x * x).sum()), "min": np.min, "max": np.max,
}  # fmt: skip

SAMPLES = [
    *(Sample(Builtin(name, x), (x,), numpy=f) for name, f in BY_ELEMENT.items() for x in (f64(), f64(3), f64(2, 0))),
    *(Sample(Builtin(name, x), (x,), numpy=f) for name, f in ALONG.items() for x in (f64(3), f64(2, 4), f64(2, 1))),
    *(Sample(Builtin(name, f64()), (f64(*s),), numpy=f) for name, f in OF_ALL.items() for s in ((), (3,), (2, 4))),
    Sample(Builtin("logSumExp", f64(2)), (f64(2, 3),), numpy=lambda x: np.log(np.exp(x).sum(-1))),
    Sample(Builtin("logSumExp", f64()), (f64(3),)),
    Sample(Builtin("max", f64(2, 3)), (f64(2, 1), f64(3)), numpy=np.maximum),
    Sample(Builtin("min", f64(3)), (f64(), f64(3)), numpy=np.minimum),
    Sample(Builtin("sum", i32()), (i32(2, 3),), numpy=lambda x: x.sum(dtype="i4")),
    Sample(Builtin("relu", i32(4)), (i32(4),), numpy=lambda x: np.maximum(x, 0)),
]  # fmt: skip
ERRORS = [
    ErrorSample(Builtin("softmx", f64(2)), (f64(2),), "no builtin 'softmx': did you mean softmax", VerifyError),
    ErrorSample(Builtin("", f64(2)), (f64(2),), "builtins are gelu, l2Norm, logSoftmax, logSumExp", VerifyError),
    ErrorSample(Builtin("softmax", f64(3)), (f64(2),), "builtin softmax of f64[2] is a <2 x f64>, not a <3 x f64>"),
    ErrorSample(Builtin("mean", f64(2)), (f64(2),), "builtin mean of f64[2] is a f64, not a <2 x f64>"),
    ErrorSample(Builtin("softmax", f64()), (f64(),), "works along the last axis, which f64[] has not", RankError),
    ErrorSample(Builtin("softmax", i32(2)), (i32(2),), "builtin softmax takes float elements, not i32", DTypeError),
    ErrorSample(Builtin("tanh", f64(2)), (f64(2),), "there is no builtin 'tanh'", VerifyError),
    ErrorSample(Builtin("max", f64(2)), (f64(2),) * 3, "builtin max takes 1 or 2 operands, not 3", RankError),
    ErrorSample(Builtin("relu", f64(2)), (), "builtin relu takes 1 operand, not 0", RankError),
    ErrorSample(Builtin("max", f64(2)), (f64(2), f64(3)), "cannot take the maximum of f64[2] and f64[3]"),
]  # fmt: skip


def test_every_builtin_has_samples() -> None:
    assert {sample.op.builtin for sample in SAMPLES if isinstance(sample.op, Builtin)} == set(
        BUILTINS
    )


def evaluated(builtin: str, x: list[float]) -> Array:
    values = np.array(x)
    result = f64() if builtin in OF_ALL or builtin == "logSumExp" else f64(len(x))
    return np.asarray(Builtin(builtin, result).evaluate(values))


def test_nothing_overflows_on_the_way() -> None:
    assert evaluated("softmax", [1e4, -1e4, 1e4]).tolist() == [0.5, 0.0, 0.5]
    assert evaluated("logSoftmax", [1e4, -1e4]).tolist() == [0.0, -2e4]
    assert evaluated("logSumExp", [1e4, 1e4]) == pytest.approx(1e4 + math.log(2))
    assert evaluated("logSumExp", [-math.inf] * 2) == -math.inf
    assert evaluated("sigmoid", [-1e4, 1e4]).tolist() == [0.0, 1.0]
    assert evaluated("softplus", [-1e4, 0.0, 1e4]).tolist() == [0.0, math.log(2), 1e4]
    assert math.isnan(evaluated("mean", []))


@pytest.mark.parametrize(("dtype", "type", "bound"), [(F32, np.float32, 2), (F64, np.float64, 3)])
def test_errors_of_the_logistic_function(
    dtype: DType, type: type[np.floating[Any]], bound: float
) -> None:
    (x,) = samples("logistic", type, settings().max_examples)
    result = Builtin("logistic", TensorType(x.shape, dtype)).evaluate(x)
    assert ulps(result, truth("logistic", type, x)).max() <= bound


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_means_of_narrow_floats_are_summed_in_wide_ones(dtype: DType) -> None:
    x = dtype.round(np.full(70000, 1.0))
    assert Builtin("mean", TensorType((), dtype)).evaluate(x) == 1.0
    assert Builtin("variance", TensorType((), dtype)).evaluate(x) == 0.0
