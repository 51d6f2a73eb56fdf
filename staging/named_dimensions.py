"""Named dimensions: within a call of a staged function each name has one size.

Types of staging know neither names nor sizes: the names stand in annotations, and are kept with the function.  When it
is specialised, the first extent that a name meets is its size; another one is an error that names both places.  Of a
function that is called inside, or differentiated, the names are those of that call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ..core.errors import ShapeError
from ..core.lazy_dataclass import dataclass
from ..core.types import StructType, TensorType, TupleType, Type


@dataclass(frozen=True)
class NamedTensor:
    """A tensor that an annotation declares: where it is, and the name of each axis (None for one without)."""

    place: str
    names: tuple[type | None, ...]


NamedTensors: TypeAlias = tuple[NamedTensor, ...] | None
"""The tensors in a value, from left to right; None where the annotation does not say which."""


@dataclass(frozen=True)
class _Size:
    extent: int
    place: str


@dataclass(frozen=True)
class NamedDimensions:
    """Those of the parameters and the result of one function."""

    parameters: tuple[NamedTensors, ...]
    result: NamedTensors

    def __bool__(self) -> bool:
        each = (*self.parameters, self.result)
        return any(any(tensor.names) for one in each if one for tensor in one)

    def check(self, arguments: Sequence[Type | None], result: Type | None, name: str) -> None:
        """Check the types of a call of the function `name`.

        None stands for an argument that is a function, and for a result that is not known yet.

        Raises: ShapeError when a name has two sizes.
        """
        sizes: dict[type, _Size] = {}
        given = zip((*self.parameters, self.result), (*arguments, result), strict=True)
        for tensors, type in given:
            found = [] if type is None else [*tensors_of(type)]
            if tensors is None or len(tensors) != len(found):
                continue
            for tensor, each in zip(tensors, found, strict=True):
                _check(sizes, tensor, each.shape, name)

    def result_shapes(self, arguments: Sequence[Type | None]) -> list[tuple[int, ...]] | None:
        """The shapes of the tensors in the result, where each axis has a name that an argument has, too."""
        sizes: dict[type | None, int] = {}
        for tensors, type in zip(self.parameters, arguments, strict=True):
            found = [] if type is None else [*tensors_of(type)]
            for tensor, each in zip(tensors or (), found, strict=False):
                sizes.update(zip(tensor.names, each.shape, strict=False))
        sizes.pop(None, None)
        names = [tensor.names for tensor in self.result or ()]
        if self.result is None or not all(name in sizes for one in names for name in one):
            return None
        return [tuple(sizes[name] for name in one) for one in names]


def _check(sizes: dict[type, _Size], tensor: NamedTensor, shape: Sequence[int], of: str) -> None:
    for name, extent in zip(tensor.names, shape, strict=False):
        if name is None:
            continue
        known = sizes.setdefault(name, _Size(extent, tensor.place))
        if known.extent != extent:
            places = f"{known.extent} in {known.place} and {extent} in {tensor.place}"
            if known.place == tensor.place:
                places = f"{known.extent} and {extent} in {tensor.place}"
            raise ShapeError(
                f"{name.__name__} is {places} of {of}: a named dimension has one size in a call"
            )


def tensors_of(type: Type) -> Iterator[TensorType]:
    """The tensors in a value of the type, from left to right."""
    match type:
        case TensorType():
            yield type
        case TupleType(elements):
            for element in elements:
                yield from tensors_of(element)
        case StructType(fields=fields):
            for _, element in fields:
                yield from tensors_of(element)
        case _:
            pass
