"""Losses of two tensors.

A number by default, with `reduction="none"` one for each element; `cross_entropy` stands with `softmax`.
The two have one shape: `(n, 1)` does not silently broadcast against `(n, m)`.  Their derivatives of both orders are
right where formulas of kinks are not: each is a choice between formulas that are the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.types import DType, broadcast_shapes
from .elementwise import abs, exp, log, log1p, square
from .functions import select
from .in_f32 import float_of, in_f32
from .reps import as_rep
from .staging import primitive
from .staging.primitive import dtype_error, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number


def mse(predictions: Any, targets: Any, *, reduction: str = "mean") -> Rep:
    """The mean of (predictions − targets)².

    Example: `nk.mse(x, y)`
    """
    return _loss("mse", lambda x, y: square(x - y), predictions, targets, reduction)


def huber(predictions: Any, targets: Any, *, delta: float = 1.0, reduction: str = "mean") -> Rep:
    """The mean of d² / 2 where the distance d is at most `delta`, else of delta · (d − delta / 2).

    At delta the second derivative is 1, that of the parabola.

    Example: `nk.huber(x, y, delta=2.0)`
    """
    end = _positive("huber", "delta", delta)
    return _loss("huber", lambda x, y: _huber(x - y, end), predictions, targets, reduction)


def smooth_l1(predictions: Any, targets: Any, *, beta: float = 1.0, reduction: str = "mean") -> Rep:
    """The mean of d² / (2 beta) where the distance d is at most `beta`, else of d − beta / 2: huber / beta.

    Example: `nk.smooth_l1(x, y, reduction="none")`
    """
    end = _positive("smooth_l1", "beta", beta)
    return _loss(
        "smooth_l1", lambda x, y: _huber(x - y, end) / end, predictions, targets, reduction
    )


def _huber(difference: Rep, end: float) -> Rep:
    distance = abs(difference)
    near = select(distance <= end, difference, 0.0)  # what is far does not overflow where squared
    return select(distance <= end, 0.5 * square(near), end * (distance - 0.5 * end))


def binary_cross_entropy(
    logits: Any,
    labels: Any,
    *,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: str = "mean",
) -> Rep:
    """The mean of −y log σ(z) − (1 − y) log(1 − σ(z)) for logits z, without overflow or cancellation.

    As `cross_entropy` it takes logits, not probabilities: PyTorch's `binary_cross_entropy_with_logits`.  Labels are
    numbers from 0 to 1, of the type of the logits, or truth values or integers 0 and 1.  Each element's loss is
    multiplied by `weight`, and −y log σ(z) in it by `pos_weight`: numbers, or tensors that broadcast to the logits.

    Example: `nk.binary_cross_entropy(x, y > 0)`
    """
    rep = as_rep(logits)
    dtype = float_of("binary_cross_entropy", rep)
    if not is_number(labels):
        given = as_rep(labels)
        held = primitive.tensor_of(given.expression, "binary_cross_entropy").dtype
        labels = given if held.is_float else Rep(primitive.cast(given.expression, dtype))
    weights = [_weight("binary_cross_entropy", rep, one) for one in (weight, pos_weight)]

    def compute(z: Rep, y: Rep) -> Rep:
        by, positive = (one.cast(_of(z)) if isinstance(one, Rep) else one for one in weights)
        losses = _logistic_loss(z, y, positive)
        return losses if not isinstance(by, Rep) and by == 1.0 else losses * by

    return _loss("binary_cross_entropy", compute, rep, labels, reduction)


def _weight(name: str, like: Rep, weight: Any) -> Rep | float:
    """A weight as a tensor that broadcasts to `like`, or a number: 1 for None."""
    if weight is None or is_number(weight):
        return 1.0 if weight is None else float(weight)
    given = as_rep(weight)
    specs = [primitive.tensor_of(one.expression, name) for one in (like, given)]
    if specs[1].dtype is not specs[0].dtype:
        raise dtype_error(f"{name} of {specs[0].words} takes such weights, not {specs[1].words}")
    if specs[1].rank > specs[0].rank:
        raise rank_error(
            f"{name}: weights of rank {specs[1].rank} are too much for {specs[0].words}"
        )

    def build(b: Builder, weight: Value, like: Value) -> Value:
        shapes = (weight.tensor.shape, like.tensor.shape)
        try:
            fits = broadcast_shapes(shapes) == like.tensor.shape
        except ShapeError:
            fits = False
        if not fits:
            raise ShapeError(
                f"{name}: weights {weight.tensor.words} do not fit {like.tensor.words}"
            )
        return weight

    operands = (given.expression, like.expression)
    return Rep(primitive.shape_dependent(name, build, operands, specs[1]))


def _of(x: Rep) -> DType:
    return primitive.tensor_of(x.expression, "a loss").dtype


def _logistic_loss(z: Rep, y: Rep, positive: Rep | float) -> Rep:
    """s · log(1 + e⁻ˡᶻˡ) and, for z > 0, (1 − y) · z, else −p · y · z, with p positive and s = 1 + (p − 1) · y.

    A label of 0 or 1 has no loss at its infinity.  By choices: |z| and max(z, 0) would have derivatives of kinks at 0
    (`composed.softplus`).
    """
    above = z > 0.0
    is_plain = not isinstance(positive, Rep) and positive == 1.0
    weighted = y if is_plain else positive * y
    slope = select(above, 1.0 - y, -weighted)
    is_certain = (slope == 0.0) & ((z == float("inf")) | (z == -float("inf")))
    line = select(is_certain, 0.0, slope * z)
    bend = log1p(exp(select(above, -z, z)))
    return line + (bend if is_plain else (1.0 - y + weighted) * bend)


def kl_divergence(log_predictions: Any, targets: Any, *, reduction: str = "mean") -> Rep:
    """Σ p (log p − log q) along the last axis, its mean over all others, for targets p and log_predictions log q.

    Where p is 0, so are the element and its derivatives, whatever q is.

    Shapes: log_predictions (…, c), targets (…, c) → (); → (…) for `reduction="none"`.

    Example: `nk.kl_divergence(nk.log_softmax(x), nk.softmax(y))`
    """
    name = "kl_divergence"
    if primitive.tensor_of(as_rep(log_predictions).expression, name).rank == 0:
        raise rank_error(f"{name} sums along the last axis, which a scalar has not")

    def compute(q: Rep, p: Rep) -> Rep:
        none = p == 0.0
        return select(none, 0.0, p * (log(select(none, 1.0, p)) - select(none, 0.0, q))).sum(-1)

    return _loss(name, compute, log_predictions, targets, reduction)


def _loss(name: str, compute: Callable[[Rep, Rep], Rep], x: Any, y: Any, reduction: str) -> Rep:
    """`compute` of two tensors of one shape, or of a tensor and a number, reduced."""
    if reduction not in ("mean", "sum", "none"):
        raise shape_error(f"{name}: reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    rep = as_rep(x)
    other = Rep(rep.lift(y, name)) if is_number(y) else _aligned(name, rep, as_rep(y))

    def reduced(x: Rep, y: Rep) -> Rep:
        losses = compute(x, y)
        match reduction:
            case "mean":
                return losses.mean()
            case "sum":
                return losses.sum()
            case _:
                return losses

    return in_f32(name, reduced, rep, other)


def _aligned(name: str, x: Rep, y: Rep) -> Rep:
    """y, of which is checked that it has the shape of x."""
    specs = [primitive.tensor_of(rep.expression, name) for rep in (x, y)]
    if specs[0].rank != specs[1].rank:
        raise rank_error(
            f"{name} takes two tensors of one shape, not {specs[0].words} and {specs[1].words}",
            "say what is meant: x[:, 0] drops an axis, broadcast_to repeats",
        )

    def build(b: Builder, x: Value, y: Value) -> Value:
        if x.tensor.shape != y.tensor.shape:
            raise ShapeError(
                f"{name} takes two tensors of one shape, not {x.tensor.words} and {y.tensor.words}"
            )
        return y

    return Rep(primitive.shape_dependent(name, build, (x.expression, y.expression), specs[1]))


def _positive(name: str, what: str, number: Any) -> float:
    if not is_number(number) or not 0 < number < float("inf"):
        raise shape_error(f"{name}: {what} is a positive number, not {number!r}")
    return float(number)
