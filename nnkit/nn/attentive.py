"""Attention: each place of a sequence takes a mean of what others say, weighted by how they match.

Source: Vaswani et al. 2017.
"""

from __future__ import annotations

from typing import Any, Generic

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, Tensor3D, boolean

from ..staging.extents import share
from ..staging.primitive import shape_error
from .parameters import (
    A,
    D,
    E,
    F,
    I,
    J,
    Key,
    Width,
    constant,
    glorot,
    initialized,
    parameters,
    uniform,
)


class MultiHeadAttention(Struct, Generic[D, Width]):
    """Attention with several heads: `nn.attention(p, x, heads=4)`.

    Shapes: weights (n, n), bias (n).
    """

    query: Field[Tensor2D[D, Width, Width]]
    key: Field[Tensor2D[D, Width, Width]]
    value: Field[Tensor2D[D, Width, Width]]
    output: Field[Tensor2D[D, Width, Width]]
    bias: Field[Tensor1D[D, Width]]

    @staticmethod
    def init(key: Key, width: int, /, *, dtype: type[E] | None = None) -> MultiHeadAttention[E]:
        """Query, key and value by Glorot, the output uniform between ±1/√width, its bias zeros."""
        projections = [glorot(width, width)] * 3
        makers = [*projections, uniform((width, width), width), constant((width,), 0.0)]
        made: MultiHeadAttention[E] = initialized(MultiHeadAttention, key, dtype, makers)
        return made


def attention(
    p: Rep[MultiHeadAttention[F, A]],
    x: Rep[Tensor3D[F, I, J, A]],
    /,
    context: Rep[Tensor3D[F, I, Any, A]] | None = None,
    *,
    heads: int = 1,
    causal: bool = False,
) -> Rep[Tensor3D[F, I, J, A]]:
    """Attention of x to itself, or to a context; with `causal` no place attends to later ones.

    The n numbers of each place are those of `heads` heads, one after the other.

    Shapes: p of width n, x (b, t, n), context (b, s, n) → (b, t, n).
    Raises: ShapeError for fewer heads than one, and where they do not divide n.
    """
    if heads < 1:
        raise shape_error(f"attention has one head or more, not {heads}")
    query, key, value, output, bias = parameters(p, MultiHeadAttention, "attention")
    seen: Rep[Any] = x if context is None else context
    numbers = nk.zeros_like(bias[0]) + share(x.shape[2], heads, "attention")  # of a head
    q, k, v = (_split(y, heads) for y in (x @ query * nk.rsqrt(numbers), seen @ key, seen @ value))
    scores: Rep[Any] = q @ k.transpose(0, 1, 3, 2)
    if causal:
        later = nk.triu(nk.ones((x.shape[1], seen.shape[1]), boolean), 1)
        scores = nk.where(later, -float("inf"), scores)
    mixed: Rep[Any] = (nk.softmax(scores) @ v).transpose(0, 2, 1, 3)
    made: Rep[Any] = mixed.reshape(*x.shape) @ output + bias
    return made


def _split(x: Any, heads: int) -> Rep[Any]:
    """The heads of (b, t, n) as an axis of their own: (b, heads, t, n / heads)."""
    batch, length, width = x.shape
    made: Rep[Any] = x.reshape(batch, length, heads, share(width, heads, "attention")).transpose(
        0, 2, 1, 3
    )
    return made
