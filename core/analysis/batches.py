"""What declarations of batches ask for: checked, and the type of the batched function.

[batch @f along 0, none, 1 into 0]
parameters: those of f; one that is batched along an axis has this axis besides, in all tensors that it is made of
results:    those of f, with a new axis each, at the place that `into` says, or without one where it says none

All axes of the batch have one extent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import RankError, ShapeError, UnsupportedError
from ..ir import BatchOf, Function
from ..ops.leaves import leaves_of
from ..types import (
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    one_or_tuple,
    written,
)
from .derivatives import elements


def result_axes(primal: FunctionType, declaration: BatchOf) -> tuple[int | None, ...]:
    """Where the batch's axis stands in each result; its default filled in."""
    if declaration.into is not None:
        return declaration.into
    return (0,) * len(elements(primal.result))


def batch_extent(function: FunctionType, declaration: BatchOf) -> int:
    """How many elements there are, by the type of the batched function.

    Raises: ShapeError naming parameter, axis and extent where they differ or there is no such axis.
    """
    found: list[tuple[int, int, int]] = []
    for number, (type, axis) in enumerate(zip(function.parameters, declaration.along, strict=True)):
        if axis is not None:
            found += [(_extent(number, leaf.type, axis), number, axis) for leaf in leaves_of(type)]
    if not found:
        raise ShapeError(
            f"the batch of {written('@', declaration.primal)} is along no parameter: name an axis of one"
        )
    extent, first, _ = found[0]
    for other, number, axis in found:
        if other != extent:
            raise ShapeError(
                f"the batch of {written('@', declaration.primal)} has {extent} elements along axis "
                f"{declaration.along[first]} of parameter {first}, and {other} along axis {axis} of "
                f"parameter {number}"
            )
    return extent


def _extent(number: int, type: Type, axis: int) -> int:
    if not isinstance(type, TensorType):
        raise UnsupportedError(f"parameter {number} holds a {type}: only tensors are batched")
    if not 0 <= axis < type.rank:
        raise RankError(f"parameter {number} is {type.words}, which has no axis {axis} to batch")
    return type.shape[axis]


def batched_type(primal: FunctionType, declaration: BatchOf, extent: int) -> FunctionType:
    """The type of @`primal` for `extent` elements.

    Raises: RankError for an axis out of range or too few of them; UnsupportedError for what is no tensor.
    """
    name = written("@", declaration.primal)
    results = elements(primal.result)
    into = result_axes(primal, declaration)
    for what, axes, types in (
        ("parameters", declaration.along, primal.parameters),
        ("results", into, results),
    ):
        if len(axes) != len(types):
            raise RankError(
                f"the batch of {name} says an axis for {len(axes)} {what}, and {name} has {len(types)}"
            )
    parameters = [
        with_axis(type, axis, extent, f"parameter {number} of {name}")
        for number, (type, axis) in enumerate(
            zip(primal.parameters, declaration.along, strict=True)
        )
    ]
    made = [
        with_axis(type, axis, extent, f"result {number} of {name}")
        for number, (type, axis) in enumerate(zip(results, into, strict=True))
    ]
    is_tuple = isinstance(primal.result, TupleType)
    return FunctionType(
        tuple(parameters), TupleType(tuple(made)) if is_tuple else one_or_tuple(made)
    )


def with_axis(type: Type, axis: int | None, extent: int, what: str) -> Type:
    """`type` with a further axis of `extent` in each tensor."""
    if axis is None:
        return type
    if isinstance(type, TensorType):
        if not 0 <= axis <= type.rank:
            raise RankError(f"{what} is {type.words}, which has no place {axis} for another axis")
        return type.with_shape((*type.shape[:axis], extent, *type.shape[axis:]))
    parts = elements_of(type)
    if parts is None or not isinstance(type, TupleType | StructType):
        raise UnsupportedError(f"{what} is a {type}: only tensors are batched")
    inner = tuple(with_axis(part, axis, extent, what) for part in parts)
    if isinstance(type, TupleType):
        return TupleType(inner)
    fields = tuple((name, part) for (name, _), part in zip(type.fields, inner, strict=True))
    return StructType(f"{type.name}_{extent}", fields)


def declared_batch(primal: FunctionType, function: Function) -> int:
    """The extent of the batch that `function` is declared as, when it has the type of that.

    Raises: as `batched_type` and `batch_extent`, and ShapeError for another type.
    """
    declaration = function.declaration
    assert isinstance(declaration, BatchOf)
    if len(declaration.along) != len(function.type.parameters):
        batched_type(primal, declaration, 0)
        raise ShapeError(
            f"{written('@', function.name)} takes {len(function.type.parameters)} parameters, and the "
            f"batch of {written('@', declaration.primal)} takes {len(declaration.along)}"
        )
    extent = batch_extent(function.type, declaration)
    expected = batched_type(primal, declaration, extent)
    if not _alike(expected, function.type):
        raise ShapeError(
            f"{written('@', function.name)} is declared as {function.type}, but the batch of "
            f"{written('@', declaration.primal)} is {expected}"
        )
    return extent


def _alike(one: FunctionType, other: FunctionType) -> bool:
    """The same, whatever structs are called."""

    def leaf_types(types: Sequence[Type]) -> list[list[Type]]:
        return [[leaf.type for leaf in leaves_of(type)] for type in types]

    return leaf_types((*one.parameters, one.result)) == leaf_types(
        (*other.parameters, other.result)
    )
