"""Convolutions of signals, images and volumes."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor3D, Tensor4D, Tensor5D

from .parameters import A, B, D, E, F, I, In, Key, Out, Size, initialized, parameters, uniform

LayerPadding: TypeAlias = (
    int | tuple[int, ...] | list[int | tuple[int, int]] | Literal["same", "valid"]
)


class Conv1d(Struct, Generic[D, In, Out, Size]):
    """A convolution of signals with several channels: `nn.conv1d(p, x)`.

    Shapes: weight (o, c, k), bias (o).
    """

    weight: Field[Tensor3D[D, Out, In, Size]]
    bias: Field[Tensor1D[D, Out]]

    @staticmethod
    def init(
        key: Key, inputs: int, outputs: int, size: int, /, *, dtype: type[E] | None = None
    ) -> Conv1d[E]:
        """PyTorch's values: weight and bias uniform between ±1/√(inputs · size)."""
        fan_in = inputs * size
        makers = [uniform((outputs, inputs, size), fan_in), uniform((outputs,), fan_in)]
        made: Conv1d[E] = initialized(Conv1d, key, dtype, makers)
        return made


class Conv2d(Struct, Generic[D, In, Out, Size]):
    """A convolution of images with several channels: `nn.conv2d(p, x)`.

    Shapes: weight (o, c, k, k), bias (o).
    """

    weight: Field[Tensor4D[D, Out, In, Size, Size]]
    bias: Field[Tensor1D[D, Out]]

    @staticmethod
    def init(
        key: Key, inputs: int, outputs: int, size: int, /, *, dtype: type[E] | None = None
    ) -> Conv2d[E]:
        """PyTorch's values: weight and bias uniform between ±1/√(inputs · size²)."""
        fan_in = inputs * size**2
        makers = [uniform((outputs, inputs, size, size), fan_in), uniform((outputs,), fan_in)]
        made: Conv2d[E] = initialized(Conv2d, key, dtype, makers)
        return made


class Conv3d(Struct, Generic[D, In, Out, Size]):
    """A convolution of volumes with several channels: `nn.conv3d(p, x)`.

    Shapes: weight (o, c, k, k, k), bias (o).
    """

    weight: Field[Tensor5D[D, Out, In, Size, Size, Size]]
    bias: Field[Tensor1D[D, Out]]

    @staticmethod
    def init(
        key: Key, inputs: int, outputs: int, size: int, /, *, dtype: type[E] | None = None
    ) -> Conv3d[E]:
        """PyTorch's values: weight and bias uniform between ±1/√(inputs · size³)."""
        fan_in = inputs * size**3
        makers = [uniform((outputs, inputs, size, size, size), fan_in), uniform((outputs,), fan_in)]
        made: Conv3d[E] = initialized(Conv3d, key, dtype, makers)
        return made


def conv1d(
    p: Rep[Conv1d[F, A, B, Any]],
    x: Rep[Tensor3D[F, I, A, Any]],
    /,
    *,
    stride: int = 1,
    padding: LayerPadding = 0,
    dilation: int = 1,
) -> Rep[Tensor3D[F, I, B, Any]]:
    """The layer applied to signals; the options are those of `nk.conv1d`.

    Shapes: p of c channels to o, x (n, c, t) → (n, o, t').
    """
    weight, bias = parameters(p, Conv1d, "conv1d")
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    return nk.conv1d(x, weight, bias, **options)


def conv2d(
    p: Rep[Conv2d[F, A, B, Any]],
    x: Rep[Tensor4D[F, I, A, Any, Any]],
    /,
    *,
    stride: int | tuple[int, int] = 1,
    padding: LayerPadding = 0,
    dilation: int | tuple[int, int] = 1,
) -> Rep[Tensor4D[F, I, B, Any, Any]]:
    """The layer applied to images; the options are those of `nk.conv2d`.

    Shapes: p of c channels to o, x (n, c, h, w) → (n, o, h', w').
    """
    weight, bias = parameters(p, Conv2d, "conv2d")
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    return nk.conv2d(x, weight, bias, **options)


def conv3d(
    p: Rep[Conv3d[F, A, B, Any]],
    x: Rep[Tensor5D[F, I, A, Any, Any, Any]],
    /,
    *,
    stride: int | tuple[int, int, int] = 1,
    padding: LayerPadding = 0,
    dilation: int | tuple[int, int, int] = 1,
) -> Rep[Tensor5D[F, I, B, Any, Any, Any]]:
    """The layer applied to volumes; the options are those of `nk.conv3d`.

    Shapes: p of c channels to o, x (n, c, d, h, w) → (n, o, d', h', w').
    """
    weight, bias = parameters(p, Conv3d, "conv3d")
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    return nk.conv3d(x, weight, bias, **options)
