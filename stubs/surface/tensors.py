"""Type variables, element types, the tensor classes."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    DECORATE,
    DIMENSIONS,
    DTYPES,
    MAX_ARITY,
    MAX_PARAMETERS,
    MAX_RANK,
    OTHER_DIMENSIONS,
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

COPY = ", *, copy: bool | None = None"
PARAMETERS = [f"{d}_" for d in DIMENSIONS]
"""The dimensions as parameters of the tensor classes, where they have a default."""


def header() -> Iterator[str]:
    yield from template("prelude")
    for d in DIMENSIONS + OTHER_DIMENSIONS:
        yield f'{d} = TypeVar("{d}", bound=int)'
    for d in PARAMETERS:
        yield f'{d} = TypeVar("{d}", bound=int, default=Unnamed.Any)'
    for name, (_, scalar) in DTYPES.items():
        if scalar:
            yield f'np_{name} = TypeVar("np_{name}", bound=np.{scalar})'
    for i in range(MAX_ARITY):
        yield f'A{i} = TypeVar("A{i}")'
    for i in range(MAX_PARAMETERS):
        yield f'C{i} = TypeVar("C{i}", contravariant=True)'
    for i in range(MAX_RANK):
        yield f'R{i} = TypeVar("R{i}")'
        one = "AnyTensor[Float] | Struct"
        yield f'D{i} = TypeVar("D{i}", bound={one} | tuple[{one}, ...])   # differentiable'


def dtypes() -> Iterator[str]:
    yield title("element types and dimensions")
    yield from template("dtypes")
    for name, (family, scalar) in DTYPES.items():
        if scalar:
            yield f"class {name}({family}, Numpy[np.{scalar}]):"
            yield f"    dtype: ClassVar[np.dtype[np.{scalar}]]"
        else:
            yield f"class {name}({family}): ..."


def refusals() -> Iterator[str]:
    yield title("what messages speak of; nothing is one of these")
    for name in REFUSED:
        yield f"class {name}{'(DType)' if name == DECORATE else ''}: ..."


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
    beside = " | ".join(tensor(r, extents[rank - r :]) for r in range(rank, -1, -1))
    yield (
        f"class Tensor{rank}D({base}[{_related(rank)}], Beside[D, {beside}], Generic[{parameters}]):"
    )
    array = f"np.ndarray[{ints(rank)}, np.dtype[{{}}]]"
    yield from method("__init__", _constructors(rank, array))
    yield "    @property"
    yield f"    def shape(self) -> {tup(extents) if rank else 'tuple[()]'}: ..."
    yield from method("numpy", [f"(self: AnyTensor[Numpy[NP]]) -> {array.format('NP')}"])
    yield from _python_face(rank)
    if rank == 0:
        yield from method(
            "__index__", ["(self: Tensor0D[i8] | Tensor0D[i32] | Tensor0D[i64]) -> int"]
        )
        for python in ("float", "int", "bool"):
            yield from method(f"__{python}__", [f"(self) -> {python}"])


OPERATORS = "add sub mul truediv floordiv mod pow".split()
COMPARISONS = "lt le gt ge eq ne".split()


def _python_face(rank: int) -> Iterator[str]:
    """What Python's own values have: elements, numbers, operators."""
    own = tensor(rank, PARAMETERS[:rank])
    nested = "Any"
    for _ in range(rank):
        nested = f"list[{nested}]"
    yield from method("tolist", [f"(self) -> {nested}"])
    yield from method(
        "cast", [f"(self, dtype: type[E], /) -> {tensor(rank, PARAMETERS[:rank], 'E')}"]
    )
    if rank:
        row = tensor(rank - 1, PARAMETERS[1:rank])
        yield from method(
            "__getitem__", [f"(self, i: int, /) -> {row}", "(self, i: Any, /) -> Any"]
        )
        yield from method("__iter__", [f"(self) -> Iterator[{row}]"])
        yield from method("__len__", ["(self) -> int"])
    smaller = [plain(other) for other in range(rank)]
    operand = " | ".join([own, *smaller, "float"])
    for operator in OPERATORS:
        yield from method(f"__{operator}__", [f"(self, o: {operand}, /) -> {own}"])
        yield from method(
            f"__r{operator}__", [f"(self, o: {' | '.join([*smaller, 'float'])}, /) -> {own}"]
        )
    mask = tensor(rank, PARAMETERS[:rank], "boolean")
    for operator in COMPARISONS:
        note = "  # type: ignore[override]" if operator in ("eq", "ne") else ""
        yield from method(f"__{operator}__", [f"(self, o: {operand}, /) -> {mask}"], note=note)
    for operator in ("and", "or", "xor"):
        yield from method(f"__{operator}__", [f"(self: {mask}, o: {mask}, /) -> {mask}"])
    yield from method("__matmul__", [f"(self, o: {o}, /) -> {made}" for o, made in _products(rank)])


def _products(rank: int) -> Iterator[tuple[str, str]]:
    """The right operands of a product, and what it makes."""
    for other in RANKS[1:] if rank else ():
        made = rank + other - 2 if 1 in (rank, other) else max(rank, other)
        yield plain(other), plain(made)


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
    yield f"(self: {plain(rank, 'UnknownDType')}, x: {unknown}, /{COPY}) -> None"
    # where nothing fits, mypy complains about this one
    any_array, refused = array.format("Any"), "TheElementTypeOfTheArray"
    yield f"(self: {plain(rank, 'UnknownDType')}, x: {any_array}, dtype: type[{refused}], /{COPY}) -> None"
    for name, (_, scalar) in DTYPES.items():
        if scalar:
            given = array.format("np_" + name)
            yield f"(self: {plain(rank, name)}, x: {given}, dtype: type[{name}] = ..., /{COPY}) -> None"
    bits = array.format("np.uint16")
    yield f"(self: {plain(rank, 'bf16')}, x: {bits}, dtype: type[bf16], /{COPY}) -> None"
    yield f"(self: {plain(rank, 'E')}, x: {unknown}, dtype: type[E], /{COPY}) -> None"
    # NumPy's stubs have no shape for what operators make, and a wrong element type: float64 for float32 / int
    unshaped = "np.ndarray[SHAPELESS, np.dtype[Any]]"
    yield f"(self: {plain(rank, 'E')}, x: {unshaped}, dtype: type[E], /{COPY}) -> None"
    for number, variable in PYTHON.items():
        data = number
        for _ in range(rank):
            data = f"Sequence[{data}]"
        yield f"(self: {plain(rank, variable)}, x: {data}, dtype: type[{variable}], /) -> None"
    # pyright complains about the last one of those with the fewest misfits
    refused = "ThatOfTheArrayOrCastTheArrayByAstype"
    yield f"(self: {plain(rank, 'UnknownDType')}, x: {any_array}, dtype: type[{refused}], /{COPY}) -> None"
