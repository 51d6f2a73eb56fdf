"""Normalizations of the last axis, with what is learned of them."""

from __future__ import annotations

from typing import Any, Generic

from typing_extensions import TypeVar

import nnkit as nk
from nnkit import AnyTensor, Field, Rep, Struct, Tensor1D

from .parameters import D, E, Key, Width, constant, initialized, parameters

T = TypeVar("T", bound=AnyTensor[Any])


class LayerNorm(Struct, Generic[D, Width]):
    """Mean 0 and variance 1 along the last axis, then a scale and an offset: `nn.layer_norm(p, x)`."""

    weight: Field[Tensor1D[D, Width]]
    bias: Field[Tensor1D[D, Width]]

    @staticmethod
    def init(key: Key, width: int, /, *, dtype: type[E] | None = None) -> LayerNorm[E]:
        """Ones and zeros."""
        makers = [constant((width,), 1.0), constant((width,), 0.0)]
        made: LayerNorm[E] = initialized(LayerNorm, key, dtype, makers)
        return made


class RMSNorm(Struct, Generic[D, Width]):
    """Mean square 1 along the last axis, then a scale: `nn.rms_norm(p, x)`."""

    weight: Field[Tensor1D[D, Width]]

    @staticmethod
    def init(key: Key, width: int, /, *, dtype: type[E] | None = None) -> RMSNorm[E]:
        """Ones."""
        made: RMSNorm[E] = initialized(RMSNorm, key, dtype, [constant((width,), 1.0)])
        return made


def layer_norm(p: Rep[LayerNorm[Any, Any]], x: Rep[T], /, *, epsilon: float = 1e-5) -> Rep[T]:
    """The layer applied to the last axis: `nk.layer_norm` with its weight and bias.

    Shapes: p of width n, x (…, n) → (…, n).
    """
    weight, bias = parameters(p, LayerNorm, "layer_norm")
    made: Rep[Any] = nk.layer_norm(x, weight, bias, epsilon=epsilon)
    return made


def rms_norm(p: Rep[RMSNorm[Any, Any]], x: Rep[T], /, *, epsilon: float = 1e-5) -> Rep[T]:
    """The layer applied to the last axis: `nk.rms_norm` with its weight.

    Shapes: p of width n, x (…, n) → (…, n).
    """
    (weight,) = parameters(p, RMSNorm, "rms_norm")
    made: Rep[Any] = nk.rms_norm(x, weight, epsilon=epsilon)
    return made
