"""The submodule `nnkit.linalg`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .expressions import (
    COMMON_FIRST,
    RANKS,
    any_axis,
    commas,
    define,
    dims,
    rep,
    template,
    tensor,
    tup,
    without,
)

MATRICES = RANKS[2:]
"""The ranks of matrices and of batches of them."""


def linear_algebra() -> Iterator[str]:
    yield from template("linalg")
    for name, options in {
        "inv": "",
        "cholesky": ", *, upper: bool = False",
        "expm": "",
        "matrix_power": None,
    }.items():
        given = ", n: int" if options is None else f"{', /' * (name == 'cholesky')}{options}"
        a = "A" if name == "expm" else "a"
        yield from define(name, [f"({a}: {of(r)}{given}) -> {of(r)}" for r in MATRICES])
    yield from define("det", [f"(a: {of(r)}) -> {last(r, 2)}" for r in MATRICES])
    pairs = [f"(a: {of(r)}) -> SlogdetResult[{last(r, 2)}]" for r in MATRICES]
    yield from define("slogdet", pairs)
    yield from define("solve", _solves(""))
    options = ", *, lower: bool = False, trans: Literal[0, 1] = 0, unit_diagonal: bool = False"
    yield from define("solve_triangular", _solves(options))
    yield from define("lstsq", _least_squares())
    yield from define("qr", _qr())
    triangle = "UPLO: str = ..."  # a literal "L" would be taken for the variable
    pairs = [f"(a: {of(r)}, {triangle}) -> EighResult[{last(r, 1)}, {of(r)}]" for r in MATRICES]
    yield from define("eigh", pairs)
    yield from define("eigvalsh", [f"(a: {of(r)}, {triangle}) -> {last(r, 1)}" for r in MATRICES])
    yield from define("svd", _svd())
    triangular = list(_solves(", *, upper: bool = False"))
    yield from define("cholesky_solve", [_sides_first(signature) for signature in triangular])
    condition = 'p: float | Literal["fro", "nuc"] | None = None'
    yield from define("cond", [f"(x: {of(r)}, {condition}) -> {last(r, 2)}" for r in MATRICES])
    values = [f"(x: {of(r)}, /) -> {rep(tensor(r - 1, [*lead(r), 'Any'], 'F'))}" for r in MATRICES]
    yield from define("svdvals", values)
    option = "rcond: float | None = None"
    inverse = [f"(a: {of(r)}, {option}) -> {of(r, *flipped(r))}" for r in MATRICES]
    yield from define("pinv", inverse)
    ranks = [f"(A: {of(r)}, tol: float | None = None) -> {last(r, 2, 'i64')}" for r in MATRICES]
    yield from define("matrix_rank", ranks)
    yield from define("norm", _norm())


def of(rank: int, *extents: str) -> str:
    """A staged tensor of f32 or f64 with these dimensions, by default I, J, K, L."""
    return rep(tensor(rank, extents or None, "F"))


def lead(rank: int) -> list[str]:
    """The dimensions before those of a matrix."""
    return dims(rank)[:-2]


def flipped(rank: int) -> list[str]:
    *first, row, column = dims(rank)
    return [*first, column, row]


def last(rank: int, lost: int, dtype: str = "F") -> str:
    """Without so many of the last dimensions."""
    return rep(tensor(rank - lost, dims(rank)[: rank - lost], dtype))


def _solves(options: str) -> Iterator[str]:
    """A vector, or matrices whose leading axes broadcast."""
    for r in MATRICES:
        column = dims(r)[-2]
        yield f"(a: {of(r)}, b: {of(1, column)}{options}) -> {last(r, 1)}"
        for s in MATRICES:
            high = max(r, s)
            first = dims(high)[: high - 2] if r == s else ["Any"] * (high - 2)
            left = [*(first if r == high else ["Any"] * (r - 2)), "P", "P"]
            right = [*(first if s == high else ["Any"] * (s - 2)), "P", "L"]
            yield f"(a: {of(r, *left)}, b: {of(s, *right)}{options}) -> {of(high, *first, 'P', 'L')}"


def _sides_first(signature: str) -> str:
    """The signature of a system with the right-hand sides before the matrix, a factor."""
    return re.sub(r"^\(a: (.*), (b: .*?), \*,", r"(\2, factor: \1, *,", signature)


def _least_squares() -> Iterator[str]:
    """The solution, the residuals, the rank and the singular values."""
    option = "rcond: float | None = None"
    for r in MATRICES:
        *first, row, column = dims(r)
        rest = [last(r, 2, "i64"), of(r - 1, *first, "Any")]
        if r == 2:
            parts = tup([of(1, column), of(1, "Any"), *rest])
            yield f"(a: {of(r)}, b: {of(1, row)}, {option}) -> {parts}"
        parts = tup([of(r, *first, column, "P"), of(r - 1, *first, "P"), *rest])
        yield f"(a: {of(r)}, b: {of(r, *first, row, 'P')}, {option}) -> {parts}"


def _qr() -> Iterator[str]:
    for r in MATRICES:
        *first, row, column = dims(r)
        q, upper = of(r, *first, row, "Any"), of(r, *first, "Any", column)
        yield f'(a: {of(r)}, mode: Literal["reduced"] = "reduced") -> QRResult[{q}, {upper}]'
        yield f'(a: {of(r)}, mode: Literal["r"]) -> {upper}'
        whole = f"QRResult[{of(r, *first, row, row)}, {of(r, *first, row, column)}]"
        yield f'(a: {of(r)}, mode: Literal["complete"]) -> {whole}'


def _svd() -> Iterator[str]:
    for r in MATRICES:
        *first, row, column = dims(r)
        parts = [of(r, *first, row, "Any"), of(r - 1, *first, "Any"), of(r, *first, "Any", column)]
        uv = "compute_uv: Literal[True] = True"
        yield f"(a: {of(r)}, full_matrices: Literal[False], {uv}) -> SVDResult[{commas(parts)}]"
        squares = of(r, *first, row, row), parts[1], of(r, *first, column, column)
        whole = f"SVDResult[{commas(squares)}]"
        yield f"(a: {of(r)}, full_matrices: Literal[True] = True, {uv}) -> {whole}"
        yield f"(a: {of(r)}, full_matrices: bool, compute_uv: Literal[False]) -> {parts[1]}"
        yield f"(a: {of(r)}, full_matrices: bool = True, *, compute_uv: Literal[False]) -> {parts[1]}"


def _norm() -> Iterator[str]:
    """Of all elements, along an axis, and along two."""
    ord = 'ord: float | Literal["fro", "nuc"] | None'
    yield f"(x: Rep[Tensor1D[F, I]], {ord} = None) -> Rep[Tensor0D[F]]"
    for r in COMMON_FIRST[:-1]:
        any_rank = "ord: None" if r > 2 else ord
        yield f"(x: {of(r)}, {any_rank} = None, axis: None = None) -> {rep('Tensor0D[F]')}"
        kept = rep(tensor(r, ["Any"] * r, "F"))
        given = f"x: {of(r)}, {ord} = None, axis: Any = None, *, keepdims: Literal[True]"
        yield f"({given}) -> {kept}"
        for axis in range(r):
            at = f"Literal[{commas(map(str, (axis, axis - r)))}]"
            yield f"(x: {of(r)}, {ord} = None, *, axis: {at}) -> {rep(without(r, axis, dtype='F'))}"
            yield f"(x: {of(r)}, {ord}, axis: {at}) -> {rep(without(r, axis, dtype='F'))}"
        if r > 1:
            pair = f"tuple[{any_axis(r)}, {any_axis(r)}]"
            result = rep(tensor(r - 2, ["Any"] * (r - 2), "F"))
            yield f"(x: {of(r)}, {ord} = None, *, axis: {pair}) -> {result}"
            yield f"(x: {of(r)}, {ord}, axis: {pair}) -> {result}"
