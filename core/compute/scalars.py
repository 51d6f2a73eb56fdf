"""Scalar expressions of nest bodies, hash-consed: equal subexpressions are one.

Fusion works on these rather than on instruction lists: to inline a producer is to substitute coordinates,
equal subexpressions are one object (CSE), and what nobody refers to is not there (DCE).

    Coordinate  an affine function of the point, as an i64
    Read        an element of a tensor, at affine indices or at indices read before
    Computed    a scalar op applied to scalars
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from operator import attrgetter
from typing import TypeAlias

from ..errors import InternalError
from ..ir import Op, Value
from ..lazy_dataclass import dataclass
from ..ops.casting import DataTypeCast
from ..ops.nest import Affine, Bounds, axes_in, coordinate
from ..types import I64, DType, TensorType, scalar


@dataclass(eq=False, slots=True)
class Scalar:
    """An expression; `number` counts up, so that operands have smaller numbers than their users."""

    number: int
    dtype: DType
    operands: tuple[Scalar, ...]
    """The scalars that it directly refers to, read indices included."""


@dataclass(eq=False, slots=True)
class Coordinate(Scalar):
    index: Affine


@dataclass(eq=False, slots=True)
class Read(Scalar):
    source: Value
    indices: tuple[ScalarIndex, ...]
    bounds: Bounds


@dataclass(eq=False, slots=True)
class Computed(Scalar):
    op: Op


ScalarIndex: TypeAlias = Affine | Read
"""One index of a read: affine, or itself read."""


@dataclass
class ScalarPool:
    """Creates scalars, hash-consed."""

    _made: dict[object, Scalar] = field(default_factory=dict[object, Scalar])
    _parts: dict[Scalar, Sequence[Scalar]] = field(default_factory=dict[Scalar, Sequence[Scalar]])

    def coordinate(self, index: Affine) -> Scalar:
        known = self._made.get(index)
        return known or self._add(index, Coordinate(len(self._made), I64, (), index))

    def read(self, source: Value, indices: tuple[ScalarIndex, ...], bounds: Bounds) -> Read:
        key = (source, indices, bounds)
        known = self._made.get(key)
        if known is None:
            read = tuple(index for index in indices if isinstance(index, Read))
            dtype = source.tensor.dtype
            known = self._add(key, Read(len(self._made), dtype, read, source, indices, bounds))
        assert isinstance(known, Read)
        return known

    def computed(self, op: Op, operands: tuple[Scalar, ...]) -> Scalar:
        key = (op, operands)
        known = self._made.get(key)
        if known is not None:
            return known
        type = op.infer(*(scalar(operand.dtype) for operand in operands))
        if not isinstance(type, TensorType):
            raise InternalError(f"{op.name} is not a scalar op")
        return self._add(key, Computed(len(self._made), type.dtype, operands, op))

    def parts(self, root: Scalar) -> Sequence[Scalar]:
        """The subexpressions of a scalar, operands before users, itself last; found once."""
        known = self._parts.get(root)
        if known is None:
            known = self._parts[root] = reachable([root])
        return known

    def substitute(self, root: Scalar, axes: Substitution) -> Scalar | None:
        """`root` with its coordinates replaced; None when one is needed that is not affine.

        Reads take the bounds `axes` gives for those of their indices that may now be outside.
        """
        if axes.is_identity:
            return root
        known: dict[Scalar, Scalar] = {}
        for part in self.parts(root):
            replaced = self._substituted(part, axes, known)
            if replaced is None:
                return None
            known[part] = replaced
        return known[root]

    def replaced(self, root: Scalar, others: Mapping[Scalar, Scalar]) -> Scalar:
        """`root` with other scalars for some of its subexpressions."""
        known = dict(others)
        for part in reachable([root], stop=others):
            changed = isinstance(part, Computed) and any(known[x] is not x for x in part.operands)
            known[part] = part
            if isinstance(part, Computed) and changed:
                known[part] = self.computed(part.op, tuple(known[x] for x in part.operands))
        return known[root]

    def _substituted(
        self, part: Scalar, axes: Substitution, known: dict[Scalar, Scalar]
    ) -> Scalar | None:
        match part:
            case Computed(op=op, operands=operands):  # most of them
                return self.computed(op, tuple([known[operand] for operand in operands]))
            case Coordinate(index=index):
                place = axes.place(index)
                if isinstance(place, Read) and place.dtype != I64:
                    # an index that is read may be of any integer type; bodies compute with i64
                    return self.computed(DataTypeCast(I64), (place,))
                return self.coordinate(place) if isinstance(place, Affine) else place
            case Read(source=source, indices=indices, bounds=bounds):
                places = [axes.place(i) if isinstance(i, Affine) else known[i] for i in indices]
                found = tuple(p for p in places if isinstance(p, Affine | Read))
                if len(found) != len(indices):
                    return None
                return self.read(source, found, axes.bounds_of(indices, bounds))
            case _:
                return None

    def _add(self, key: object, made: Scalar) -> Scalar:
        self._made[key] = made
        return made


@dataclass(frozen=True)
class Substitution:
    """A substitution for coordinates, with the bounds mode of reads at `unsafe` ones.

    Unsafe coordinates are those whose replacement may leave the axis.
    """

    places: tuple[ScalarIndex, ...]
    unsafe: frozenset[int] = frozenset()
    bounds: Bounds = Bounds.INSIDE

    @cached_property
    def is_identity(self) -> bool:
        """Whether each coordinate stays what it is."""
        places = enumerate(self.places)
        return not self.unsafe and all(place == coordinate(axis) for axis, place in places)

    def place(self, index: Affine) -> ScalarIndex | None:
        """`index` after the replacement; None when it would have to compute with a read index."""
        axis = index.axis
        if axis is not None:
            return self.places[axis]
        replacements = [p if isinstance(p, Affine) else None for p in self.places]
        if any(replacements[axis] is None for axis, _ in index.terms):
            return None
        return index.substitute([r or Affine() for r in replacements])

    def bounds_of(self, indices: Sequence[ScalarIndex], known: Bounds) -> Bounds:
        """The bounds that a read at `indices` has after the replacement."""
        return self.bounds if axes_in(indices) & self.unsafe else known


def reachable(roots: Iterable[Scalar], *, stop: Container[Scalar] = ()) -> list[Scalar]:
    """The subexpressions of the roots, operands before users, cut off at those in `stop`."""
    found: set[Scalar] = set()
    pending = list(roots)
    while pending:
        current = pending.pop()
        if current not in found and current not in stop:
            found.add(current)
            pending += current.operands
    return sorted(found, key=_NUMBER)


_NUMBER = attrgetter("number")


def axes_of(part: Scalar) -> frozenset[int]:
    """The coordinates that `part` mentions itself, not those of its operands."""
    match part:
        case Coordinate(index=index):
            return axes_in([index])
        case Read(indices=indices):
            return axes_in(indices)
        case _:
            return frozenset()
