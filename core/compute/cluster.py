"""Clusters: nests fused over one box, with the scalar expressions that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..errors import InternalError
from ..ir import Block, Builder, Region, Value
from ..lazy_dataclass import dataclass
from ..location import HasLocation
from ..ops.arithmetic import Add, Multiply
from ..ops.combinator import Combinator
from ..ops.literal import constant
from ..ops.movement import reshaped
from ..ops.nest import Access, Affine, Bounds, Index, Loaded, Nest, Output, Yield, coordinate
from ..types import I64, Shape, scalar
from .scalars import Computed, Coordinate, Read, Scalar, ScalarIndex, reachable


@dataclass(frozen=True, eq=False)
class ClusterOutput:
    """A result of a cluster: `root` written at `indices`; `axes` only when it is plain (see `normalized_nest`)."""

    value: Value
    root: Scalar
    indices: tuple[ScalarIndex, ...]
    combinator: Combinator | None
    bounds: Bounds
    axes: tuple[int | None, ...] | None
    init: Read | None = None
    """What it reads of the tensor that it updates."""

    @property
    def is_elementwise(self) -> bool:
        """Whether every point writes an element of its own, so that readers may compute it instead."""
        return self.axes is not None and self.combinator is None


@dataclass(eq=False)
class Cluster:
    """Nests over `extents` that run as one, at position `sequence` of the program."""

    extents: Shape
    sequence: int
    is_open: bool
    """Whether further nests may join; one whose results are not plain is alone."""
    results: list[ClusterOutput] = field(default_factory=list[ClusterOutput])
    parts: set[Scalar] = field(default_factory=set[Scalar])
    summed: frozenset[int] | None = None
    is_read: bool = False
    """Whether something outside reads a result, so that the cluster may no longer move down."""
    location: HasLocation | None = None

    def sources(self, live: set[Value]) -> list[Value]:
        """All tensors that the computation of the results in `live` reads."""
        parts = reachable(self._needed(live))
        return [part.source for part in parts if isinstance(part, Read)]

    def emit(
        self, b: Builder, values: Mapping[Value, Value], live: set[Value]
    ) -> dict[Value, Value]:
        """Write the nest that computes the results in `live`; their new values."""
        results = [written for written in self.results if written.value in live]
        body = _NestBody(self.extents, reachable(self._needed(live)))
        body.b.emit_many(Yield(), [body.values[written.root] for written in results])
        op = Nest(self.extents, body.accesses(), tuple(body.output(w) for w in results))
        b.location = self.location
        operands = [values[read.source] for read in body.reads]
        made = b.emit_many(op, operands, [Region([body.b.block])])
        return {w.value: _reshaped(b, v, w.value) for w, v in zip(results, made, strict=True)}

    def _needed(self, live: set[Value]) -> list[Scalar]:
        """What the results in `live` refer to directly."""
        results = [written for written in self.results if written.value in live]
        indices = [i for written in results for i in written.indices if isinstance(i, Read)]
        updated = [written.init for written in results if written.init is not None]
        return [*(written.root for written in results), *indices, *updated]


class _NestBody:
    """The body of a nest, written from scalars."""

    def __init__(self, extents: Shape, parts: list[Scalar]) -> None:
        self.b = Builder(Block(name="body"))
        self.reads = [part for part in parts if isinstance(part, Read)]
        self.numbers = {read: number for number, read in enumerate(self.reads)}
        self.coordinates = [
            self.b.argument(scalar(I64), f"d{axis}") for axis in range(len(extents))
        ]
        self.values: dict[Scalar, Value] = {
            read: self.b.argument(scalar(read.dtype)) for read in self.reads
        }
        for part in parts:
            match part:
                case Computed(op=op, operands=operands):
                    self.values[part] = self.b.emit(op, *(self.values[o] for o in operands))
                case Coordinate(index=index):
                    self.values[part] = self._affine(index)
                case _:
                    pass

    def accesses(self) -> tuple[Access, ...]:
        return tuple(Access(self._indices(read.indices), read.bounds) for read in self.reads)

    def output(self, written: ClusterOutput) -> Output:
        """The output; a plain one leaves out axes of extent 1, which `_reshaped` puts back."""
        type = written.value.tensor
        if written.axes is None:
            init = None if written.init is None else self.numbers[written.init]
            indices = self._indices(written.indices)
            return Output(type, indices, written.combinator, written.bounds, init)
        kept = [axis for axis in written.axes if axis is not None]
        narrow = type.with_shape(
            n for n, axis in zip(type.shape, written.axes, strict=True) if axis is not None
        )
        return Output(narrow, tuple(coordinate(axis) for axis in kept), written.combinator)

    def _indices(self, places: tuple[ScalarIndex, ...]) -> tuple[Index, ...]:
        return tuple(p if isinstance(p, Affine) else Loaded(self.numbers[p]) for p in places)

    def _affine(self, index: Affine) -> Value:
        total: Value | None = None
        for axis, coefficient in index.terms:
            term = self.coordinates[axis]
            if coefficient != 1:
                term = self.b.emit(Multiply(), term, constant(self.b, scalar(I64), coefficient))
            total = term if total is None else self.b.emit(Add(), total, term)
        if total is None or index.constant:
            offset = constant(self.b, scalar(I64), index.constant)
            total = offset if total is None else self.b.emit(Add(), total, offset)
        return total


def _reshaped(b: Builder, value: Value, original: Value) -> Value:
    if value.tensor.dtype != original.tensor.dtype:
        raise InternalError(f"fusion made {value.type} of {original.type}")
    return reshaped(b, value, original.tensor.shape)
