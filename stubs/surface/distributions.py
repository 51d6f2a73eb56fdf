"""Samples of distributions, in the submodule `nnkit.random`, and `dropout`."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    COMMON_FIRST,
    MAX_LISTED,
    MAX_RANK,
    any_axis,
    define,
    plain,
    shape_of,
    tensor,
    without,
)
from .sampling import KEYS, draws


def distributions() -> Iterator[str]:
    for name in ("gumbel", "exponential", "laplace", "logistic", "cauchy"):
        yield from define(name, draws(""))
    yield from define("bernoulli", _bernoulli())
    yield from define("randint", _randint())
    yield from define("categorical", _categorical())
    yield from define("truncated_normal", _truncated())
    yield from define("permutation", _permutation())
    yield from define("choice", _choice())


def dropout() -> Iterator[str]:
    """A concrete tensor with a concrete key gives a concrete one."""
    yield from define(
        "dropout",
        [
            "(x: Rep[FT], rate: float | Rep[Tensor0D[Any]], key: Rep[Tensor0D[i64]] | Tensor0D[i64]) -> Rep[FT]",
            "(x: FT, rate: float, key: Tensor0D[i64]) -> FT",
        ],
    )


def _bernoulli() -> Iterator[str]:
    for wrap in KEYS:
        key = f"key: {wrap.format('Tensor0D[i64]')}"
        yield f"({key}, p: float = 0.5) -> {wrap.format(plain(0, 'boolean'))}"
        for r in COMMON_FIRST:
            result = wrap.format(plain(r, "boolean"))
            yield f"({key}, p: float, shape: {shape_of(r)}) -> {result}"
            yield f"({key}, *, shape: {shape_of(r)}) -> {result}"
            likely = wrap.format(tensor(r, None, "F"))
            yield f"({key}, p: {likely}) -> {wrap.format(tensor(r, None, 'boolean'))}"
            for low in range(r + 1) if r <= MAX_LISTED else (0, r):
                given = wrap.format(plain(low, "F"))
                yield f"({key}, p: {given}, shape: {shape_of(r)}) -> {result}"


def _randint() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        bound = f"int | {wrap.format('Tensor0D[Any]')}"
        for r in COMMON_FIRST:
            given = f"(key: {key}, shape: {shape_of(r)}, minval: {bound}, maxval: {bound}"
            yield f"{given}, dtype: type[Z]) -> {wrap.format(plain(r, 'Z'))}"
            yield f"{given}) -> {wrap.format(plain(r, 'i64'))}"


def _categorical() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        for r in COMMON_FIRST[:-1]:
            for axis in range(r):
                logits = wrap.format(tensor(r, None, "F"))
                at = f"Literal[{axis}, {axis - r}]{' = -1' if axis == r - 1 else ''}"
                yield (
                    f"(key: {key}, logits: {logits}, axis: {at})"
                    f" -> {wrap.format(without(r, axis, dtype='i64'))}"
                )
            for drawn in range(r - 1, MAX_LISTED):
                logits = wrap.format(plain(r, "F"))
                given, shape = (
                    f"(key: {key}, logits: {logits}, axis: {any_axis(r)}",
                    shape_of(drawn),
                )
                made = wrap.format(plain(drawn, "i64"))
                yield f"{given} = -1, *, shape: {shape}) -> {made}"
                yield f"{given}, shape: {shape}) -> {made}"


def _truncated() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        numbers = f"(key: {key}, lower: float, upper: float"
        yield f"{numbers}) -> {wrap.format(plain(0, 'f32'))}"
        for r in COMMON_FIRST:
            yield f"{numbers}, shape: {shape_of(r)}, dtype: type[F]) -> {wrap.format(plain(r, 'F'))}"
            yield f"{numbers}, shape: {shape_of(r)}) -> {wrap.format(plain(r, 'f32'))}"
            bound = wrap.format(tensor(r, None, "F"))
            scalar = wrap.format("Tensor0D[F]")
            pairs = [
                (bound, bound),
                (bound, "float"),
                ("float", bound),
                (bound, scalar),
                (scalar, bound),
            ]
            for pair in pairs:
                yield f"(key: {key}, lower: {pair[0]}, upper: {pair[1]}) -> {bound}"
                for high in range(r, MAX_LISTED + 1):
                    given = [x.replace(bound, wrap.format(plain(r, "F"))) for x in pair]
                    yield (
                        f"(key: {key}, lower: {given[0]}, upper: {given[1]}, shape: {shape_of(high)})"
                        f" -> {wrap.format(plain(high, 'F'))}"
                    )


def _permutation() -> Iterator[str]:
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        yield f"(key: {key}, x: int) -> {wrap.format(plain(1, 'i64'))}"
        for r in COMMON_FIRST[:-1]:
            x = wrap.format(tensor(r))
            yield f"(key: {key}, x: {x}) -> {x}"


def _choice() -> Iterator[str]:
    """Numbers, or rows, in the axes of the shape."""
    for wrap in KEYS:
        key = wrap.format("Tensor0D[i64]")
        options = f"replace: bool = True, p: {wrap.format('Tensor1D[Any]')} | None = None"
        for r in COMMON_FIRST:
            shape = ", shape: tuple[()] = ()" if r == 0 else f", shape: {shape_of(r)}"
            yield f"(key: {key}, a: int{shape}, {options}) -> {wrap.format(plain(r, 'i64'))}"
            for s in range(1, min(MAX_RANK, MAX_RANK + 1 - r) + 1):
                rows = wrap.format(plain(s, "D"))
                result = wrap.format(plain(r + s - 1, "D"))
                yield f"(key: {key}, a: {rows}{shape}, {options}) -> {result}"
