"""Whether a producer may be fused into a padded or clamped access."""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.nest import Affine, Bounds
from ..types import Shape
from .scalars import Coordinate, Read, Scalar, Substitution, axes_of


def may_fuse_out_of_bounds(
    root: Scalar, parts: Sequence[Scalar], axes: Substitution, extents: Shape
) -> bool:
    """Whether inlining `root` at indices that may be out of its bounds gives what loading its stored value would.

    Each unsafe coordinate must be nothing but an index into an axis of the same extent, so that the bounds
    can be left to the reads: clipping happens there as well, a check must be made by some read, and
    zero is right only for an expression that is a read.
    """
    tested: set[int] = set()
    for part in parts:
        match part:
            case Coordinate() if not axes.unsafe.isdisjoint(axes_of(part)):
                return False
            case Read():
                found = _tested(part, axes.unsafe, extents)
                if found is None:
                    return False
                tested.update(found if axes.bounds is not Bounds.ZERO or part is root else ())
            case _:
                pass
    if axes.bounds is Bounds.ZERO and not isinstance(root, Read):
        return False
    return axes.bounds is Bounds.CLIP or frozenset(tested) == axes.unsafe


def _tested(read: Read, unsafe: frozenset[int], extents: Shape) -> set[int] | None:
    """The unsafe coordinates that index an axis of their own extent; None if one is used otherwise."""
    tested: set[int] = set()
    for index, extent in zip(read.indices, read.source.tensor.shape, strict=True):
        if not isinstance(index, Affine) or unsafe.isdisjoint(a for a, _ in index.terms):
            continue
        if read.bounds is not Bounds.INSIDE or index.axis is None or extents[index.axis] != extent:
            return None
        tested.add(index.axis)
    return tested
