"""The submodule `nnkit.random`."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import RANKS, define, ints, plain, template, tup

KEYS = ("{}", "Rep[{}]")
"""A concrete key gives concrete values, a staged one staged values."""


def sampling() -> Iterator[str]:
    yield from template("random")
    yield from define("split", _splits())
    yield from define("uniform", draws("low: float = 0.0, high: float = 1.0, "))
    yield from define("normal", draws(""))


def _splits() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        yield f"(key: {key}, /) -> {tup([key, key])}"
        yield f"(key: {key}, /, count: int) -> {tup([key, '...'])}"
        for r in RANKS[1:]:
            yield f"(key: {key}, /, count: {ints(r)}) -> {wrap.format(plain(r, 'i64'))}"


def draws(options: str) -> Iterator[str]:
    """Of a shape, of f32 unless said otherwise."""
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        for r in RANKS:
            given = f"(key: {key}, shape: {ints(r)}, /, *, {options}"
            yield f"{given}dtype: type[F]) -> {wrap.format(plain(r, 'F'))}"
            default = given.removesuffix(", *, " if not options else ", ")
            yield f"{default}) -> {wrap.format(plain(r, 'f32'))}"
