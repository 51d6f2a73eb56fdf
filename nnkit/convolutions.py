"""Convolutions of signals, images and volumes, and their transposes, as networks mean them.

The kernel is not turned around.  Layouts, names and defaults are PyTorch's: images are (n, c, height, width), channels
first, and one image without the batch is taken too.  What `padding` can be, `spatial` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Convolve
from .core.ops.movement import Reverse, permuted, reshaped
from .documentation import named
from .in_f32 import float_of
from .reps import as_rep
from .spatial import check_reach, padding_of, per_axis, same_padding
from .staging import primitive
from .staging.primitive import rank_error
from .staging.rep import Rep


def _convolution(axes: int, text: str) -> Callable[..., Rep]:
    """`conv1d`, `conv2d` or `conv3d`, and what is said of it."""
    name = f"conv{axes}d"

    def function(
        input: Any,
        weight: Any,
        bias: Any = None,
        *,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Rep:
        strides = per_axis(name, "stride", stride, axes)
        dilations = per_axis(name, "dilation", dilation, axes)
        pairs = padding_of(name, padding, axes)
        (parts,) = per_axis(name, "groups", groups, 1)

        def build(b: Builder, x: Value, kernel: Value) -> Value:
            inside = _channels(name, x, kernel, parts)
            window, extents = kernel.tensor.shape[2:], x.tensor.shape[2:]
            if kernel.tensor.shape[1] != inside:
                raise ShapeError(
                    f"{name}: the kernel {kernel.tensor.words} takes {kernel.tensor.shape[1]} channels, and "
                    f"{x.tensor.shape[1]} are given{f', {inside} in each group' if parts > 1 else ''}"
                )
            if kernel.tensor.shape[0] % parts:
                raise ShapeError(
                    f"{name}: {kernel.tensor.shape[0]} output channels cannot be split into {parts} groups"
                )
            reach = [(n - 1) * d + 1 for n, d in zip(window, dilations, strict=True)]
            ends = pairs or same_padding(extents, reach, strides)
            check_reach(name, "the kernel", extents, reach, ends)
            return b.emit(Convolve(strides, ends, (), dilations, parts), x, kernel)

        return _staged(name, axes, build, input, weight, bias)

    return named(function, name, text)


def _transposed_convolution(axes: int, text: str) -> Callable[..., Rep]:
    """`conv_transpose1d` and so on, and what is said of it."""
    name = f"conv_transpose{axes}d"

    def function(
        input: Any,
        weight: Any,
        bias: Any = None,
        *,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Rep:
        strides = per_axis(name, "stride", stride, axes)
        dilations = per_axis(name, "dilation", dilation, axes)
        more = per_axis(name, "output_padding", output_padding, axes, least=0)
        pairs = padding_of(name, padding, axes)
        (parts,) = per_axis(name, "groups", groups, 1)

        def build(b: Builder, x: Value, kernel: Value) -> Value:
            inside = _channels(name, x, kernel, parts)
            given, made, *window = kernel.tensor.shape
            if given != x.tensor.shape[1]:
                raise ShapeError(
                    f"{name}: the kernel {kernel.tensor.words} takes {given} channels, "
                    f"and {x.tensor.shape[1]} are given"
                )
            split = reshaped(b, kernel, (parts, inside, made, *window))
            order = (0, 2, 1, *range(3, split.tensor.rank))
            turned = reshaped(b, permuted(b, split, order), (parts * made, inside, *window))
            turned = b.emit(Reverse(tuple(range(2, turned.tensor.rank))), turned)
            reach = [(n - 1) * d + 1 for n, d in zip(window, dilations, strict=True)]
            cut = pairs or tuple(
                (max(n - s, 0) // 2, n - s - max(n - s, 0) // 2)
                for n, s in zip(reach, strides, strict=True)
            )
            ends = tuple(
                (n - 1 - low, n - 1 - high + extra)
                for n, (low, high), extra in zip(reach, cut, more, strict=True)
            )
            ones = (1,) * axes
            return b.emit(Convolve(ones, ends, strides, dilations, parts), x, turned)

        return _staged(name, axes, build, input, weight, bias)

    return named(function, name, text)


def _staged(
    name: str,
    axes: int,
    build: Callable[[Builder, Value, Value], Value],
    x: Any,
    kernel: Any,
    bias: Any,
) -> Rep:
    """`build` of a batch, as which one element counts, plus the bias of each channel."""
    rep, weights = as_rep(x), as_rep(kernel)
    float_of(name, rep, weights)
    spec = primitive.tensor_of(rep.expression, name)
    given = primitive.tensor_of(weights.expression, name)
    is_batch = spec.rank == axes + 2
    if not (is_batch or spec.rank == axes + 1):
        raise rank_error(f"{name} takes x of rank {axes + 1} or {axes + 2}, not a {spec.words}")
    if given.rank != axes + 2:
        raise rank_error(f"{name} takes a kernel of rank {axes + 2}, not a {given.words}")

    def one(b: Builder, x: Value, kernel: Value) -> Value:
        if is_batch:
            return build(b, x, kernel)
        found = build(b, reshaped(b, x, (1, *x.tensor.shape)), kernel)
        return reshaped(b, found, found.tensor.shape[1:])

    operands = (rep.expression, weights.expression)
    result = Rep(primitive.shape_dependent(name, one, operands, spec))
    if bias is None:
        return result
    added = as_rep(bias)
    float_of(name, rep, added)
    if primitive.tensor_of(added.expression, name).rank != 1:
        raise rank_error(f"{name} takes a bias of rank 1, not a {added.spec.words}")
    for axis in range(1, axes + 1):
        added = added.expand_dims(axis)
    return result + added


def _channels(name: str, x: Value, kernel: Value, groups: int) -> int:
    """Input channels of each group; a kernel without elements is an error."""
    if 0 in kernel.tensor.shape[2:]:
        raise ShapeError(f"{name}: a spatial axis of the kernel {kernel.tensor.words} is empty")
    channels = x.tensor.shape[1]
    if channels % groups:
        raise ShapeError(f"{name}: {channels} input channels cannot be split into {groups} groups")
    return channels // groups


conv1d = _convolution(
    1,
    """y[n, o, p] = bias[o] + Σ input[n, c, p · stride + k · dilation − low] · kernel[o, c, k].

Shapes: input (n, c, l) or (c, l), weight (o, c / groups, k), bias (o) → (n, o, places) or (o, places).

Example: `nk.conv1d(m, nk.ones((1, 2, 2), f32))`
""",
)

conv2d = _convolution(
    2,
    """As `conv1d`, of images.

Shapes: input (n, c, h, w) or (c, h, w), weight (o, c / groups, k, k), bias (o) → (n, o, places, places) or
(o, places, places).

Example: `nk.conv2d(m.expand_dims(0), nk.ones((1, 1, 2, 2), f32), padding="same")`
""",
)

conv3d = _convolution(
    3,
    """As `conv1d`, of volumes.

Shapes: input (n, c, d, h, w) or (c, d, h, w), weight (o, c / groups, k, k, k), bias (o) →
    (n, o, places, places, places) or (o, places, places, places).

Example: `nk.conv3d(m.reshape(1, 2, 1, 3), nk.ones((1, 1, 2, 1, 2), f32))`
""",
)

conv_transpose1d = _transposed_convolution(
    1,
    """The transpose of `conv1d`: what its gradient by input is, of l places (l − 1) · stride + (k − 1) · dilation + 1.

`padding` is cut off at the ends, `output_padding` put on at the high one; with `padding="same"` there are
l · stride places.

Shapes: input (n, c, l) or (c, l), weight (c, o / groups, k), bias (o) → (n, o, places) or (o, places).

Example: `nk.conv_transpose1d(m, nk.ones((2, 1, 2), f32), stride=2)`
""",
)

conv_transpose2d = _transposed_convolution(
    2,
    """As `conv_transpose1d`, of images.

Shapes: input (n, c, h, w) or (c, h, w), weight (c, o / groups, k, k), bias (o) → (n, o, places, places) or
(o, places, places).

Example: `nk.conv_transpose2d(m.expand_dims(0), nk.ones((1, 1, 1, 2), f32))`
""",
)

conv_transpose3d = _transposed_convolution(
    3,
    """As `conv_transpose1d`, of volumes.

Shapes: input (n, c, d, h, w) or (c, d, h, w), weight (c, o / groups, k, k, k), bias (o) →
    (n, o, places, places, places) or (o, places, places, places).

Example: `nk.conv_transpose3d(m.reshape(1, 2, 1, 3), nk.ones((1, 1, 2, 1, 2), f32), stride=2)`
""",
)
