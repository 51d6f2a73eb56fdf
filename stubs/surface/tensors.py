"""Type variables, element types, the tensor classes."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    DTYPES,
    MAX_ARITY,
    MAX_RANK,
    MAX_SELECTED,
    PYTHON,
    RANKS,
    REFUSED,
    commas,
    define,
    dims,
    ints,
    method,
    plain,
    template,
    tensor,
    title,
    tup,
)

PARAMETERS = ["I_", "J_", "K_", "L_"]
"""The dimensions as parameters of the tensor classes, where they have a default."""


def header() -> Iterator[str]:
    yield from template("prelude")
    for d in "IJKLPQUV":
        yield f'{d} = TypeVar("{d}", bound=int)'
    for d in PARAMETERS:
        yield f'{d} = TypeVar("{d}", bound=int, default=Any)'
    for name, (_, scalar) in DTYPES.items():
        if scalar:
            yield f'np_{name} = TypeVar("np_{name}", bound=np.{scalar})'
    for i in range(MAX_ARITY):
        yield f'A{i} = TypeVar("A{i}")'
    for i in range(MAX_SELECTED):
        yield f'C{i} = TypeVar("C{i}", contravariant=True)'
    for i in range(MAX_RANK):
        yield f'R{i} = TypeVar("R{i}")'
        yield f'D{i} = TypeVar("D{i}", bound=AnyTensor[Float] | Struct)   # differentiable'


def dtypes() -> Iterator[str]:
    yield title("element types and dimensions")
    yield from template("dtypes")
    for name, (family, scalar) in DTYPES.items():
        yield f"class {name}({family}{f', Numpy[np.{scalar}]' if scalar else ''}): ..."


def refusals() -> Iterator[str]:
    yield title("what messages speak of; nothing is one of these")
    for name in REFUSED:
        yield f"class {name}: ..."


def tensors() -> Iterator[str]:
    yield title("tensors")
    yield from template("tensors")
    for rank in RANKS:
        yield from _tensor_class(rank)
    yield from define(
        "named",
        [
            f"(x: {plain(r)}, {commas(f'd{i}: type[{d}]' for i, d in enumerate(dims(r)))}, /)"
            f" -> {tensor(r)}"
            for r in RANKS[1:]
        ],
    )


def structs() -> Iterator[str]:
    yield title("structs")
    yield from template("structs")


def errors() -> Iterator[str]:
    yield title("errors")
    yield from template("errors")


def _tensor_class(rank: int) -> Iterator[str]:
    extents = PARAMETERS[:rank]
    base = "Batched" if rank else "Ranked"
    parameters = commas(["D", *extents])
    yield f"class Tensor{rank}D({base}[{_related(rank)}], Generic[{parameters}]):"
    array = f"np.ndarray[{ints(rank)}, np.dtype[{{}}]]"
    yield from method("__init__", _constructors(rank, array))
    yield "    @property"
    yield f"    def shape(self) -> {tup(extents) if rank else 'tuple[()]'}: ..."
    yield from method("numpy", [f"(self: AnyTensor[Numpy[NP]]) -> {array.format('NP')}"])
    if rank == 0:
        for python in ("float", "int", "bool"):
            yield from method(f"__{python}__", [f"(self) -> {python}"])


def _related(rank: int) -> str:
    """The associated types: one rank up, the mask, the row."""
    extents = PARAMETERS[:rank]
    up = tensor(rank + 1, ["Any", *extents]) if rank < MAX_RANK else "RankTooHigh"
    row = [tensor(rank - 1, extents[1:])] if rank else []
    return commas(["D", up, tensor(rank, extents, "boolean"), *row])


def _constructors(rank: int, array: str) -> Iterator[str]:
    """From an array of a known element type; from any array, or nested lists, and the element type.

    An array of element type Any, as `np.array([1.0])` is for checkers, fits every overload: the first
    one, which only structured arrays fit besides, makes a tensor that no function takes.
    """
    unknown = array.format("np_unknown")
    yield f"(self: {plain(rank, 'UnknownDType')}, x: {unknown}, /) -> None"
    for name, (_, scalar) in DTYPES.items():
        if scalar:
            yield f"(self: {plain(rank, name)}, x: {array.format('np_' + name)}, /) -> None"
    yield f"(self: {plain(rank, 'E')}, x: {array.format('Any')}, dtype: type[E], /) -> None"
    for number, variable in PYTHON.items():
        data = number
        for _ in range(rank):
            data = f"Sequence[{data}]"
        yield f"(self: {plain(rank, variable)}, x: {data}, dtype: type[{variable}], /) -> None"
