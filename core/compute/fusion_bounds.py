"""Whether a producer may be fused into a padded or clamped access."""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.nest import Affine, Bounds
from ..types import Shape
from .scalars import Coordinate, Read, Scalar, Substitution, axes_of


def may_fuse_out_of_bounds(
    root: Scalar, parts: Sequence[Scalar], axes: Substitution, extents: Shape, domain: Shape
) -> bool:
    """Whether inlining `root` at indices that may be out of its bounds gives what loading its stored value would.

    Each unsafe coordinate must be nothing but an index into an axis of the same extent, so that the bounds
    can be left to the reads: clipping happens there as well, a check must be made by some read, and
    zero is right only for an expression that is a read.  That may be of a slice, where no point of the `domain` that
    is outside of the slice is inside of its tensor: a shift reads one end of it and leaves the other.
    """
    tested: set[int] = set()
    for part in parts:
        match part:
            case Coordinate() if not axes.unsafe.isdisjoint(axes_of(part)):
                return False
            case Read():
                found = _tested(part, axes, extents, domain)
                if found is None:
                    return False
                tested.update(found if axes.bounds is not Bounds.ZERO or part is root else ())
            case _:
                pass
    if axes.bounds is Bounds.ZERO and not isinstance(root, Read):
        return False
    return axes.bounds is Bounds.CLIP or frozenset(tested) == axes.unsafe


def _tested(read: Read, axes: Substitution, extents: Shape, domain: Shape) -> set[int] | None:
    """The unsafe coordinates that index an axis of their own extent; None if one is used otherwise."""
    tested: set[int] = set()
    for index, extent in zip(read.indices, read.source.tensor.shape, strict=True):
        if not isinstance(index, Affine) or axes.unsafe.isdisjoint(a for a, _ in index.terms):
            continue
        if read.bounds is not Bounds.INSIDE:
            return None
        if index.axis is not None and extents[index.axis] == extent:
            tested.add(index.axis)
        elif axes.bounds is Bounds.ZERO and _leaves_both(index, extent, axes, extents, domain):
            tested.add(index.terms[0][0])
        else:
            return None
    return tested


def _leaves_both(
    index: Affine, extent: int, axes: Substitution, extents: Shape, domain: Shape
) -> bool:
    """Whether a slice of neighbours, read over a domain, is left where the axis is that it lies in."""
    ((axis, coefficient), *others) = index.terms
    place = axes.places[axis]
    if coefficient != 1 or others or not isinstance(place, Affine):
        return False
    low, high = place.bounds(domain)
    return (low >= 0 or index.constant == 0) and (
        high < extents[axis] or index.constant + extents[axis] == extent
    )
