"""Affine element addresses: linearization of indices, and indices through reshapes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ..ops.nest import Affine, Bounds, Index
from ..types import Shape, TensorType


def address(
    extents: Shape, type: TensorType, indices: Sequence[Index], bounds: Bounds
) -> Affine | None:
    """Position of the element in row-major order; None when an index is loaded or may be outside.

    Axes of extent 1 leave no term, so equal addresses compare equal.
    """
    affine = [index for index in indices if isinstance(index, Affine)]
    if bounds is not Bounds.INSIDE or len(affine) != len(indices):
        return None
    total = linearize(affine, type.shape)
    return Affine(total.constant, tuple(t for t in total.terms if extents[t[0]] != 1))


def linearize(indices: Sequence[Affine], shape: Shape) -> Affine:
    """The row-major position of the element at `indices`."""
    total, stride = Affine(), 1
    for index, extent in zip(reversed(indices), reversed(shape), strict=True):
        total, stride = total + index * stride, stride * extent
    return total


def delinearize(position: Affine, shape: Shape, extents: Shape) -> tuple[Affine, ...] | None:
    """Indices into `shape` of the element at a row-major position; None when they are not affine.

    Each index takes the terms that are multiples of its stride; the rest must stay below the stride
    for every point of the box.
    """
    indices: list[Affine] = []
    strides = list(itertools.accumulate(reversed(shape[1:]), int.__mul__, initial=1))[::-1]
    for stride, extent in zip(strides[: len(shape)], shape, strict=True):
        if extent == 1:
            indices.append(Affine())
            continue
        terms = tuple((axis, c // stride) for axis, c in position.terms if c % stride == 0)
        index = Affine(position.constant // stride, terms)
        position = position + index * -stride
        low, high = position.bounds(extents)
        if low < 0 or high >= stride:
            return None
        indices.append(index)
    return tuple(indices)


def through_cast(
    indices: Sequence[Index], cast: Shape, source: Shape, bounds: Bounds, extents: Shape
) -> tuple[Index, ...] | None:
    """Indices into a tensor of shape `source` of what `indices` read of its alias of shape `cast`.

    None when they are not affine, or when what happens outside would differ.
    """
    if 0 in cast or 0 in extents:
        return None
    found: list[Index] = []
    for here, there in _common_factors(cast, source):
        part = [indices[axis] for axis in here]
        shape = tuple(cast[axis] for axis in here)
        target = tuple(source[axis] for axis in there)
        translated = _translate(part, shape, target, bounds, extents)
        if translated is None:
            return None
        found.extend(translated)
    return tuple(found)


def _translate(
    indices: Sequence[Index], cast: Shape, source: Shape, bounds: Bounds, extents: Shape
) -> Sequence[Index] | None:
    inside = [
        (extent == 1 and bounds is Bounds.INSIDE) or is_inside(index, extent, extents)
        for index, extent in zip(indices, cast, strict=True)
    ]
    wide = [k for k, extent in enumerate(cast) if extent != 1]
    if len(wide) == 1 and source.count(1) == len(source) - 1:
        if not all(inside[k] for k in range(len(cast)) if k != wide[0]):
            return None
        return [Affine() if extent == 1 else indices[wide[0]] for extent in source]
    affine = [index for index in indices if isinstance(index, Affine)]
    if len(affine) != len(indices):
        return [Affine()] * len(source) if not wide and all(inside) else None
    if bounds is not Bounds.INSIDE and not all(inside):
        return None
    return delinearize(linearize(affine, cast), source, extents)


def is_inside(index: Index, extent: int, extents: Shape) -> bool:
    """Whether the index is proved to stay inside an axis of `extent`, over the (non-empty) box."""
    if not isinstance(index, Affine):
        return False
    low, high = index.bounds(extents)
    return 0 <= low and high < extent


def _common_factors(a: Shape, b: Shape) -> Iterator[tuple[range, range]]:
    """The finest split of both shapes (of equal, non-zero size) into groups of equal products.

    Axes of extent 1 at the end join the last group.
    """
    i = j = 0
    while i < len(a) or j < len(b):
        first_i, first_j, product_a, product_b = i, j, 1, 1
        while (
            product_a != product_b or (i == first_i and i < len(a)) or (j == first_j and j < len(b))
        ):
            if i < len(a) and (product_a <= product_b or j == len(b)):
                product_a, i = product_a * a[i], i + 1
            else:
                product_b, j = product_b * b[j], j + 1
        yield range(first_i, i), range(first_j, j)
