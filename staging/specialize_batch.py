"""Specialises batched functions: `[batch @f along …]`, for arguments whose batches have one extent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.analysis.batches import with_axis
from ..core.analysis.derivatives import elements
from ..core.errors import ShapeError
from ..core.ir import BatchOf
from ..core.ops.leaves import leaves_of
from ..core.types import StructType, TensorType, TupleType, Type
from .expression import BatchCallee, Callee
from .spec import FunctionSpec, Spec


def extent_of(callee: BatchCallee, types: Sequence[Type]) -> int:
    """How many elements there are in arguments of `types`.

    Raises: ShapeError naming arguments, axes and extents where they differ.
    """
    found = [
        (leaf.type.shape[axis], k, axis, leaf.type)
        for k, (type, axis) in enumerate(zip(types, callee.along, strict=True))
        if axis is not None
        for leaf in leaves_of(type)
        if isinstance(leaf.type, TensorType)
    ]
    extent = found[0][0]
    for other, *_ in found:
        if other != extent:
            each = dict.fromkeys(
                f"{callee.data_names[k]}, {type.words}, has {n} along axis {axis}"
                for n, k, axis, type in found
            )
            raise ShapeError(
                f"{callee.name} takes as many elements of each argument: {'; '.join(each)}"
            )
    return extent


def one_element(
    callee: BatchCallee,
    types: Sequence[Type],
    type_of: Callable[[Spec, list[tuple[int, ...]]], Type],
) -> tuple[Callee, tuple[Type, ...]]:
    """What is batched, with the types of its arguments."""
    assert callee.primal is not None
    specs = [spec for spec in callee.primal.parameters if not isinstance(spec, FunctionSpec)]
    specs += [capture.type for capture in callee.captures]
    inner = [
        type if axis is None else _without(type, axis)
        for type, axis in zip(types, callee.along, strict=True)
    ]
    # a struct of other shapes has another name
    return callee.primal, tuple(
        type_of(spec, _shapes(type)) for spec, type in zip(specs, inner, strict=True)
    )


def _shapes(type: Type) -> list[tuple[int, ...]]:
    """The shapes of all tensors inside."""
    leaves = [leaf.type for leaf in leaves_of(type)]
    return [leaf.shape for leaf in leaves if isinstance(leaf, TensorType)]


def result_shapes(callee: BatchCallee, result: Type, extent: int) -> list[tuple[int, ...]]:
    """The shapes of all tensors in the results of `extent` elements, of which one's are in a `result`."""
    shapes: list[tuple[int, ...]] = []
    results = (
        elements(result) if len(callee.into) > 1 or isinstance(result, TupleType) else (result,)
    )
    for type, axis in zip(results, callee.into, strict=True):
        for leaf in leaves_of(with_axis(type, axis, extent, f"the result of {callee.name}")):
            assert isinstance(leaf.type, TensorType)
            shapes.append(leaf.type.shape)
    return shapes


def declaration_of(callee: BatchCallee, primal: str) -> BatchOf:
    """The declaration; where the axis leads all results, it does not say so."""
    into = callee.into if any(axis != 0 for axis in callee.into) else None
    return BatchOf(primal, callee.along, into, callee.axis, callee.location)


def _without(type: Type, axis: int) -> Type:
    """`type` without this axis in each tensor."""
    match type:
        case TensorType():
            return type.with_shape((*type.shape[:axis], *type.shape[axis + 1 :]))
        case TupleType(parts):
            return TupleType(tuple(_without(part, axis) for part in parts))
        case StructType(fields=fields):
            return StructType(type.name, tuple((n, _without(part, axis)) for n, part in fields))
        case _:
            return type
