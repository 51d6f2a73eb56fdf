"""Convolutions, pooling and resizing against loops in NumPy that say what PyTorch's functions mean."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import DTypeError, RankError, ShapeError, staged
from nnkit.core.types import Array

from .function_laws import Row, check
from .messages import Table, on, ones

random = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return random.normal(size=shape)


def spatial(extents: Any, window: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Strides, ends and dilations of each axis, and where the windows stand."""
    count = len(extents)
    strides, dilations = (np.broadcast_to(v, count).tolist() for v in (stride, dilation))
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    if padding == "same":
        totals = [
            max((-(-n // s) - 1) * s + r - n, 0)
            for n, s, r in zip(extents, strides, reach, strict=True)
        ]
        ends = [(t // 2, t - t // 2) for t in totals]
    else:
        given = 0 if padding == "valid" else padding
        ends = [
            p if isinstance(p, tuple) else (p, p)
            for p in (given if isinstance(given, tuple) else (given,) * count)
        ]
    places = [
        (n + sum(e) - r) // s + 1 for n, e, r, s in zip(extents, ends, reach, strides, strict=True)
    ]
    return strides, ends, dilations, reach, places


def patches(x: Array, window: Any, stride: Any, padding: Any, dilation: Any, fill: float) -> Any:
    """Each place, and what the window covers there of the last axes of x."""
    count = len(window)
    strides, ends, dilations, reach, places = spatial(
        x.shape[-count:], window, stride, padding, dilation
    )
    x = np.pad(x, [(0, 0)] * (x.ndim - count) + ends, constant_values=fill)
    for place in itertools.product(*map(range, places)):
        cut = tuple(
            slice(p * s, p * s + r, d)
            for p, s, r, d in zip(place, strides, reach, dilations, strict=True)
        )
        yield place, x[(..., *cut)]
    yield tuple(places), None


def conv(
    x: Array, kernel: Array, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Array:
    axes = kernel.ndim - 2
    found = list(patches(x, kernel.shape[2:], stride, padding, dilation, 0))
    result = np.zeros((len(x), len(kernel), *found[-1][0]))
    inside, made = kernel.shape[1], len(kernel) // groups
    for place, patch in found[:-1]:
        for o in range(len(kernel)):
            g = o // made
            part = patch[:, g * inside : (g + 1) * inside] * kernel[o]
            result[(slice(None), o, *place)] = part.sum(tuple(range(1, axes + 2)))
    return result


def conv_transpose(
    x: Array,
    kernel: Array,
    stride: int = 1,
    padding: int = 0,
    more: int = 0,
    groups: int = 1,
    dilation: int = 1,
) -> Array:
    """Every element of x puts a copy of the kernel, times it, at its place."""
    window = kernel.shape[2:]
    inside, made = len(kernel) // groups, kernel.shape[1]
    sizes = [
        (n - 1) * stride + (k - 1) * dilation + 1 + more
        for n, k in zip(x.shape[2:], window, strict=True)
    ]
    result = np.zeros((len(x), made * groups, *sizes))
    for place in itertools.product(*map(range, x.shape[2:])):
        cut = tuple(
            slice(p * stride, p * stride + (k - 1) * dilation + 1, dilation)
            for p, k in zip(place, window, strict=True)
        )
        for c in range(len(kernel)):
            g = c // inside
            at = (slice(None), slice(g * made, (g + 1) * made), *cut)
            column = x[(slice(None), c, *place)].reshape(-1, *[1] * (len(window) + 1))
            result[at] += column * kernel[c]
    inner = tuple(slice(padding, n - padding) for n in sizes)
    return result[(..., *inner)]


def pool(x: Array, window: Any, stride: Any, padding: Any, function: Any, fill: float) -> Array:
    found = list(patches(x, window, stride, padding, 1, fill))
    lead = x.shape[: x.ndim - len(window)]
    result = np.zeros((*lead, *found[-1][0]))
    for place, patch in found[:-1]:
        result[(..., *place)] = function(patch, axis=tuple(range(-len(window), 0)))
    return result


SIGNAL, IMAGES, VOLUMES = normal(2, 4, 7), normal(2, 2, 5, 4), normal(2, 2, 3, 4, 2)


def test_laws_of_convolutions() -> None:
    rows: dict[str, Row] = {}

    def row(name: str, x: Array, kernel: Array, order: int = 1, **options: Any) -> None:
        rows[f"{name} {options}"] = Row(
            lambda x, k: getattr(nk, name)(x, k, **options),
            lambda x, k: conv(x, k, **options),
            (x, kernel),
            tolerance=1e-13,
            order=order,
            batched=(0, 1) if x.ndim < 5 else (),
        )

    row("conv1d", SIGNAL, normal(3, 4, 3), 2)
    row("conv1d", SIGNAL, normal(4, 2, 2), 2, stride=2, padding=1, dilation=2, groups=2)
    row("conv1d", SIGNAL, normal(4, 1, 3), groups=4, padding="same")
    row("conv1d", SIGNAL, normal(2, 4, 3), padding=((2, 1),), stride=3)
    row("conv1d", SIGNAL, normal(2, 4, 2), padding="same", stride=2)
    row("conv2d", IMAGES, normal(3, 2, 3, 2), 2, padding="valid")
    row("conv2d", IMAGES, normal(3, 2, 3, 2), padding="same", stride=(2, 1))
    row("conv2d", IMAGES, normal(4, 1, 2, 3), padding=(1, 2), dilation=(2, 1), groups=2)
    row("conv2d", IMAGES, normal(1, 2, 1, 1), stride=2)
    row("conv3d", VOLUMES, normal(3, 2, 2, 1, 2), 2, padding=(1, 0, 1), stride=(2, 1, 2))
    row("conv3d", VOLUMES, normal(2, 1, 2, 2, 1), padding="same", dilation=(1, 2, 1), groups=2)
    row("conv3d", VOLUMES, normal(1, 2, 3, 1, 2), padding=((0, 1), (1, 0), (0, 0)))
    rows["bias"] = Row(
        nk.conv2d,
        lambda x, k, b: conv(x, k) + b[:, None, None],
        (IMAGES, normal(3, 2, 2, 2), normal(3)),
    )
    rows["one element"] = Row(
        lambda x, k, b: nk.conv2d(x, k, b, padding=1),
        lambda x, k, b: (conv(x[None], k, padding=1) + b[:, None, None])[0],
        (IMAGES[0], normal(3, 2, 2, 2), normal(3)),
        batched=(0,),
    )
    rows["one volume"] = Row(
        lambda x, k, b: nk.conv3d(x, k, b, stride=2, padding=1),
        lambda x, k, b: (conv(x[None], k, 2, 1) + b[:, None, None, None])[0],
        (VOLUMES[0], normal(3, 2, 2, 2, 2), normal(3)),
        batched=(0,),
    )
    check(rows)


LARGE: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "of each image": ((2, 4, 14, 13), (8, 4, 5, 3), {"padding": ((2, 1), (0, 3))}),
    "of all images": ((24, 8, 6, 7), (16, 8, 3, 3), {"stride": (1, 2), "padding": 1}),
    "in groups": ((3, 8, 15, 15), (16, 4, 3, 3), {"groups": 2, "dilation": 2}),
    "of one place each": ((2, 32, 12, 12), (32, 32, 1, 1), {}),
}


def test_large_ones_are_matrix_products() -> None:
    """The values by NumPy's windows; the gradients by ⟨ȳ, f(x, k)⟩ = ⟨x̄, x⟩ = ⟨k̄, k⟩, as f is linear in both."""
    given = [(normal(*x), normal(*k)) for x, k, _ in LARGE.values()]

    def values(*xs: Any) -> Any:
        pairs = zip(xs[::2], xs[1::2], LARGE.values(), strict=True)
        return tuple(nk.conv2d(x, k, **options) for x, k, (*_, options) in pairs)

    def total(x0: Any, k0: Any, x1: Any, k1: Any, x2: Any, k2: Any, x3: Any, k3: Any) -> Any:
        return sum(nk.square(y).sum() for y in values(x0, k0, x1, k1, x2, k2, x3, k3)) / 2.0

    flat = [array for pair in given for array in pair]
    names = ", ".join(f"a{k}" for k in range(len(flat)))
    together = staged(eval(f"lambda {names}: values({names})", {"values": values}))
    assert together.ir(*flat, stage="compute").count("= matrixProduct") == len(LARGE)
    found = together(*flat)
    slopes = nk.gradient(of=staged(total), wrt=tuple(range(8)))(*flat)
    for k, (name, (_, _, options)) in enumerate(LARGE.items()):
        x, kernel = given[k]
        want = windowed(x, kernel, **options)
        np.testing.assert_allclose(np.asarray(found[k]), want, 1e-10, 1e-10, err_msg=name)
        for slope, point in zip(slopes[2 * k : 2 * k + 2], given[k], strict=True):
            np.testing.assert_allclose((np.asarray(slope) * point).sum(), (want**2).sum(), 1e-10)


def windowed(
    x: Array, kernel: Array, stride: Any = 1, padding: Any = 0, dilation: int = 1, groups: int = 1
) -> Array:
    ends = ((padding,) * 2,) * 2 if isinstance(padding, int) else padding
    rows, columns = (stride, stride) if isinstance(stride, int) else stride
    x = np.pad(x, ((0, 0), (0, 0), *ends))
    reach = tuple((n - 1) * dilation + 1 for n in kernel.shape[2:])
    views = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    views = views[:, :, ::rows, ::columns, ::dilation, ::dilation]
    views = views.reshape(len(x), groups, -1, *views.shape[2:])
    split = kernel.reshape(groups, -1, *kernel.shape[1:])
    found = np.einsum("ngchwkl,gockl->ngohw", views, split)
    return np.asarray(found.reshape(len(x), len(kernel), *found.shape[3:]))


def test_laws_of_transposed_convolutions() -> None:
    rows: dict[str, Row] = {}
    for name, x, kernel, options in (
        ("conv_transpose1d", SIGNAL, normal(4, 3, 3), {}),
        ("conv_transpose1d", SIGNAL, normal(4, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
        ("conv_transpose1d", SIGNAL, normal(4, 1, 2), {"dilation": 2, "stride": 3}),
        ("conv_transpose2d", IMAGES, normal(2, 3, 3, 2), {"stride": 2, "output_padding": 1}),
        ("conv_transpose2d", IMAGES, normal(2, 2, 2, 2), {"groups": 2, "padding": 1}),
        ("conv_transpose3d", VOLUMES, normal(2, 3, 2, 1, 2), {"stride": 2, "output_padding": 1}),
        ("conv_transpose3d", VOLUMES, normal(2, 1, 2, 2, 2), {"groups": 2, "dilation": 2}),
    ):
        renamed = {{"output_padding": "more"}.get(key, key): n for key, n in options.items()}
        rows[f"{name} {options}"] = Row(
            lambda x, k, name=name, options=options: getattr(nk, name)(x, k, **options),
            lambda x, k, options=renamed: conv_transpose(x, k, **options),
            (x, kernel),
            tolerance=1e-13,
            order=1,
            batched=(0, 1) if x.ndim < 5 else (),
        )
    rows["one volume"] = Row(
        lambda x, k: nk.conv_transpose3d(x, k, stride=2),
        lambda x, k: conv_transpose(x[None], k, 2)[0],
        (VOLUMES[0], normal(2, 1, 1, 2, 2)),
        tolerance=1e-13,
        order=1,
        batched=(0,),
    )
    check(rows)
    # it is the gradient of the convolution, with "same" as well
    x, kernel, seed = normal(2, 4, 8), normal(2, 4, 3), normal(2, 2, 4)
    forward = staged(lambda x, k: nk.conv1d(x, k, stride=2, padding="same"))
    turned = staged(lambda y, k: nk.conv_transpose1d(y, k, stride=2, padding="same"))
    pulled = nk.vjp(forward, wrt=0)(x, kernel, seed)
    np.testing.assert_allclose(np.asarray(pulled), np.asarray(turned(seed, kernel)), 1e-12)


POOLS = (
    ("max_pool2d", 2, None, 0),
    ("max_pool2d", (3, 2), 1, 0),
    ("max_pool2d", 3, 2, 1),
    ("max_pool2d", (2, 3), (2, 1), "same"),
    ("max_pool1d", 2, None, 0),
    ("max_pool1d", 3, 2, ((1, 0),)),
    ("avg_pool2d", 2, None, 0),
    ("avg_pool2d", (3, 2), 1, 1),
    ("avg_pool1d", 3, 1, "same"),
    ("max_pool3d", 2, None, 0),
    ("max_pool3d", (2, 3, 1), (1, 2, 1), (1, 0, 0)),
    ("avg_pool3d", (1, 2, 2), 2, ((0, 0), (1, 0), (0, 1))),
)
"""Function, window, stride, padding."""


def pooling_row(ours: str, window: Any, stride: Any, padding: Any) -> Row:
    axes = int(ours[-2])
    sizes = (window,) * axes if isinstance(window, int) else window
    function, fill = (np.max, -np.inf) if ours.startswith("max") else (np.mean, 0.0)
    return Row(
        lambda x: getattr(nk, ours)(x, window, stride, padding=padding),
        lambda x: pool(x, sizes, sizes if stride is None else stride, padding, function, fill),
        (MANY,),
        order=1,
        tolerance=1e-14,
    )


MANY = random.permutation(60).reshape(3, 5, 4) / 7.0


def ceiled_rows() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for window, stride, more in ((2, 2, 1), (3, 2, 0), (3, 3, 1), (2, 4, 1)):
        # of five places; what is beyond the end counts for nothing
        beyond = ((0, 0), (0, more), (0, 0))
        for ours, function, fill in (
            (nk.max_pool1d, np.max, -np.inf),
            (nk.avg_pool1d, np.nanmean, np.nan),
        ):
            rows[f"ceil {ours.__name__} {window} {stride}"] = Row(
                lambda x, f=ours, w=window, s=stride: f(x.mT, w, s, ceil_mode=True),
                lambda x, f=function, w=window, s=stride, p=beyond, fill=fill: pool(
                    np.pad(x, p, constant_values=fill).swapaxes(1, 2), (w,), s, 0, f, fill
                ),
                (MANY,),
                order=1,
            )
    return rows


def test_laws_of_pooling() -> None:
    rows = {" ".join(map(str, pooled)): pooling_row(*pooled) for pooled in POOLS} | ceiled_rows()
    rows["ceil with padding"] = Row(
        lambda x: nk.avg_pool1d(x, 3, 2, padding=1, ceil_mode=True),
        lambda x: np.stack([(x[..., 0] + x[..., 1]) / 3, x[..., 1:4].mean(-1), x[..., 3] / 2], -1),
        (MANY,),
        order=1,
    )
    rows["without padding"] = Row(
        lambda x: nk.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False),
        lambda x: pool(x, (3, 3), 2, 1, np.nanmean, np.nan),
        (MANY,),
        order=1,
    )
    rows["integers"] = Row(
        lambda n: nk.max_pool1d(n, 2),
        lambda n: n.reshape(3, 2).max(1),
        (np.array([1, 5, -3, -4, 2, 2]),),
    )
    check(rows)


def resized(x: Array, axis: int, count: int, mode: str, align: bool) -> Array:
    extent = x.shape[axis]
    if mode == "nearest":
        return np.take(x, np.arange(count) * extent // count, axis)
    at = np.maximum((np.arange(count) + 0.5) * extent / count - 0.5, 0)
    if align:
        at = np.arange(count) * (extent - 1) / max(count - 1, 1)
    rows = np.moveaxis(x, axis, -1).reshape(-1, extent)
    found = np.array([np.interp(at, np.arange(extent), row) for row in rows])
    shape = (*np.delete(x.shape, axis), count)
    return np.moveaxis(found.reshape(shape), -1, axis)


def cubic(x: Array, axis: int, count: int, align: bool) -> Array:
    """Of Keys's kernel with the slope −3/4, as a matrix."""
    extent = x.shape[axis]
    at = (np.arange(count) + 0.5) * extent / count - 0.5
    if align:
        at = np.arange(count) * (extent - 1) / max(count - 1, 1)
    matrix = np.zeros((count, extent))
    for place, center in enumerate(at):
        for k in range(int(np.floor(center)) - 1, int(np.floor(center)) + 3):
            d = abs(center - k)
            near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
            matrix[place, min(max(k, 0), extent - 1)] += near if d <= 1 else far
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def test_laws_of_resizing() -> None:
    rows: dict[str, Row] = {}
    for size, mode, align in (
        ((10, 8), "nearest", False),
        ((3, 7), "nearest", False),
        ((10, 6), "bilinear", False),
        ((3, 7), "bilinear", True),
        ((1, 9), "linear", True),
    ):
        rows[f"{size} {mode} {align}"] = Row(
            lambda x, s=size, m=mode, a=align: nk.interpolate(x, s, mode=m, align_corners=a),
            lambda x, s=size, m=mode, a=align: resized(resized(x, 2, s[0], m, a), 3, s[1], m, a),
            (IMAGES,),
            order=1,
            tolerance=1e-13,
        )
    for size, align in (((7, 3), False), ((2, 9), True), ((1, 1), True)):
        rows[f"{size} bicubic {align}"] = Row(
            lambda x, s=size, a=align: nk.interpolate(x, s, mode="bicubic", align_corners=a),
            lambda x, s=size, a=align: cubic(cubic(x, 2, s[0], a), 3, s[1], a),
            (IMAGES,),
            order=1,
            tolerance=1e-13,
        )
    for size, mode, align in (
        ((6, 3, 4), "nearest", False),
        ((5, 2, 3), "trilinear", False),
        ((2, 6, 2), "linear", True),
    ):
        rows[f"{size} {mode} {align}"] = Row(
            lambda x, s=size, m=mode, a=align: nk.interpolate(x, s, mode=m, align_corners=a),
            lambda x, s=size, m=mode, a=align: resized(
                resized(resized(x, 2, s[0], m, a), 3, s[1], m, a), 4, s[2], m, a
            ),
            (VOLUMES,),
            order=1,
            tolerance=1e-13,
        )
    rows["signal"] = Row(
        lambda x: nk.interpolate(x, scale_factor=3),
        lambda x: np.repeat(x, 3, 2),
        (SIGNAL,),
        order=1,
    )
    rows["half"] = Row(
        lambda x: nk.interpolate(x, scale_factor=0.5, mode="linear"),
        lambda x: np.stack([(x[..., k] + x[..., k + 1]) / 2 for k in (0, 2, 4)], -1),
        (SIGNAL,),
        order=1,
        tolerance=1e-14,
    )
    check(rows)


def test_a_tie_of_a_window_splits_evenly() -> None:
    slope = nk.gradient(of=staged(lambda x: nk.max_pool1d(x, 2).sum()), wrt=0)
    np.testing.assert_array_equal(
        np.asarray(slope(np.array([1.0, 1.0, 0.0, 2.0]))), [0.5, 0.5, 0, 1]
    )


ROWS = Table()
row = ROWS.row
X, K = ones(2, 3, 8, 8), ones(4, 3, 3, 3)

# fmt: off

row("channels", ShapeError, "conv2d: the kernel f32[4, 2, 3, 3] takes 2 channels, and 3 are given",
    "nk.conv2d(x, k)")(on(lambda x, k: nk.conv2d(x, k), X, ones(4, 2, 3, 3)))
row("channels of groups", ShapeError,
    "conv2d: the kernel f32[4, 3, 3, 3] takes 3 channels, and 3 are given, 1 in each group",
    "nk.conv2d(x, k, groups=3)")(
    on(lambda x, k: nk.conv2d(x, k, groups=3), X, K))
row("groups", ShapeError, "conv2d: 3 input channels cannot be split into 2 groups", "nk.conv2d(x, k, groups=2)")(
    on(lambda x, k: nk.conv2d(x, k, groups=2), X, K))
row("output groups", ShapeError, "conv2d: 4 output channels cannot be split into 3 groups")(
    on(lambda x, k: nk.conv2d(x, k, groups=3), X, ones(4, 1, 3, 3)))
row("padding word", ShapeError,
    "conv2d: padding is 'same', 'valid', an int, or an int or a pair of ints for each axis, "
    "not 'half'", 'nk.conv2d(x, k, padding="half")')(on(lambda x, k: nk.conv2d(x, k, padding="half"), X, K))
row("padding of axes", RankError, "conv1d: padding has 2 entries for 1 spatial axes", "", "help: a pair (low, high)")(
    on(lambda x, k: nk.conv1d(x, k, padding=(1, 2)), X[0], K[0]))
row("negative padding", ShapeError, "conv2d: padding is -1, not at least 0")(
    on(lambda x, k: nk.conv2d(x, k, padding=-1), X, K))
row("stride", ShapeError, "conv2d: stride is 0, not at least 1", "nk.conv2d(x, k, stride=0)")(
    on(lambda x, k: nk.conv2d(x, k, stride=0), X, K))
row("strides", RankError, "conv2d: stride has 3 entries for 2 spatial axes")(
    on(lambda x, k: nk.conv2d(x, k, stride=(1, 1, 1)), X, K))
row("float stride", ShapeError, "conv2d: stride is an int or a tuple of ints, not 1.5")(
    on(lambda x, k: nk.conv2d(x, k, stride=1.5), X, K))
row("long kernel", ShapeError, "conv2d: the kernel covers 9 places of spatial axis 0, which has 8",
    "nk.conv2d(x, k, dilation=4)")(on(lambda x, k: nk.conv2d(x, k, dilation=4), X, K))
row("rank of x", RankError, "conv2d takes x of rank 3 or 4, not a Tensor2D[f32]", "nk.conv2d(x[0, 0], k)")(
    on(lambda x, k: nk.conv2d(x[0, 0], k), X, K))
row("rank of the kernel", RankError, "conv2d takes a kernel of rank 4, not a Tensor3D[f32]")(
    on(lambda x, k: nk.conv2d(x, k[0]), X, K))
row("bias", RankError, "conv2d takes a bias of rank 1, not a Tensor2D[f32]")(
    on(lambda x, k: nk.conv2d(x, k, x[0, 0]), X, K))
row("types", DTypeError, "conv2d takes tensors of one element type, not Tensor4D[f32] and Tensor4D[f64]", "",
    "help: cast one of them")(on(lambda x, k: nk.conv2d(x, k), X, np.ones((4, 3, 3, 3))))
row("integers", DTypeError, "conv2d takes float elements, not Tensor4D[i64]")(
    on(lambda x: nk.conv2d(x, x), np.ones((1, 1, 2, 2), np.int64)))
row("rank of a volume's kernel", RankError, "conv3d takes a kernel of rank 5, not a Tensor4D[f32]", "nk.conv3d(x, k)")(
    on(lambda x, k: nk.conv3d(x, k), ones(2, 3, 8, 8), K))
row("channels of volumes", ShapeError, "conv3d: the kernel f32[4, 3, 3, 3, 3] takes 3 channels, and 2 are given")(
    on(lambda x, k: nk.conv3d(x, k), ones(1, 2, 3, 8, 8), ones(4, 3, 3, 3, 3)))
row("deep kernel", ShapeError, "conv3d: the kernel covers 5 places of spatial axis 0, which has 3")(
    on(lambda x, k: nk.conv3d(x, k), ones(2, 3, 8, 8), ones(4, 2, 5, 3, 3)))
row("rank of volumes", RankError, "conv_transpose3d takes x of rank 4 or 5, not a Tensor3D[f32]")(
    on(lambda x, k: nk.conv_transpose3d(x[0], k), K, ones(1, 1, 1, 1, 1)))
row("rank of a pool of volumes", RankError, "max_pool3d takes a tensor of rank 3 at least, not a Tensor2D[f32]")(
    on(lambda x: nk.max_pool3d(x[0, 0], 2), X))
row("transposed channels", ShapeError,
    "conv_transpose2d: the kernel f32[4, 3, 3, 3] takes 4 channels, and 3 are given")(
    on(lambda x, k: nk.conv_transpose2d(x, k), X, K))
row("window", ShapeError, "max_pool2d: the window covers 9 places of spatial axis 0, which has 8",
    "nk.max_pool2d(x, 9)")(
    on(lambda x: nk.max_pool2d(x, 9), X))
row("wide padding", ShapeError, "max_pool2d: padding (2, 2) of a window of 2: it would lie outside of the tensor")(
    on(lambda x: nk.max_pool2d(x, 2, padding=2), X))
row("rank of a pool", RankError, "avg_pool2d takes a tensor of rank 2 at least, not a Tensor1D[f32]")(
    on(lambda x: nk.avg_pool2d(x, 2), ones(3)))
row("mode", ShapeError, "interpolate: mode is 'nearest', 'linear', 'bilinear', 'trilinear' or 'bicubic', not 'cubic'")(
    on(lambda x: nk.interpolate(x, 4, mode="cubic"), X))
row("cubic signals", RankError, "interpolate: mode='bicubic' is for images, of rank 4, not a Tensor3D[f32]")(
    on(lambda x: nk.interpolate(x, 4, mode="bicubic"), ones(1, 1, 3)))
row("linear volumes", RankError, "interpolate: mode='trilinear' is for volumes, of rank 5, not a Tensor4D[f32]")(
    on(lambda x: nk.interpolate(x, 4, mode="trilinear"), X))
row("rank to resize", RankError, "interpolate takes a tensor of rank 3, 4 or 5, not a Tensor2D[f32]")(
    on(lambda x: nk.interpolate(x[0, 0], 4), X))
row("size or factor", ShapeError, "interpolate takes size or scale_factor, one of them", "nk.interpolate(x)")(
    on(lambda x: nk.interpolate(x), X))
row("factor", ShapeError, "interpolate: scale_factor is a positive number, or one for each of 2 spatial axes, not -2")(
    on(lambda x: nk.interpolate(x, scale_factor=-2), X))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_convolutions.py")
