"""Normalizes nests for fusion: drops axes of extent 1, reads through reshapes, and recognizes elementwise results.

A *request* is one read of a nest with `shapeCast`s followed back to the tensor behind them.  A result is
*plain* when each element is written from points of its own: its indices are different coordinates that
cover the result, and without a combinator they are all the coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import TypeAlias

from ..errors import InternalError
from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.nest import Access, Affine, Bounds, Index, Loaded, Nest, Output, axes_in, coordinate
from ..types import Shape
from .address import address, is_inside, through_cast
from .bodies import base_of
from .scalars import Read, Scalar, ScalarIndex, ScalarPool

Axes: TypeAlias = tuple[int | None, ...]
"""For each axis of a tensor the coordinate that is its index; None for constant 0."""


@dataclass(frozen=True)
class NestRead:
    """A read of `source`; loaded indices name earlier requests of the nest by number."""

    source: Value
    indices: tuple[Index, ...]
    bounds: Bounds

    @cached_property
    def axes(self) -> Axes | None:
        """The coordinate at each axis, None for constant 0; None when an index is anything else."""
        axes: list[int | None] = []
        for index in self.indices:
            if not isinstance(index, Affine) or (index.axis is None and index != Affine()):
                return None
            axes.append(index.axis)
        named = [axis for axis in axes if axis is not None]
        return tuple(axes) if len(set(named)) == len(named) else None

    @property
    def mentioned(self) -> frozenset[int]:
        """The coordinates that affine indices depend on."""
        return axes_in(self.indices)


@dataclass(frozen=True)
class NestResult:
    """One result in the coordinates of the lifted nest; `axes` only when it is plain."""

    value: Value
    indices: tuple[Index, ...]
    combinator: Combinator | None
    bounds: Bounds
    axes: Axes | None
    init: int | None = None
    """The request of the tensor that it updates."""


@dataclass(frozen=True)
class NormalizedNest:
    """A normalized nest, over a box without axes of extent 1; `axes` maps the original ones."""

    instruction: Instruction
    extents: Shape
    axes: tuple[Affine, ...]
    requests: tuple[NestRead, ...]
    results: tuple[NestResult, ...]
    summed: frozenset[int] | None = field(compare=False)
    """The axes that combining results do not keep; None without such a result."""

    @property
    def is_plain(self) -> bool:
        return all(result.axes is not None for result in self.results)

    @property
    def size(self) -> int:
        """Scalars that the nest adds to a body at most, coordinates apart."""
        return len(self.requests) + len(self.instruction.regions[0].entry.instructions)

    def executions(self, request: NestRead) -> int:
        """How often the element of `request` changes, with summed axes innermost."""
        summed = self.summed or frozenset()
        order = sorted(range(len(self.extents)), key=lambda axis: (axis in summed, axis))
        deepest = max((order.index(axis) for axis in request.mentioned), default=-1)
        if any(isinstance(index, Loaded) for index in request.indices):
            deepest = len(order) - 1
        return math.prod(self.extents[axis] for axis in order[: deepest + 1])

    @cached_property
    def pinned(self) -> frozenset[int]:
        """Reads that serve as indices, or of what is updated, and so cannot be replaced by computed values."""
        indices = [i for request in self.requests for i in request.indices]
        indices += [i for result in self.results for i in result.indices]
        updated = [result.init for result in self.results if result.init is not None]
        return frozenset([*updated, *(i.operand for i in indices if isinstance(i, Loaded))])

    @cached_property
    def updated(self) -> frozenset[Value]:
        """The bases that results begin with, whose buffers they take if these are dead afterwards."""
        return frozenset(
            base_of(self.instruction.operands[result.init])
            for result in self.results
            if result.init is not None
        )


def normalize_nest(instruction: Instruction, nest: Nest) -> NormalizedNest:
    """The nest without axes of extent 1."""
    axes: list[Affine] = []
    for extent in nest.extents:
        axes.append(Affine() if extent == 1 else coordinate(len(axes) - axes.count(Affine())))
    extents = tuple(extent for extent in nest.extents if extent != 1)
    updated = [written.init for written in nest.outputs]
    requests = tuple(
        _request(operand, access, axes, extents, is_updated=number in updated)
        for number, (operand, access) in enumerate(
            zip(instruction.operands, nest.accesses, strict=True)
        )
    )
    results = tuple(
        _result(value, written, axes, extents, requests)
        for value, written in zip(instruction.results, nest.outputs, strict=True)
    )
    return NormalizedNest(
        instruction, extents, tuple(axes), requests, results, _summed(results, extents)
    )


def body_scalars(
    pool: ScalarPool, normalized: NormalizedNest, axes: Sequence[Affine], reads: Sequence[Scalar]
) -> list[Scalar]:
    """What the body yields, with its coordinates and its reads given."""
    block = normalized.instruction.regions[0].entry
    known: dict[Value, Scalar] = {}
    rank = len(normalized.axes)
    for argument, axis in zip(block.arguments, normalized.axes, strict=False):
        known[argument] = pool.coordinate(axis.substitute(axes))
    known.update(zip(block.arguments[rank:], reads, strict=True))
    for instruction in block.instructions[:-1]:
        operands = tuple(known[operand] for operand in instruction.operands)
        known[instruction.result] = pool.computed(instruction.op, operands)
    return [known[operand] for operand in block.terminator.operands]


def index_in_cluster(index: Index, axes: Sequence[Affine], reads: Sequence[Scalar]) -> ScalarIndex:
    """An index of a lifted nest in the coordinates of a cluster."""
    if isinstance(index, Affine):
        return index.substitute(axes)
    read = reads[index.operand]
    if not isinstance(read, Read):
        raise InternalError("an index must be read, not computed")
    return read


def is_copy(normalized: NormalizedNest, nest: Nest) -> bool:
    """Whether a nest only copies its operand, in row-major order."""
    block = normalized.instruction.regions[0].entry
    if len(nest.accesses) != 1 or len(nest.outputs) != 1 or 0 in nest.extents:
        return False
    if nest.outputs[0].init is not None:
        return False
    if block.terminator.operands != (block.arguments[-1],):
        return False
    if normalized.results[0].axes is None or normalized.results[0].combinator is not None:
        return False
    operand, written, access = (
        normalized.instruction.operands[0].tensor,
        *nest.outputs,
        *nest.accesses,
    )
    source = address(nest.extents, operand, access.indices, access.bounds)
    target = address(nest.extents, written.type, written.indices, written.bounds)
    return operand.size == written.type.size and source is not None and source == target


def _request(
    operand: Value,
    access: Access,
    axes: Sequence[Affine],
    extents: Shape,
    *,
    is_updated: bool,
) -> NestRead:
    indices = tuple(i.substitute(axes) if isinstance(i, Affine) else i for i in access.indices)
    source = operand if is_updated else base_of(operand)
    if source is not operand:
        shape, wanted = operand.tensor.shape, source.tensor.shape
        through = through_cast(indices, shape, wanted, access.bounds, extents)
        if through is None:
            return NestRead(operand, indices, access.bounds)
        indices = through
    return NestRead(source, indices, _bounds(source, indices, access.bounds, extents))


def _bounds(source: Value, indices: Sequence[Index], bounds: Bounds, extents: Shape) -> Bounds:
    """INSIDE when that can be proved."""
    if bounds is Bounds.INSIDE or 0 in extents:
        return bounds
    shape = source.tensor.shape
    proved = all(is_inside(i, n, extents) for i, n in zip(indices, shape, strict=True))
    return Bounds.INSIDE if proved else bounds


def _result(
    value: Value,
    written: Output,
    axes: Sequence[Affine],
    extents: Shape,
    requests: Sequence[NestRead],
) -> NestResult:
    indices = tuple(i.substitute(axes) if isinstance(i, Affine) else i for i in written.indices)
    bounds = written.bounds if written.init is None else requests[written.init].bounds
    plain = NestRead(value, indices, bounds).axes
    named = [axis for axis in plain or () if axis is not None]
    covered = tuple(1 if axis is None else extents[axis] for axis in plain or ())
    combinator = written.combinator
    if combinator is not None and len(named) == len(extents):
        combinator = None
    if (
        bounds is not Bounds.INSIDE
        or written.init is not None
        or covered != written.type.shape
        or (combinator is None and len(named) != len(extents))
    ):
        plain, combinator = None, written.combinator
    return NestResult(value, indices, combinator, bounds, plain, written.init)


def _summed(results: Sequence[NestResult], extents: Shape) -> frozenset[int] | None:
    summed: set[int] = set()
    for result in results:
        if result.combinator is not None and result.axes is not None:
            summed.update(set(range(len(extents))) - set(result.axes))
    return frozenset(summed) if any(r.combinator is not None for r in results) else None
