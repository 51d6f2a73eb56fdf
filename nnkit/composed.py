"""Activations, losses and norms: functions composed in the language, whose gradients follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from .core import ops
from .core.errors import DTypeError, RankError
from .core.ir import Builder, Value
from .core.ops.nest import Bounds
from .core.types import BOOL, F32, I8, I64
from .functions import (
    as_rep,
    erfc,
    exp,
    log,
    log1p,
    operands_of,
    rsqrt,
    select,
    sqrt,
    square,
    stop_gradient,
)
from .reps import Rep
from .staging import primitive
from .staging.primitive import located
from .staging.spec import TensorSpec

_P = ParamSpec("_P")


def _in_f32(function: Callable[_P, Rep]) -> Callable[_P, Rep]:
    """The function, computed in f32 where its first argument is f16 or bf16: there squares overflow, errors add up."""

    @wraps(function)
    def wide(*args: _P.args, **kwargs: _P.kwargs) -> Rep:
        first, *others = args
        rep = as_rep(first)
        spec = rep.expression.type
        if not isinstance(spec, TensorSpec) or not spec.dtype.is_float or spec.dtype.bits != 16:
            return function(*args, **kwargs)
        run: Callable[..., Rep] = function
        return run(rep.cast(F32), *others, **kwargs).cast(spec.dtype)

    return wide


@_in_f32
def sigmoid(x: Any, /) -> Rep:
    """1 / (1 + e⁻ˣ), without overflow on either side."""
    rep = as_rep(x)
    negative = rep < 0.0
    small = exp(select(negative, rep, -rep))
    part = 1.0 / (small + 1.0)
    # the value in the lower half rounds twice less so; its derivatives are dearer, and no better
    lower = _straight_through(small - small * (small * part), small * part)
    return select(negative, lower, part)


@_in_f32
def softplus(x: Any, /) -> Rep:
    """log(1 + eˣ), without overflow; its derivatives are those of `sigmoid`."""
    rep = as_rep(x)
    above = rep > 0.0
    # no |x|, whose derivative 0 at 0 would be that of a kink
    return select(above, rep, 0.0) + log1p(exp(select(above, -rep, rep)))


def logaddexp(x: Any, y: Any, /) -> Rep:
    """log(eˣ + eʸ), without overflow; −∞ (with derivative 0) where both are −∞."""
    first, second = operands_of("logaddexp", x, y)
    above = first > second
    top, least = select(above, first, second), select(above, second, first)
    value = top + log1p(exp(_difference(least, top)))
    return select(value == -math.inf, -math.inf, value)


@_in_f32
def gelu(x: Any, /) -> Rep:
    """x · Φ(x) with Φ of the normal distribution, by erfc, which has all its digits where Φ vanishes."""
    rep = as_rep(x)
    # bounded where Φ is 0 or 1, whose product with ∞ would be NaN, or that of their derivative
    bounded = select(rep < -40.0, -40.0, rep)
    angle = select(bounded > 40.0, 40.0, bounded) * -math.sqrt(0.5)
    return bounded * 0.5 * erfc(angle)


@_in_f32
def softmax(x: Any, /, axis: int = -1) -> Rep:
    """exp(x) / Σ exp(x) along `axis`, without overflow."""
    rep = as_rep(x)
    powers = exp(rep - stop_gradient(rep.max(axis, keepdims=True)))
    return powers / powers.sum(axis, keepdims=True)


@_in_f32
def log_softmax(x: Any, /, axis: int = -1) -> Rep:
    """log softmax(x) along `axis`, without overflow."""
    rep = as_rep(x)
    shifted = rep - stop_gradient(rep.max(axis, keepdims=True))
    return shifted - log(exp(shifted).sum(axis, keepdims=True))


@_in_f32
def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """log Σ exp(x) along the axes; −∞ (with derivative 0) where all elements are −∞."""
    rep = as_rep(x)
    top = stop_gradient(rep.max(axis, keepdims=True))
    nothing = top == -math.inf
    shift = select(nothing, 0.0, top)
    total = exp(_difference(rep, shift)).sum(axis, keepdims=True)
    value = select(nothing, -math.inf, log(select(nothing, 1.0, total)) + shift)
    return value if keepdims else _without(value, axis)


@_in_f32
def norm(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """√Σx² along the axes; derivative 0 at the zero vector, ±1 by an element that is ±∞."""
    rep = as_rep(x)
    total = square(rep).sum(axis, keepdims=keepdims)
    zero = total == 0.0
    root = select(zero, 0.0, sqrt(select(zero, 1.0, total)))
    ends = select(rep == math.inf, rep, select(rep == -math.inf, -rep, 0.0))
    far = ends.sum(axis, keepdims=keepdims)
    return _straight_through(root, select(total == math.inf, far, root))


def cross_entropy(logits: Any, labels: Any, /) -> Rep:
    """Mean over the batch of −Σ p log softmax(logits); labels are class numbers or probabilities p.

    Shapes: logits (b, c) or (c), labels (b) or () of integers, or of the shape of the logits.
    Raises: IndexOutOfRangeError when run with a class number outside 0 … c − 1.
    """
    rep, target = as_rep(logits), as_rep(labels)
    spec = primitive.tensor_of(rep.expression, "cross_entropy")
    given = primitive.tensor_of(target.expression, "cross_entropy")
    if spec.rank not in (1, 2):
        raise located(RankError(f"cross_entropy takes logits of rank 1 or 2, not a {spec.words}"))
    if not given.dtype.is_integer:
        if given != spec:
            raise located(
                DTypeError(f"labels are class numbers or a {spec.words}, not a {given.words}")
            )
        return -(target * log_softmax(rep)).sum(-1).mean()
    if given.rank != spec.rank - 1:
        raise located(
            RankError(f"labels for a {spec.words} have rank {spec.rank - 1}, not {given.rank}")
        )
    if given.dtype is I8:  # it cannot count more than 128 classes
        target = Rep(primitive.cast(target.expression, I64))
    logs = log_softmax(rep)
    chosen = Rep(
        primitive.shaped(
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


def layer_norm(x: Any, /, *parameters: Any, epsilon: float = 1e-5) -> Rep:
    """(x − mean) / √(var + ε) over the last axis, then · scale + offset if these are given."""
    if len(parameters) not in (0, 2):
        raise located(RankError("layer_norm takes x alone, or x, scale and offset"))
    normal = _normal(x, epsilon)
    if not parameters:
        return normal
    scale, offset = map(as_rep, parameters)
    for parameter in (scale, offset):
        if primitive.tensor_of(parameter.expression, "layer_norm").rank != 1:
            raise located(
                RankError(
                    f"scale and offset of layer_norm are vectors, not a {parameter.spec.words}"
                )
            )
    return normal * scale + offset


@_in_f32
def _normal(x: Any, epsilon: float) -> Rep:
    """(x − mean) / √(var + ε) over the last axis."""
    rep = as_rep(x)
    centered = rep - rep.mean(-1, keepdims=True)
    variance = square(centered).mean(-1, keepdims=True)
    return centered * rsqrt(variance + epsilon)


def _difference(x: Rep, y: Rep) -> Rep:
    """x − y, and 0 where they are equal, infinite or not."""
    difference = x - y
    return _straight_through(select(x == y, 0.0, difference), difference)


def _straight_through(value: Rep, x: Rep) -> Rep:
    """`value` with the derivatives of `x`."""
    return Rep(primitive.elementwise(ops.StraightThrough(), value.expression, x.expression))


def _without(x: Rep, axis: Any) -> Rep:
    """x without the axes of extent 1 that a reduction kept."""
    axes = primitive.normalize_axes(axis, primitive.tensor_of(x.expression, "a reduction").rank)
    for position in reversed(axes):
        x = x.squeeze(position)
    return x
