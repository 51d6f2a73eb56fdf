"""Sorts, quantiles, reads and writes along an axis, segments, and parts of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .expressions import (
    COMMON_FIRST,
    MAX_LISTED,
    MAX_RANK,
    RANKS,
    any_axis,
    axis_literal,
    define_for_tensors,
    dims,
    plain,
    rep,
    tensor,
    title,
    tup,
)

_ORDER = "*, descending: bool = False"
_SUMS = "mode: SumMode = 'error'"
_PLACES = "*, size: int, fill_value: int | Rep[Tensor0D[Z]] | None = None"


def sorting() -> Iterator[str]:
    yield title("sorting, segments, diagonals")
    for name in ("sort", "argsort"):
        yield from define_for_tensors(name, sorts(name))
    yield from define_for_tensors("top_k", _top_k())
    yield from define_for_tensors("nonzero", indices("a"))
    yield f"def flatnonzero(a: View[AnyTensor[Any]], {_PLACES}) -> Rep[Tensor1D[i64]]: ..."
    yield f"def argwhere(a: View[Batched[Any, Any, Any, Any]], {_PLACES}) -> Rep[Tensor2D[i64]]: ..."
    yield from define_for_tensors("searchsorted", searches())
    yield "median: ReduceFloat"
    for name in ("quantile", "percentile"):
        yield from define_for_tensors(name, _quantile())
    yield from _along_axis()
    yield from _segments()
    yield from _diagonals()


def sorts(name: str) -> Iterator[str]:
    """Of `sort` and `argsort`."""
    dtype = "D" if name == "sort" else "i64"
    for r in COMMON_FIRST:
        yield f"(a: {rep(plain(r))}, axis: None, {_ORDER}) -> {rep(plain(1, dtype))}"
    for r in COMMON_FIRST[:-1]:
        yield f"(a: {rep(tensor(r))}, axis: {any_axis(r)} = -1, {_ORDER}) -> {rep(tensor(r, None, dtype))}"


def indices(x: str, slash: str = "") -> Iterator[str]:
    """A vector for each axis."""
    for r in COMMON_FIRST[:-1]:
        yield f"({x}: {rep(plain(r))}{slash}, {_PLACES}) -> {tup(['Rep[Tensor1D[i64]]'] * r)}"


def _top_k() -> Iterator[str]:
    """The axis loses its name."""
    for r in COMMON_FIRST[:-1]:
        for axis in range(r):
            kept = ["Any" if k == axis else d for k, d in enumerate(dims(r))]
            pair = tup([rep(tensor(r, kept, dtype)) for dtype in ("D", "i64")])
            default = " = -1" if axis == r - 1 else ""
            yield f"(operand: {rep(tensor(r))}, k: int, axis: {axis_literal(axis, r)}{default}) -> {pair}"


def searches() -> Iterator[str]:
    """Of `searchsorted`."""
    side = "side: Literal['left', 'right'] = 'left'"
    found = [
        f"(a: {rep(plain(1, 'N'))}, v: {rep(tensor(r, None, 'N'))}, {side})"
        f" -> {rep(tensor(r, None, 'i64'))}"
        for r in COMMON_FIRST
    ]
    numbers = [
        f"(a: {rep(plain(1, dtype))}, v: {number}, {side}) -> {rep(tensor(0, None, 'i64'))}"
        for number, dtype in (("float", "F"), ("int", "Z"))
    ]
    yield from [*numbers, *found]


def _quantile() -> Iterator[str]:
    """The axis of q comes first; several axes are a tuple of them."""
    methods = "Literal['linear', 'lower', 'higher', 'midpoint', 'nearest']"
    for more, part in ((0, "float | Rep[Tensor0D[F]]"), (1, "Sequence[float] | Rep[Tensor1D[F]]")):
        for r in RANKS:
            for gone in range(r + 1):
                if r - gone + more > MAX_RANK or (r > MAX_LISTED and gone not in (1, r)):
                    continue
                for kept, keep in ((False, "Literal[False] = False"), (True, "Literal[True]")):
                    axis = "None = None" if gone == r else ""
                    choices = [axis] if axis else []
                    choices += _axes(r, gone)
                    rank = (r if kept else r - gone) + more
                    if rank > MAX_RANK:
                        continue
                    for choice in choices:
                        yield (
                            f"(a: {rep(plain(r, 'F'))}, q: {part}, axis: {choice}, *,"
                            f" method: {methods} = 'linear', keepdims: {keep}) -> {rep(plain(rank, 'F'))}"
                        )


def _axes(rank: int, gone: int) -> list[str]:
    if gone == 0:
        return []
    if gone == 1:
        return [any_axis(rank)]
    several = itertools.combinations(range(rank), gone)
    return [" | ".join(tup([axis_literal(axis, rank) for axis in axes]) for axes in several)]


def _along_axis() -> Iterator[str]:
    mode = "*, mode: IndexMode = 'error', fill_value: Filler = None"
    taken: list[str] = []
    for r, axis in [(rank, axis) for rank in COMMON_FIRST[:-1] for axis in reversed(range(rank))]:
        along = ["Any" if i == axis else d for i, d in enumerate(dims(r))]
        made = [*dims(r)[:axis], "P", *dims(r)[axis + 1 :]]
        looked_up = tensor(r, ["P" if i == axis else "Any" for i in range(r)], "Z")
        default = " = -1" if axis == r - 1 else ""
        taken.append(
            f"(arr: {rep(tensor(r, along))}, indices: {rep(looked_up)},"
            f" axis: {axis_literal(axis, r)}{default}, {mode}) -> {rep(tensor(r, made))}"
        )
    yield from define_for_tensors("take_along_axis", taken)
    yield from define_for_tensors("put_along_axis", writes("arr", "*, mode: WriteMode = 'error'"))
    yield from define_for_tensors("scatter", scatters("x"))


def writes(x: str, options: str, families: str = "FZB") -> Iterator[str]:
    """Of `put_along_axis` and `scatter`: the values are of the element type, and broadcast to the indices."""
    numbers = {"F": "float", "Z": "int", "B": "bool"}
    places = "View[AnyTensor[Integer]] | Sequence[int] | Sequence[Sequence[int]]"
    for r in COMMON_FIRST[:-1]:
        for dtype in families:
            given = " | ".join([*(rep(plain(s, dtype)) for s in range(r + 1)), numbers[dtype]])
            yield (
                f"({x}: {rep(tensor(r, None, dtype))}, indices: {places}, values: {given},"
                f" axis: {any_axis(r)} = -1, {options}) -> {rep(tensor(r, None, dtype))}"
            )


def scatters(x: str) -> Iterator[str]:
    """Of `scatter`: truth values are set, and numbers may be joined."""
    for families, reduce in (
        ("FZ", "Literal['set', 'add', 'multiply', 'min', 'max']"),
        ("B", "Literal['set']"),
    ):
        yield from writes(x, f"*, reduce: {reduce} = 'set', mode: WriteMode = 'error'", families)


def _segments() -> Iterator[str]:
    numbers = rep(plain(1, "Z"))
    # `minlength` as NumPy, `length` as JAX calls it: one of them
    counts, sums = "Rep[Tensor1D[i64]]", rep(plain(1, "N"))
    forms = [
        (f"weights: {sums}, minlength: int, *", sums),
        (f"weights: {sums}, *, length: int", sums),
        ("weights: None, minlength: int, *", counts),
        ("weights: None = None, *, minlength: int", counts),
        ("weights: None = None, *, length: int", counts),
    ]
    signatures = [f"(x: {numbers}, {form}, {_SUMS}) -> {made}" for form, made in forms]
    yield from define_for_tensors("bincount", signatures)
    for name in ("sum", "max", "min", "prod", "mean"):
        dtype = "F" if name == "mean" else "N"
        yield from define_for_tensors(
            f"segment_{name}",
            [
                f"(data: {rep(tensor(r, None, dtype))}, segment_ids: {rep(tensor(1, ['I'], 'Z'))},"
                f" num_segments: int, *, {_SUMS}) -> {rep(tensor(r, ['Any', *dims(r)[1:]], dtype))}"
                for r in COMMON_FIRST[:-1]
            ],
        )


def _diagonals() -> Iterator[str]:
    matrices = [r for r in COMMON_FIRST if r >= 2]
    for name in ("tril", "triu"):
        yield from define_for_tensors(
            name, [f"(m: {rep(tensor(r))}, k: int = 0) -> {rep(tensor(r))}" for r in matrices]
        )
    yield from define_for_tensors("tri", square_or_not())
    yield from define_for_tensors(
        "diag",
        [
            f"(v: {rep(plain(2))}, k: int = 0) -> {rep(plain(1))}",
            f"(v: {rep(plain(1))}, k: int = 0) -> {rep(plain(2))}",
        ],
    )
    for name in ("diagonal", "trace"):
        yield from define_for_tensors(name, pairs(name))
    yield from define_for_tensors(
        "diag_indices",
        [
            f"(n: int, ndim: Literal[{count}]{' = 2' if count == 2 else ''})"
            f" -> {tup(['Rep[Tensor1D[i64]]'] * count)}"
            for count in range(2, MAX_RANK + 1)
        ],
    )


def square_or_not() -> Iterator[str]:
    """Of `tri` and `eye`: f32 by default."""
    yield "(N: int, M: int | None = None, k: int = 0, dtype: None = None) -> Rep[Tensor2D[f32]]"
    yield "(N: int, M: int | None, k: int, dtype: type[E]) -> Rep[Tensor2D[E]]"
    yield "(N: int, M: int | None = None, k: int = 0, *, dtype: type[E]) -> Rep[Tensor2D[E]]"


def pairs(name: str) -> Iterator[str]:
    """Of `diagonal` and `trace`: the first two axes keep the names of the others."""
    lost, dtype = (1, "D") if name == "diagonal" else (2, "N")
    for r in RANKS[2:]:
        found = rep(tensor(r - lost, [*dims(r)[2:], *["Any"] * (2 - lost)], dtype))
        start = f"(a: {rep(tensor(r, None, dtype))}, offset: int = 0"
        yield f"{start}, axis1: Literal[0] = 0, axis2: Literal[1] = 1) -> {found}"
        axes = f"axis1: {any_axis(r)}, axis2: {any_axis(r)}"
        x, result = rep(plain(r, dtype)), rep(plain(r - lost, dtype))
        yield f"(a: {x}, offset: int, {axes}) -> {result}"
        yield f"(a: {x}, offset: int = 0, *, {axes}) -> {result}"
