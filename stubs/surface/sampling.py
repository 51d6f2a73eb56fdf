"""The submodule `nnkit.random`."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import RANKS, define, ints, plain, shape_of, template, tup

KEYS = ("{}", "Rep[{}]")
"""A concrete key gives concrete values, a staged one staged values."""


def sampling() -> Iterator[str]:
    yield from template("random")
    yield from define("split", _splits())
    yield from define("uniform", draws(", minval: float = 0.0, maxval: float = 1.0"))
    yield from define("normal", draws(""))


def _splits() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        yield f"(key: {key}) -> {tup([key, key])}"
        yield f"(key: {key}, num: int) -> {tup([key, '...'])}"
        for r in RANKS[1:]:
            yield f"(key: {key}, num: {ints(r)}) -> {wrap.format(plain(r, 'i64'))}"


def draws(options: str) -> Iterator[str]:
    """Of a shape, of f32 unless said otherwise."""
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        for r in RANKS:
            given = f"(key: {key}, shape: {shape_of(r)}"
            yield f"{given}, dtype: type[F]{options}) -> {wrap.format(plain(r, 'F'))}"
            default = "" if r else " = ()"
            # f32 is written out: None is no element type
            yield f"{given}{default}, *{options}) -> {wrap.format(plain(r, 'f32'))}".replace(
                ", *)", ")"
            )
