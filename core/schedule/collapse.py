"""Neighbouring axes that every tensor walks through as one become one axis, so that short rows fill vectors.

An update of a 128 × 10 matrix is one loop over 1,280 elements, not 128 loops over 10.  Two axes become one
when each access either mentions neither, or has both as neighbouring indices, the inner one over the whole of
the tensor's axis, or in one index that counts what both walk through.  Long rows stay: they fill vectors by themselves,
and can be grouped (`group`).  What reads a matrix whose rows it counts by several axes can become a nest over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..compute.bodies import base_of
from ..ir import Builder, Instruction, Value
from ..ops.movement import reshaped
from ..ops.nest import Access, Affine, Bounds, Index, Nest, Output, coordinate
from ..types import Shape

_SHORT = 128
"""Axes shorter than this join their outer neighbour.

Some vectors of f32: with 32 or 64, five matrices of 100 × 100 that are put together keep their rows, and take 1.1 times
as long. With 512, rows of 256 join in a step of an MLP, to no effect.
"""


def emit_collapsed(
    b: Builder, instruction: Instruction, nest: Nest, joined: frozenset[int]
) -> tuple[Value, ...]:
    """Emit the nest with axes `joined` to those before them, on the same body; results as they were."""
    op = collapsed(nest, instruction.operands, joined)
    reads = [
        _narrowed(value.tensor.shape, access.indices, joined)
        for value, access in zip(instruction.operands, nest.accesses, strict=True)
    ]
    operands = zip(instruction.operands, reads, strict=True)
    values = [_cast(b, value, shape) for value, (shape, _) in operands]
    body = instruction.regions[0].entry
    body.arguments = [x for axis, x in enumerate(body.arguments) if axis not in joined]
    made = b.emit_many(op, values, instruction.regions)
    instruction.regions = ()
    return tuple(
        _cast(b, value, written.type.shape)
        for value, written in zip(made, nest.own_outputs, strict=True)
    )


def collapsed(nest: Nest, operands: Sequence[Value], joined: frozenset[int]) -> Nest:
    """The nest with axes `joined` to those before them."""
    extents: list[int] = []
    for axis, extent in enumerate(nest.extents):
        if axis in joined:
            extents[-1] *= extent
        else:
            extents.append(extent)
    accesses = [
        Access(_narrowed(value.tensor.shape, access.indices, joined)[1], access.bounds)
        for value, access in zip(operands, nest.accesses, strict=True)
    ]
    outputs: list[Output] = []
    for written in nest.outputs:
        shape, indices = _narrowed(written.type.shape, written.indices, joined)
        outputs.append(replace(written, type=written.type.with_shape(shape), indices=indices))
    return Nest(tuple(extents), tuple(accesses), tuple(outputs))


def axes_of_rows(instruction: Instruction, nest: Nest) -> frozenset[int] | None:
    """The axes to be joined for a nest over several axes of rows to be one over a matrix; None if they cannot."""
    inner = instruction.regions[0].entry
    rows = range(1, len(nest.extents) - 1)
    if not rows or any(x.uses for x in inner.arguments[: rows.stop]):
        return None
    uses = _uses(instruction, nest)
    if all(_walks_as_one(shape, use, axis, nest) for axis in rows for shape, use in uses):
        return frozenset(rows)
    return None


def _uses(instruction: Instruction, nest: Nest) -> list[tuple[Shape, Access | Output]]:
    """What is read and written, with shapes."""
    return [
        *((v.tensor.shape, a) for v, a in zip(instruction.operands, nest.accesses, strict=True)),
        *((output.type.shape, output) for output in nest.outputs),
    ]


def joined_axes(instruction: Instruction, nest: Nest) -> frozenset[int]:
    """The axes that can join the one before them."""
    inner = instruction.regions[0].entry
    uses = _uses(instruction, nest)
    joined: set[int] = set()
    width = 1
    for axis in reversed(range(1, len(nest.extents))):
        width *= nest.extents[axis]
        coordinates = inner.arguments[axis - 1 : axis + 1]
        if (
            width < _SHORT
            and not any(coordinate.uses for coordinate in coordinates)
            and all(_walks_as_one(shape, use, axis, nest) for shape, use in uses)
        ):
            joined.add(axis)
        else:
            width = 1
    return frozenset(joined)


def _walks_as_one(shape: Shape, use: Access | Output, axis: int, nest: Nest) -> bool:
    """Whether axes `axis` − 1 and `axis` are one walk through the tensor, or not mentioned."""
    indices = use.indices
    places = [
        place
        for place, index in enumerate(indices)
        if isinstance(index, Affine) and (index.coefficient(axis - 1) or index.coefficient(axis))
    ]
    if not places:
        return True
    if use.bounds is not Bounds.INSIDE:
        return False
    if len(places) == 1:
        index = indices[places[0]]
        assert isinstance(index, Affine)
        outer, inner = index.coefficient(axis - 1), index.coefficient(axis)
        return outer != 0 and outer == inner * nest.extents[axis]
    return (
        len(places) == 2
        and places[1] == places[0] + 1
        and indices[places[0]] == coordinate(axis - 1)
        and indices[places[1]] == coordinate(axis)
        and shape[places[1]] == nest.extents[axis]
    )


def _narrowed(
    shape: Shape, indices: Sequence[Index], joined: frozenset[int]
) -> tuple[Shape, tuple[Index, ...]]:
    """The tensor's shape and the indices with joined axes as one."""
    extents: list[int] = []
    kept: list[Index] = []
    for extent, index in zip(shape, indices, strict=True):
        if isinstance(index, Affine) and index.axis in joined:
            extents[-1] *= extent
        else:
            extents.append(extent)
            kept.append(_renumbered(index, joined) if isinstance(index, Affine) else index)
    return tuple(extents), tuple(kept)


def _renumbered(index: Affine, joined: frozenset[int]) -> Affine:
    """An index in the new coordinates: one that counts what joined axes walk through has the step of the last one."""
    terms: dict[int, int] = {}
    for axis, coefficient in index.terms:
        terms[axis - sum(other <= axis for other in joined)] = coefficient
    return Affine(index.constant, tuple(terms.items()))


def _cast(b: Builder, value: Value, shape: Shape) -> Value:
    """The bytes of `value` as a tensor of `shape`."""
    return reshaped(b, value if value.tensor.shape == shape else base_of(value), shape)
