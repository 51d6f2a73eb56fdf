"""How layers are made of initial values, and what of a layer is read to apply it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from typing_extensions import TypeVar

import nnkit as nk
from nnkit import Float, Integer, Rep, Scalar, Struct, f32, i64

from ..staging.primitive import dtype_error, shape_error, staging_error
from ..staging.spec import StructSpec

Key: TypeAlias = Scalar[i64]
Maker: TypeAlias = "Callable[[Rep[Key], type[Float]], Any]"
"""Makes one field's initial value, a Rep or a list of such, of a key."""

D = TypeVar("D", bound=Float, default=f32)
"""The element type of a layer: f32 if nothing is said."""
E = TypeVar("E", bound=Float, default=f32)
"""The same of a function that makes one."""
F = TypeVar("F", bound=Float)
"""The same of a function that applies one."""
In = TypeVar("In", bound=int, default=Any)
Out = TypeVar("Out", bound=int, default=Any)
Hidden = TypeVar("Hidden", bound=int, default=Any)
Symbols = TypeVar("Symbols", bound=int, default=Any)
Width = TypeVar("Width", bound=int, default=Any)
Size = TypeVar("Size", bound=int, default=Any)
A = TypeVar("A", bound=int)
B = TypeVar("B", bound=int)
I = TypeVar("I", bound=int)  # an axis, as in i, j, k
J = TypeVar("J", bound=int)
K = TypeVar("K", bound=int)
L = TypeVar("L", bound=Integer)


def initialized(
    cls: type[Struct], key: Any, dtype: type[Float] | None, makers: Sequence[Maker]
) -> Any:
    """A struct whose fields are made of keys of their own, as one compiled function."""

    def made(key: Rep[Key]) -> Rep[Any]:
        keys = nk.random.split(key, max(1, len(makers)))
        fields = zip(nk.fields(cls), makers, keys, strict=False)
        return nk.build(cls, *(field << make(one, dtype or f32) for field, make, one in fields))

    return nk.fn(Scalar[i64])(made)(key)


def uniform(shape: Sequence[int], fan_in: int, /) -> Maker:
    """Numbers uniform between ±1/√fan_in: PyTorch's initial values of most layers, which are He's with a = √5."""
    sizes, bound = positive(shape), positive([fan_in])[0] ** -0.5
    return lambda key, dtype: nk.random.uniform(
        key, sizes, minval=-bound, maxval=bound, dtype=dtype
    )


def glorot(inputs: int, outputs: int, /) -> Maker:
    """A matrix of numbers uniform between ±√(6 / (inputs + outputs)), so that signals keep their size both ways."""
    sizes = positive([inputs, outputs])
    bound = (6.0 / sum(sizes)) ** 0.5
    return lambda key, dtype: nk.random.uniform(
        key, sizes, minval=-bound, maxval=bound, dtype=dtype
    )


def normal(shape: Sequence[int], /) -> Maker:
    """Numbers of the standard normal distribution."""
    sizes = positive(shape)
    return lambda key, dtype: nk.random.normal(key, sizes, dtype=dtype)


def constant(shape: Sequence[int], value: float, /) -> Maker:
    """One number everywhere."""
    sizes = positive(shape)
    return lambda _, dtype: nk.full(sizes, value, dtype)


def positive(shape: Sequence[int]) -> Any:
    """Raises: ShapeError for what is no size of a layer."""
    for size in shape:
        if type(size) is not int or size < 1:
            raise shape_error(f"a size of a layer is a positive int, not {size!r}")
    return tuple(shape)


def parameters(p: Any, cls: type[Struct], name: str, /) -> list[Rep[Any]]:
    """The fields of a staged layer.  Raises: StagingError, DTypeError for anything else."""
    if isinstance(p, Struct):
        raise staging_error(
            f"nn.{name} applies a layer inside a staged function, and got a concrete {type(p).__name__}",
            f"write @nk.staged above a function with a parameter Rep[{type(p).__name__}], and call that",
        )
    spec = getattr(p, "spec", None)
    if not isinstance(spec, StructSpec) or not issubclass(spec.cls, cls):
        found = f"a {spec.words}" if spec is not None else f"a {type(p).__name__}"
        raise dtype_error(
            f"nn.{name} takes a staged nn.{cls.__name__} first, not {found}",
            f"for example nn.{name}(p[Network.layer], x)",
        )
    return [p[field] for field in nk.fields(cls)]
