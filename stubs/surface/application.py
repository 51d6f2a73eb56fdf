"""Calls and subscripts of Rep; for these, one class a kind of value, which a descriptor chooses.

A method with an overload for each arity and rank would be bound to its `self` overload by overload, at every use:
checkers spend most of their time there.  A descriptor's `__get__` stops at the first kind that fits, and its class
has the few overloads of this kind alone; so messages list no others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .expressions import (
    COMMON_FIRST,
    MAX_ARITY,
    MAX_RANK,
    MAX_RESULTS,
    OTHER_DIMENSIONS,
    axis_literal,
    commas,
    dims,
    for_either,
    function,
    method,
    names,
    plain,
    rep,
    tensor,
    tup,
)

SLICE = "Slice"
WHOLE = "Whole"
_FUNCTIONS = range(1, MAX_ARITY + 1)
_TUPLES = range(2, MAX_RESULTS + 1)


def descriptor(name: str, kinds: dict[str, str], note: str) -> Iterator[str]:
    """An attribute whose type follows from that of the Rep it is read from; the commonest first."""
    yield f"class {name}:   # {note}"
    yield from method(
        "__get__",
        [f"(self, x: {kind}, owner: Any = None, /) -> {made}" for kind, made in kinds.items()],
    )


def calls() -> Iterator[str]:
    """f(a, b): all concrete or all staged; f(a, b, out=c), which is concrete.

    Static arguments are given by name, and are not checked: of functions whose static parameters are known, calls are
    those of `staging`.  The overloads stay disjoint: a third, mixed one makes mypy answer Any.  A method, as
    pyright takes no descriptor for what makes a value a Callable.  For pyright, which binds every overload at each
    call, data of any number is one of them.
    """
    nothing = "(self: Rep[Callable[[], R]], **statics: Static) -> Rep[R]"
    listed = [_call(n, wrap) for n in _FUNCTIONS for wrap in ("Rep[{}]", "{}")]
    data = "(self: Rep[Callable[[Unpack[Ts]], R]], *args: Unpack[Ts], out: R | None = None, **statics: Static) -> R"
    staged = [_call(n, "Rep[{}]") for n in _FUNCTIONS]
    yield from for_either(
        method("__call__", [nothing, *listed]),
        method("__call__", [nothing, *staged, data]),
        indent="    ",
    )


def _call(n: int, wrap: str) -> str:
    out = "None" if wrap.startswith("Rep") else "R | None"
    listed = commas(f"a{i}: {a}" for i, a in enumerate(names("A", n, wrap)))
    options = f"*, out: {out} = None, **statics: Static"
    return f"(self: {staged_function(n)}, {listed}, /, {options}) -> {wrap.format('R')}"


def subscripts() -> Iterator[str]:
    """x[1, :], of a tensor; s[S.field]; t[0], of a tuple; f[a, b]."""
    yield "class Fields(Generic[S]):"
    # the second is for mypy, which asks before it has inferred the parameter of a lambda
    fields = [
        "(self, field: Lens[S, Y, Any], /) -> Rep[Y]",
        "(self: Fields[Never], i: Any, /) -> Rep[S]",
    ]
    yield from method("__call__", fields)
    kinds = {"Rep[S]": "Fields[S]"}
    for r in COMMON_FIRST[:-1]:
        parameters = commas(["D", *dims(r)])
        yield f"class Elements{r}D(Generic[{parameters}]):"
        yield from method("__call__", [*_fancy(r), *_basic(r), *_ellipses(r), *_new_axes(r)])
        kinds[f"View[{tensor(r)}]"] = f"Elements{r}D[{parameters}]"
    yield "class Elements0D(Generic[D]):"
    yield from method("__call__", [*_ellipses(0), *_new_axes(0)])
    for n in _FUNCTIONS:
        parameters = commas([*names("A", n), "R"])
        yield f"class Apply{n}(Generic[{parameters}]):"
        yield from method("__call__", _applications(n))
        kinds[staged_function(n)] = f"Apply{n}[{parameters}]"
    for n in _TUPLES:
        parameters = commas(names("A", n))
        yield f"class Items{n}(Generic[{parameters}]):"
        items = [f"(self, i: {axis_literal(i, n)}, /) -> Rep[A{i}]" for i in range(n)]
        yield from method("__call__", items)
        kinds[rep(tup(names("A", n)))] = f"Items{n}[{parameters}]"
    yield "class Items(Generic[R]):"
    many = "Rep[tuple[R, ...]]"
    yield from method(
        "__call__", ["(self, i: int, /) -> Rep[R]", f"(self, i: {SLICE}, /) -> {many}"]
    )
    # the face of Rep that tells them from tuples of a known length
    kinds |= {
        "Series[tuple[Never, ...], tuple[R, ...]]": "Items[R]",
        f"View[{tensor(0)}]": "Elements0D[D]",
    }
    yield from descriptor("Subscripts", kinds, "x[0], s[S.field], f[a, b]")


def staged_function(arity: int) -> str:
    return rep(function(names("A", arity), "R"))


def _applications(arity: int) -> Iterator[str]:
    for wrap in ("Rep[{}]", "{}"):
        given = names("A", arity, wrap)
        yield f"(self, a: {given[0] if arity == 1 else tup(given)}, /) -> {wrap.format('R')}"


def _basic(rank: int) -> Iterator[str]:
    """k subscripts: an index drops its axis, a slice leaves one without a name."""
    for k in range(1, rank + 1):
        for slices in range(k + 1):
            patterns = [
                [SLICE if place in at else "Index" for place in range(k)]
                for at in itertools.combinations(range(k), slices)
            ]
            index = " | ".join(p[0] if k == 1 else tup(p) for p in patterns)
            made = tensor(slices + rank - k, ["Any"] * slices + dims(rank)[k:])
            yield f"(self, i: {index}, /) -> {rep(made)}"


def _fancy(rank: int) -> Iterator[str]:
    """Integer tensors of one rank: one for the first axis or behind a slice, or two for neighbouring axes."""
    for s in range(1, MAX_RANK - rank + 2):
        looked_up = dims(s, OTHER_DIMENSIONS)
        index = rep(tensor(s, looked_up, "Z"))
        row = tensor(rank - 1 + s, [*looked_up, *dims(rank)[1:]])
        whole = f" | tuple[{index}, {WHOLE}]" if rank > 1 else ""
        yield f"(self, i: {index}{whole}, /) -> {rep(row)}"
        if s == 1:
            listed = rep(tensor(rank, ["Any", *dims(rank)[1:]]))
            yield f"(self, i: list[int], /) -> {listed}"
        if rank > 1:
            column = tensor(rank - 1 + s, ["Any", *looked_up, *dims(rank)[2:]])
            yield f"(self, i: tuple[{SLICE}, {index}], /) -> {rep(column)}"
    for s in range(1, MAX_RANK - rank + 3) if rank > 1 else ():
        index, found = rep(plain(s, "Z")), tensor(rank - 2 + s, ["Any"] * s + dims(rank)[2:])
        pair = f"tuple[{index}, {index} | Index] | tuple[Index, {index}]"
        yield f"(self, i: {pair}, /) -> {rep(found)}"


def _new_axes(rank: int) -> Iterator[str]:
    """`x[None]`, `x[:, None]`, `x[None, 0, :]`, …: None and slices each put an unnamed dimension there.

    Axes that are taken whole keep their names beside one None, or two of a vector.
    """
    yield from _beside_whole_axes(rank, 1)
    if rank == 1:
        yield from _beside_whole_axes(rank, 2)
    for made in sorted(range(1, MAX_RANK + 1), key=lambda made: abs(made - rank - 1)):
        patterns = list(_patterns_of(rank, made))
        if patterns:
            yield f"(self, i: {' | '.join(map(tup, patterns))}, /) -> {rep(plain(made))}"


def _beside_whole_axes(rank: int, nones: int) -> Iterator[str]:
    """As many None among all axes: behind the last of them, and in place of one `...`, axes need not be written."""
    count = rank + nones
    for places in itertools.combinations(range(count), nones) if count <= MAX_RANK else ():
        axes = iter(dims(rank))
        made = ["Any" if place in places else next(axes) for place in range(count)]
        full = ["None" if place in places else WHOLE for place in range(count)]
        spelt = [full[:n] for n in range(places[-1] + 1, count + 1)]
        runs = [(0, places[0]), (places[-1] + 1, count)]
        spelt += [[*full[:i], "EllipsisType", *full[j:]] for i, j in runs if i < j or not rank]
        written = [tup(each) if len(each) > 1 else each[0] for each in spelt]
        if places == (0,) and rank:
            written = ["None", *written]
        yield f"(self, i: {' | '.join(dict.fromkeys(written))}, /) -> {rep(tensor(count, made))}"


def _ellipses(rank: int) -> Iterator[str]:
    """`x[...]`, and an index or a slice of the first or last axis."""
    yield f"(self, i: EllipsisType, /) -> {rep(tensor(rank))}"
    if rank:
        first, rest = dims(rank)[:-1], dims(rank)[1:]
        yield f"(self, i: tuple[Index, EllipsisType], /) -> {rep(tensor(rank - 1, rest))}"
        yield f"(self, i: tuple[{SLICE}, EllipsisType], /) -> {rep(tensor(rank, ['Any', *rest]))}"
        yield f"(self, i: tuple[EllipsisType, Index], /) -> {rep(tensor(rank - 1, first))}"
        yield f"(self, i: tuple[EllipsisType, {SLICE}], /) -> {rep(tensor(rank, [*first, 'Any']))}"


def _patterns_of(rank: int, made: int) -> Iterator[list[str]]:
    """Orders of None, slices and indices that make a tensor of that rank; those with `...`, of two of them at most."""
    for nones in range(4):
        for indices in range(3):
            least = 1 if nones + indices else 2
            for slices in range(rank - indices + 1):
                if made != rank - indices + nones or indices + slices > rank:
                    continue
                entries = ["None"] * nones + ["Index"] * indices + [SLICE] * slices
                if nones and len(entries) > 1 and nones + indices <= 3:
                    yield from _orders(entries)
                if rank > 1 and least <= len(entries) == 2 and indices + slices < rank:
                    for order in _orders(entries):
                        yield from ([*order[:n], "EllipsisType", *order[n:]] for n in range(3))


def _orders(entries: list[str]) -> list[list[str]]:
    """All of them, without those that look alike."""
    return [list(order) for order in dict.fromkeys(itertools.permutations(entries))]
