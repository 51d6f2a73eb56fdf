"""Affine maps of the last axis, and perceptrons of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, overload

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D

from ..staging.primitive import shape_error
from .parameters import A, B, D, E, F, I, In, J, K, Key, Out, initialized, parameters, uniform


class Linear(Struct, Generic[D, In, Out]):
    """An affine map of the last axis: `nn.linear(p, x)` is x · weight + bias.

    Shapes: weight (n, m), bias (m).
    """

    weight: Field[Tensor2D[D, In, Out]]
    bias: Field[Tensor1D[D, Out]]

    @staticmethod
    def init(key: Key, inputs: int, outputs: int, /, *, dtype: type[E] | None = None) -> Linear[E]:
        """PyTorch's values: weight and bias uniform between ±1/√inputs."""
        makers = [uniform((inputs, outputs), inputs), uniform((outputs,), inputs)]
        made: Linear[E] = initialized(Linear, key, dtype, makers)
        return made


@overload
def linear(p: Rep[Linear[F, A, B]], x: Rep[Tensor1D[F, A]], /) -> Rep[Tensor1D[F, B]]: ...
@overload
def linear(
    p: Rep[Linear[F, A, B]], x: Rep[Tensor3D[F, I, J, A]], /
) -> Rep[Tensor3D[F, I, J, B]]: ...
@overload
def linear(
    p: Rep[Linear[F, A, B]], x: Rep[Tensor4D[F, I, J, K, A]], /
) -> Rep[Tensor4D[F, I, J, K, B]]: ...
@overload
def linear(
    p: Rep[Linear[F, A, B]], x: Rep[Tensor5D[F, I, J, K, Any, A]], /
) -> Rep[Tensor5D[F, I, J, K, Any, B]]: ...
@overload
def linear(p: Rep[Linear[F, A, B]], x: Rep[Tensor2D[F, I, A]], /) -> Rep[Tensor2D[F, I, B]]: ...
def linear(p: Any, x: Any, /) -> Rep[Any]:
    """The layer applied to the last axis: x · weight + bias.

    Shapes: p of n inputs and m outputs, x (…, n) → (…, m).
    """
    weight, bias = parameters(p, Linear, "linear")
    made: Rep[Any] = x @ weight + bias
    return made


class MLP(Struct, Generic[D]):
    """A perceptron: affine maps with an activation between each two."""

    layers: Field[list[Linear[D]]]

    @staticmethod
    def init(key: Key, widths: Sequence[int], /, *, dtype: type[E] | None = None) -> MLP[E]:
        """Layers from each of the widths to the next one, with the values of `Linear.init`."""
        if len(widths) < 2:
            raise shape_error(
                f"an MLP has two widths or more, of what it takes and what it returns, not {list(widths)}"
            )
        keys = nk.random.split(key, len(widths) - 1)
        pairs = zip(keys, pairwise(widths), strict=True)
        return MLP([Linear.init(one, n, m, dtype=dtype) for one, (n, m) in pairs])


@overload
def mlp(
    p: Rep[MLP[F]], x: Rep[Tensor1D[F, I]], /, *, activation: Callable[[Rep[Any]], Any] = ...
) -> Rep[Tensor1D[F]]: ...
@overload
def mlp(
    p: Rep[MLP[F]], x: Rep[Tensor3D[F, I, J, K]], /, *, activation: Callable[[Rep[Any]], Any] = ...
) -> Rep[Tensor3D[F, I, J]]: ...
@overload
def mlp(
    p: Rep[MLP[F]], x: Rep[Tensor2D[F, I, J]], /, *, activation: Callable[[Rep[Any]], Any] = ...
) -> Rep[Tensor2D[F, I]]: ...
def mlp(p: Any, x: Any, /, *, activation: Callable[[Rep[Any]], Any] = nk.relu) -> Rep[Any]:
    """All layers one after the other, `activation` after each but the last.

    Shapes: p of n inputs and m outputs, x (…, n) → (…, m).
    """
    (layers,) = parameters(p, MLP, "mlp")
    *hidden, last = layers
    for layer in hidden:
        x = activation(linear(layer, x))
    made: Rep[Any] = linear(last, x)
    return made
