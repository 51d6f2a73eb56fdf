"""Normalisation over a batch, groups of channels or an axis.

Tensors are brought to mean 0 and variance 1, or to length 1.
Images are (n, c, …), channels along axis 1.  ε is that of PyTorch, so that models come over as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .composed import norm
from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import composed
from .core.ops.movement import reshaped
from .elementwise import rsqrt, square
from .functions import select
from .in_f32 import float_of, in_f32
from .reps import as_rep
from .staging import primitive
from .staging.primitive import rank_error, shape_error, staging_error
from .staging.rep import Rep


def batch_norm(
    x: Any,
    scale: Any = None,
    offset: Any = None,
    *,
    mean: Any = None,
    var: Any = None,
    epsilon: float = 1e-5,
) -> Rep:
    """(x − mean) / √(var + ε) for each channel, axis 1, then · scale + offset if these are given.

    Mean and (population) variance are those of x over all other axes, or the ones that are given, such as running
    averages of `x.mean((0, 2, 3))` and `x.var((0, 2, 3))`.

    Shapes: x (n, c, …), scale (c), offset (c), mean (c), var (c) → (n, c, …).

    Example: `nk.batch_norm(m)`
    """
    rep = as_rep(x)
    rank = _rank("batch_norm", rep, 2)
    if (mean is None) is not (var is None):
        raise staging_error("batch_norm takes both mean and var, or none of them")
    if mean is None:
        axes = tuple(axis for axis in range(rank) if axis != 1)
        normal = _standardized("batch_norm", rep, axes, epsilon)
    else:
        given = [_channels("batch_norm", value, rank) for value in (mean, var)]

        def compute(x: Rep, mean: Rep, var: Rep) -> Rep:
            return (x - mean) * rsqrt(var + float(epsilon))

        normal = in_f32("batch_norm", compute, rep, *given)
    return _scaled("batch_norm", normal, (scale, offset), rank)


def group_norm(
    x: Any, groups: int, scale: Any = None, offset: Any = None, *, epsilon: float = 1e-5
) -> Rep:
    """(x − mean) / √(var + ε) over each of `groups` groups of channels of each element, then · scale + offset.

    Shapes: x (n, c, …), scale (c), offset (c) → (n, c, …).

    Example: `nk.group_norm(m, 1)`
    """
    rep = as_rep(x)
    rank = _rank("group_norm", rep, 2)
    if not primitive.is_index(groups) or groups < 1:
        raise shape_error(f"group_norm: groups is a positive int, not {groups!r}")
    float_of("group_norm", rep)
    rule = partial(_group_norm, groups=int(groups), epsilon=float(epsilon))
    spec = primitive.tensor_of(rep.expression, "group_norm")
    normal = Rep(primitive.shape_dependent("group_norm", rule, (rep.expression,), spec))
    return _scaled("group_norm", normal, (scale, offset), rank)


def _group_norm(b: Builder, x: Value, groups: int, epsilon: float) -> Value:
    batch, channels, *places = shape = x.tensor.shape
    if channels % groups:
        raise ShapeError(
            f"group_norm: {channels} channels of {x.tensor.words} cannot be split into {groups} groups"
        )
    split = reshaped(b, x, (batch, groups, channels // groups, *places))
    axes = tuple(range(2, split.tensor.rank))
    return reshaped(b, composed.standardized(b, split, axes=axes, epsilon=epsilon), shape)


def instance_norm(x: Any, scale: Any = None, offset: Any = None, *, epsilon: float = 1e-5) -> Rep:
    """(x − mean) / √(var + ε) over the places of each channel of each element, then · scale + offset.

    Shapes: x (n, c, l, …), scale (c), offset (c) → (n, c, l, …).

    Example: `nk.instance_norm(m.reshape(1, 2, 3))`
    """
    rep = as_rep(x)
    rank = _rank("instance_norm", rep, 3)
    normal = _standardized("instance_norm", rep, tuple(range(2, rank)), epsilon)
    return _scaled("instance_norm", normal, (scale, offset), rank)


def rms_norm(x: Any, scale: Any = None, *, epsilon: float = 1e-5) -> Rep:
    """x / √(mean x² + ε) over the last axis, then · scale if it is given; at 0 the derivative is 1/√ε.

    Shapes: x (…, n), scale (n) → (…, n).

    Example: `nk.rms_norm(m)`
    """
    rep = as_rep(x)
    _rank("rms_norm", rep, 1)

    def compute(x: Rep) -> Rep:
        return x * rsqrt(square(x).mean(-1, keepdims=True) + float(epsilon))

    normal = in_f32("rms_norm", compute, rep)
    return normal if scale is None else normal * _vector("rms_norm", scale)


def normalize(x: Any, axis: int = -1, *, epsilon: float = 1e-12) -> Rep:
    """x / max(√Σx², ε) along an axis; at 0 the value is 0, and its derivative 1/ε.

    Example: `nk.normalize(m)`
    """
    return in_f32("normalize", lambda x: _normalized(x, axis, float(epsilon)), x)


def cosine_similarity(x: Any, y: Any, axis: int = -1, *, epsilon: float = 1e-8) -> Rep:
    """Σxy / (max(‖x‖, ε) · max(‖y‖, ε)) along an axis; 0 where one of them is 0, its derivatives as `normalize`.

    Example: `nk.cosine_similarity(m, m + 1)`
    """

    def compute(x: Rep, y: Rep) -> Rep:
        one, other = (_normalized(v, axis, float(epsilon)) for v in (x, y))
        return (one * other).sum(axis)

    return in_f32("cosine_similarity", compute, x, y)


def _normalized(x: Rep, axis: int, epsilon: float) -> Rep:
    length = norm(x, axis, keepdims=True)
    return x / select(length <= epsilon, epsilon, length)


def _standardized(name: str, x: Rep, axes: Sequence[int], epsilon: float) -> Rep:
    rule = composed.standardized
    options = {"epsilon": float(epsilon)}
    return Rep(primitive.compose_along(name, rule, x.expression, axes, **options))


def _scaled(name: str, x: Rep, parameters: Sequence[Any], rank: int) -> Rep:
    """x · scale + offset, each a number for each channel."""
    given = [_channels(name, each, rank) for each in parameters if each is not None]
    if not given:
        return x
    if len(given) == 1:
        raise staging_error(f"{name} takes both scale and offset, or none of them")
    return x * given[0] + given[1]


def _channels(name: str, parameter: Any, rank: int) -> Rep:
    """A vector beside axis 1 of a tensor of that rank."""
    rep = _vector(name, parameter)
    for axis in range(1, rank - 1):
        rep = rep.expand_dims(axis)
    return rep


def _vector(name: str, parameter: Any) -> Rep:
    rep = as_rep(parameter)
    if primitive.tensor_of(rep.expression, name).rank != 1:
        raise rank_error(f"{name} takes vectors beside x, not a {rep.spec.words}")
    return rep


def _rank(name: str, x: Rep, least: int) -> int:
    spec = primitive.tensor_of(x.expression, name)
    if spec.rank < least:
        raise rank_error(f"{name} takes a tensor of rank {least} at least, not a {spec.words}")
    return spec.rank
