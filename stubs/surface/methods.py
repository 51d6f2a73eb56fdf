"""The methods of a Rep that are functions too: their signatures with the tensor as `self`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .everyday import bounded, repeats, swaps
from .expressions import COMMON_FIRST, RANKS, any_axis, dims, method, rep, tensor
from .functions import take
from .sorting import indices, pairs, scatters, searches, sorts


def methods() -> Iterator[str]:
    tables: dict[str, Iterable[str]] = {
        "sort": sorts("sort"),
        "argsort": sorts("argsort"),
        "searchsorted": searches(),
        "nonzero": indices("a"),
        "round": ["(a: Rep[NT], decimals: int = 0) -> Rep[NT]"],
        "clip": bounded("min", "max"),
        "cumsum": running(),
        "cumprod": running(),
        "take": take(),
        "scatter": scatters("a"),
        "repeat": repeats(),
        "diagonal": pairs("diagonal"),
        "trace": pairs("trace"),
        "swapaxes": swaps("axis1: int, axis2: int"),
    }
    for name, signatures in tables.items():
        yield from method(name, (_of_self(signature) for signature in signatures))
    yield from method("flatten", ["(self: View[AnyTensor[D]]) -> Rep[Tensor1D[D]]"])
    yield "    mT: MatrixTranspose"


def running() -> Iterator[str]:
    """Of running reductions."""
    for r in COMMON_FIRST[:-1]:
        x = rep(tensor(r, None, "N"))
        yield f"(a: {x}, axis: {any_axis(r)}) -> {x}"
    yield "(a: View[AnyTensor[N]], axis: None = None) -> Rep[Tensor1D[N]]"


def transposed_matrices() -> Iterator[str]:
    """What `x.mT` is, by a descriptor: properties have no overloads."""
    yield "class MatrixTranspose:"
    yield from method(
        "__get__",
        [
            f"(self, x: {rep(tensor(r))}, owner: Any = None, /)"
            f" -> {rep(tensor(r, [*dims(r)[:-2], *dims(r)[-2:][::-1]]))}"
            for r in RANKS[2:]
        ],
    )


def _of_self(signature: str) -> str:
    """`(a: Rep[X], axis: int)` as a method's."""
    first, _, rest = signature.partition(": ")
    assert first == "(a", signature
    return f"(self: {rest}"
