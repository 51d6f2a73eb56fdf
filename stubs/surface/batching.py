"""vmap, vmap2 and what combines the elements of a batch.

The ranks of what is batched are followed: without `in_axes` for the first argument, or the first two, whatever follows;
with it for up to two arguments and a result that is a tensor, with one axis of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    MAX_RANK,
    MAX_RESULTS,
    define,
    dims,
    function,
    lifted,
    names,
    plain,
    rep,
    tensor,
    title,
    tup,
    unstaged,
)

FOLLOWED = 2
"""So many parameters a function may have for `in_axes` to be followed."""

_NAMED = "axis_name: str | None = None"
_AXES = "tuple[int | None, ...]"


def batching() -> Iterator[str]:
    yield title("batches")
    yield from define("vmap", _vmap())
    yield from define("vmap2", _vmap2())
    for name, variable in (("sum", "NT"), ("mean", "FT"), ("max", "NT"), ("min", "NT")):
        yield from define(
            f"axis_{name}", [f"(x: Rep[{variable}], axis_name: str, /) -> Rep[{variable}]"]
        )


def _results() -> Iterator[tuple[str, str]]:
    """What one element has, and what all have: a tensor, or several."""
    yield lifted("Y"), "Y"
    for count in range(2, MAX_RESULTS + 1):
        each = names("R", count)
        yield tup([lifted(one) for one in each]), tup(each)


def _vmap() -> Iterator[str]:
    for one, of_all in _results():
        for rank in range(MAX_RANK):
            of = function([tensor(rank), "Unpack[Ts]"], one)
            batch = tensor(rank + 1, ["Any", *dims(rank)])
            made = function([batch, "Unpack[Ts]"], of_all)
            yield f"(of: View[{of}], /, *, {_NAMED}) -> {rep(made)}"
    for parameters, batches, axes in _chosen():
        of, made = function(parameters, lifted("Y")), function(batches, "Y")
        yield f"(of: View[{of}], /, *, in_axes: {axes}, out_axes: int = 0, {_NAMED}) -> {rep(made)}"
    # no two fit one function: where dimensions are Any, mypy would see Any
    inside, outside = f"in_axes: int | {_AXES}", f"out_axes: int | None | {_AXES}"
    more = function([*names("A", FOLLOWED + 1), "Unpack[Ts]"], "Any")
    for of, axes in (
        ("Callable[..., tuple[Any, ...]]", f"{inside}, {outside} = 0"),
        ("Callable[..., S]", f"{inside}, {outside} = 0"),
        (more, f"{inside}, {outside} = 0"),
        ("Callable[..., Any]", f"{inside}, out_axes: None | {_AXES}"),
        ("Callable[..., Any]", outside),
    ):
        yield f"(of: View[{of}], /, *, {axes}, {_NAMED}) -> {rep('Callable[..., Any]')}"
    yield f"(of: {unstaged()}, /, *, in_axes: Any = 0, out_axes: Any = 0, {_NAMED}) -> Any"


def _chosen() -> Iterator[tuple[list[str], list[str], str]]:
    """Parameters, those of the batch, and the axes of these."""
    ranks = range(MAX_RANK)
    for one in ranks:
        d = plain(one), plain(one + 1)
        yield [d[0]], [d[1]], "int | tuple[int]"
        yield [d[0], "A1"], [d[1], "A1"], "tuple[int, None]"
        yield ["A0", d[0]], ["A0", d[1]], "tuple[None, int]"
        for other in ranks:
            e = plain(other, "E"), plain(other + 1, "E")
            yield [d[0], e[0]], [d[1], e[1]], "int | tuple[int, int]"


def _vmap2() -> Iterator[str]:
    for first in range(MAX_RANK):
        for second in range(MAX_RANK):
            of = function([plain(first), plain(second, "E"), "Unpack[Ts]"], lifted("Y"))
            batches = plain(first + 1), plain(second + 1, "E")
            made = rep(function([*batches, "Unpack[Ts]"], "Y"))
            yield f"(of: View[{of}], /, *, {_NAMED}) -> {made}"
