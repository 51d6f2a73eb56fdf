"""Initial values of a whole struct from one key and the sizes of its named dimensions."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_origin

from typing_extensions import TypeVar

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Struct, i64

from ..generic_structs import Known, substituted, variables_of
from ..staging.primitive import shape_error, staging_error
from ..tensors import RANKED
from .parameters import Key, constant, uniform

S = TypeVar("S", bound=Struct)


def init(cls: type[S], key: Key, /, **sizes: int) -> S:
    """A struct of layers, tensors and structs of such, with initial values, all from one key.

    The sizes are those of the dimensions that the fields name, each by its name; `Literal[3]` in the place of a
    dimension is a size, too.  A layer gets the values of its own `init`; a tensor of rank 2 or more numbers uniform
    between ±1/√n, where n is the product of all its extents but the last; vectors and scalars are zeros.

    Raises: ShapeError for a dimension without a size, and for a size that no field names.
    """
    making = _Making(sizes)
    name = (get_origin(cls) or cls).__name__

    def made(key: Rep[Key]) -> Any:
        return making.value(cls, key, name)

    struct: S = nk.fn(Scalar[i64])(made)(key)
    if unused := [name for name in sizes if name not in making.used]:
        raise shape_error(
            f"no field of {name} has a dimension {unused[0]}",
            f"those that have a size are {', '.join(sorted(making.used)) or 'none'}",
        )
    return struct


class _Making:
    """Makes values in the sizes of dimensions."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.used = set[str]()

    def value(self, held: Any, key: Rep[Key], place: str) -> Any:
        """Of what is declared: a tensor, a struct, or a tuple of such."""
        origin: Any = get_origin(held) or held
        arguments = get_args(held)
        if origin in RANKED:
            return self.tensor(origin.rank, arguments, key, place)
        if origin is tuple and ... not in arguments:
            keys = nk.random.split(key, max(1, len(arguments)))
            parts = enumerate(zip(arguments, keys, strict=False))
            return [self.value(one, own, f"{place}[{k}]") for k, (one, own) in parts]
        if origin in (list, tuple):
            raise staging_error(
                f"{place} has any length, and nn.init cannot know which",
                "make what it holds with init(key, ...) of each, and the struct with its class",
            )
        known = variables_of(held)
        if len(known) > 1 and hasattr(origin, "init"):
            dtype, *dimensions = known.values()
            sizes = [self.size(one, place) for one in dimensions]
            return origin.init(key, *sizes, dtype=dtype)
        return self.struct(origin, known, key, place)

    def struct(self, cls: type[Struct], known: Known, key: Rep[Key], place: str) -> Rep[Any]:
        """Of each field, from a key of its own."""
        fields = nk.fields(cls)
        keys = nk.random.split(key, max(1, len(fields)))
        made: list[Any] = []
        for field, own in zip(fields, keys, strict=False):
            held = substituted(getattr(field, "type"), known)  # noqa: B009  # no name of the public language
            made.append(field << self.value(held, own, f"{place}.{field.name}"))
        return nk.build(cls, *made)

    def tensor(self, rank: int, declared: tuple[Any, ...], key: Rep[Key], place: str) -> Any:
        """Numbers around 0, or zeros."""
        dtype, *dimensions = declared
        dimensions += [Any] * (rank - len(dimensions))
        shape = [self.size(one, place) for one in dimensions]
        if rank < 2:
            return constant(shape, 0.0)(key, dtype)
        return uniform(shape, math.prod(shape[:-1]))(key, dtype)

    def size(self, dimension: Any, place: str) -> int:
        """Raises: ShapeError where there is none."""
        if get_origin(dimension) is Literal:
            found: int = get_args(dimension)[0]
            return found
        if not (isinstance(dimension, type) and issubclass(dimension, Dim)):
            raise shape_error(
                f"{place} has a dimension without a name, and so without a size",
                "declare it, as in Field[nn.Linear[f32, Pixel, Hidden]], or make the layer with its init(key, ...)",
            )
        name = dimension.__name__
        if name not in self.sizes:
            raise shape_error(
                f"{name} has no size: it is a dimension of {place}",
                f"nn.init(..., key, {name}=...)",
            )
        self.used.add(name)
        return self.sizes[name]
