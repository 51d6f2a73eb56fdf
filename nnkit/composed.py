"""Losses and norms: functions of the language that are made of ops and combine elements along axes."""

from __future__ import annotations

from typing import Any

from .core import ops
from .core.ir import Builder, Value
from .core.ops import composed
from .core.ops.nest import Bounds
from .core.types import BOOL, I8, I64
from .functions import select
from .reps import as_rep
from .staging import primitive
from .staging.primitive import dtype_error, rank_error
from .staging.rep import Rep
from .staging.spec import TensorSpec


def softmax(x: Any, /, axis: int = -1) -> Rep:
    """exp(x) / Σ exp(x) along `axis`, without overflow."""
    return _along("softmax", composed.softmax, x, axis)


def log_softmax(x: Any, /, axis: int = -1) -> Rep:
    """log softmax(x) along `axis`, without overflow."""
    return _along("log_softmax", composed.log_softmax, x, axis)


def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """log Σ exp(x) along the axes; −∞ (with derivative 0) where all elements are −∞."""
    return _along("logsumexp", composed.log_sum_exp, x, axis, keepdims=keepdims)


def norm(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """√Σx² along the axes; derivative 0 at the zero vector, ±1 by an element that is ±∞."""
    return _along("norm", composed.norm, x, axis, keepdims=keepdims)


def _along(name: str, rule: Any, x: Any, axis: Any, **options: Any) -> Rep:
    return Rep(primitive.compose_along(name, rule, as_rep(x).expression, axis, **options))


def cross_entropy(logits: Any, labels: Any, /) -> Rep:
    """Mean over the batch of −Σ p log softmax(logits); labels are class numbers or probabilities p.

    Shapes: logits (b, c) or (c), labels (b) or () of integers, or of the shape of the logits.
    Raises: IndexOutOfRangeError when run with a class number outside 0 … c − 1.
    """
    rep, target = as_rep(logits), as_rep(labels)
    spec = primitive.tensor_of(rep.expression, "cross_entropy")
    given = primitive.tensor_of(target.expression, "cross_entropy")
    if spec.rank not in (1, 2):
        raise rank_error(f"cross_entropy takes logits of rank 1 or 2, not a {spec.words}")
    if not given.dtype.is_integer:
        if given != spec:
            raise dtype_error(f"labels are class numbers or a {spec.words}, not a {given.words}")
        return -(target * log_softmax(rep)).sum(-1).mean()
    if given.rank != spec.rank - 1:
        raise rank_error(f"labels for a {spec.words} have rank {spec.rank - 1}, not {given.rank}")
    if given.dtype is I8:  # it cannot count more than 128 classes
        target = Rep(primitive.cast(target.expression, I64))
    logs = log_softmax(rep)
    chosen = Rep(
        primitive.shape_dependent(
            "labels", _is_label, (logs.expression, target.expression), TensorSpec(spec.rank, BOOL)
        )
    )
    return -select(chosen, logs, 0.0).sum(-1).mean()


def _is_label(b: Builder, logits: Value, labels: Value) -> Value:
    """Where the class is the label; a label that is no class is found by the gather's check."""
    classes = b.emit(ops.Iota((logits.tensor.shape[-1],), 0, labels.tensor.dtype))
    checked = b.emit(ops.Gather(0, Bounds.CHECK), classes, labels)
    column = b.emit(ops.PadShape(labels.tensor.rank), checked)
    return b.emit(ops.Equal(), classes, column)


# ε is that of PyTorch, so that models come over as they are
def layer_norm(x: Any, /, *parameters: Any, epsilon: float = 1e-5) -> Rep:
    """(x − mean) / √(var + ε) over the last axis, then · scale + offset if these are given."""
    if len(parameters) not in (0, 2):
        raise rank_error("layer_norm takes x alone, or x, scale and offset")
    normal = _along("layer_norm", composed.standardized, x, -1, epsilon=float(epsilon))
    if not parameters:
        return normal
    scale, offset = map(as_rep, parameters)
    for parameter in (scale, offset):
        if primitive.tensor_of(parameter.expression, "layer_norm").rank != 1:
            raise rank_error(
                f"scale and offset of layer_norm are vectors, not a {parameter.spec.words}"
            )
    return normal * scale + offset
