"""Losses and norms: functions of the language that are made of ops and combine elements along axes."""

from __future__ import annotations

from functools import partial
from typing import Any

from .core import ops
from .core.ir import Builder, Value
from .core.ops import composed
from .core.ops.nest import Bounds
from .core.types import BOOL, I8, I64
from .elementwise import rint
from .functions import select
from .in_f32 import in_f32
from .reps import as_rep
from .staging import primitive
from .staging.extents import is_symbolic
from .staging.primitive import dtype_error, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import TensorSpec


def round(a: Any, decimals: int = 0) -> Rep:
    """The nearest number of so many decimals, halves to even; derivative 0; integers stay what they are.

    Of tens, hundreds and so on where `decimals` is negative, for floats.
    Example: `nk.round(x * 1.25, 1)`
    """
    rep = as_rep(a)
    dtype = primitive.tensor_of(rep.expression, "round").dtype
    if not primitive.is_index(decimals) or is_symbolic(decimals):
        raise dtype_error(f"decimals are a Python int, not {decimals!r}")
    if dtype.is_integer and decimals >= 0:
        return rep
    return rint(rep) if decimals == 0 else in_f32("round", partial(_rounded, int(decimals)), rep)


def _rounded(decimals: int, x: Rep) -> Rep:
    scale = 10.0 ** abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


def softmax(x: Any, axis: int = -1) -> Rep:
    """exp(x) / Σ exp(x) along `axis`, without overflow."""
    return _along("softmax", composed.softmax, x, axis)


def log_softmax(x: Any, axis: int = -1) -> Rep:
    """log softmax(x) along `axis`, without overflow."""
    return _along("log_softmax", composed.log_softmax, x, axis)


def logsumexp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """log Σ exp(a) along the axes; −∞ (with derivative 0) where all elements are −∞."""
    return _along("logsumexp", composed.log_sum_exp, a, axis, keepdims=keepdims)


def norm(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """√Σa² along the axes; derivative 0 at the zero vector, ±1 by an element that is ±∞."""
    return _along("norm", composed.norm, a, axis, keepdims=keepdims)


def _along(name: str, rule: Any, x: Any, axis: Any, **options: Any) -> Rep:
    return Rep(primitive.compose_along(name, rule, as_rep(x).expression, axis, **options))


def cross_entropy(
    logits: Any,
    labels: Any,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Rep:
    """Mean over the batch of −Σ p log softmax(logits); labels are class numbers or probabilities p.

    Classes have a `weight` each, and the mean is that by the weights of the labels if these are class numbers; those
    that are `ignore_index` do not count.  With `label_smoothing` ε labels p are (1 − ε) · p + ε / c.
    Shapes: logits (b, c), labels (b) of integers → (); logits (c), labels () of integers → (); labels also as logits;
    weight (c).
    Raises: IndexOutOfRangeError when run with a class number outside 0 … c − 1.
    """
    rep, target = as_rep(logits), as_rep(labels)
    spec = primitive.tensor_of(rep.expression, "cross_entropy")
    given = primitive.tensor_of(target.expression, "cross_entropy")
    if spec.rank not in (1, 2):
        raise rank_error(f"cross_entropy takes logits of rank 1 or 2, not a {spec.words}")
    if reduction not in ("mean", "sum", "none"):
        raise shape_error(f"cross_entropy: reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    smoothing: Any = label_smoothing
    if not is_number(smoothing) or not 0 <= smoothing <= 1:
        raise shape_error(
            f"cross_entropy: label_smoothing is a number from 0 to 1, not {smoothing!r}"
        )
    of_class = _class_weights(spec, weight)
    if given.dtype.is_integer:
        return _by_class_numbers(
            rep, target, of_class, ignore_index, reduction, float(label_smoothing)
        )
    if given != spec:
        raise dtype_error(f"labels are class numbers or a {spec.words}, not a {given.words}")
    if ignore_index is not None:
        raise dtype_error("ignore_index is a class number, and labels are probabilities")
    logs = log_softmax(rep)
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / rep.shape[-1]
    terms = target * logs if of_class is None else target * logs * of_class
    losses = -terms.sum(-1)
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


def _class_weights(spec: TensorSpec, weight: Any) -> Rep | None:
    if weight is None:
        return None
    rep = as_rep(weight)
    given = primitive.tensor_of(rep.expression, "cross_entropy")
    if given.rank != 1 or given.dtype is not spec.dtype:
        raise rank_error(
            f"the weight of cross_entropy for a {spec.words} is a vector of {spec.dtype}, one for each class, "
            f"not a {given.words}"
        )
    return rep


def _by_class_numbers(
    logits: Rep, labels: Rep, of_class: Rep | None, ignored: Any, reduction: str, smoothing: float
) -> Rep:
    spec = primitive.tensor_of(logits.expression, "cross_entropy")
    given = primitive.tensor_of(labels.expression, "cross_entropy")
    if given.rank != spec.rank - 1:
        raise rank_error(f"labels for a {spec.words} have rank {spec.rank - 1}, not {given.rank}")
    counts: Rep | None = None
    if ignored is not None:
        counts = labels != int(ignored)
        labels = select(counts, labels, 0)
    if given.dtype is I8:  # it cannot count more than 128 classes
        labels = Rep(primitive.cast(labels.expression, I64))
    logs = log_softmax(logits)
    kind = TensorSpec(spec.rank, BOOL)
    operands = (logs.expression, labels.expression)
    chosen = Rep(primitive.shape_dependent("labels", _is_label, operands, kind))
    weighted = logs if of_class is None else logs * of_class
    losses = -select(chosen, weighted, 0.0).sum(-1)
    if smoothing:
        evenly = -weighted.sum(-1) / logits.shape[-1]
        losses = losses * (1.0 - smoothing) + evenly * smoothing
    if counts is not None:
        losses = select(counts, losses, 0.0)
    if reduction != "mean":
        return losses.sum() if reduction == "sum" else losses
    if of_class is None and counts is None:
        return losses.mean()
    if of_class is None:
        assert counts is not None
        shares = counts.cast(spec.dtype)
    else:
        shares = select(chosen, of_class, 0.0).sum(-1)
        shares = shares if counts is None else select(counts, shares, 0.0)
    return losses.sum() / shares.sum()


def _is_label(b: Builder, logits: Value, labels: Value) -> Value:
    """Where the class is the label; a label that is no class is found by the gather's check."""
    classes = b.emit(ops.Iota((logits.tensor.shape[-1],), 0, labels.tensor.dtype))
    checked = b.emit(ops.Gather(0, Bounds.CHECK), classes, labels)
    column = b.emit(ops.PadShape(labels.tensor.rank), checked)
    return b.emit(ops.Equal(), classes, column)


# ε is that of PyTorch, so that models come over as they are
def layer_norm(x: Any, scale: Any = None, offset: Any = None, *, epsilon: float = 1e-5) -> Rep:
    """(x − mean) / √(var + ε) over the last axis, then · scale + offset if these are given."""
    if (scale is None) is not (offset is None):
        raise rank_error("layer_norm takes x alone, or x, scale and offset")
    normal = _along("layer_norm", composed.standardized, x, -1, epsilon=float(epsilon))
    if scale is None:
        return normal
    parameters = as_rep(scale), as_rep(offset)
    for parameter in parameters:
        if primitive.tensor_of(parameter.expression, "layer_norm").rank != 1:
            raise rank_error(
                f"scale and offset of layer_norm are vectors, not a {parameter.spec.words}"
            )
    return normal * parameters[0] + parameters[1]
