"""vmap, vmap2 and what combines the elements of a batch.

The rank of what is batched is followed where the elements lie along the first axes of the first argument, or of the
first two; other axes are not, as each would be a table of its own.
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
)

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
    anything = rep("Callable[..., Any]")
    inside, outside = f"in_axes: int | {_AXES}", f"out_axes: int | None | {_AXES}"
    # with one of them, so that it is no second choice for what stands above
    for axes in (f"{inside}, {outside} = 0", outside):
        yield f"(of: {anything}, /, *, {axes}, {_NAMED}) -> {anything}"


def _vmap2() -> Iterator[str]:
    for first in range(MAX_RANK):
        for second in range(MAX_RANK):
            of = function([plain(first), plain(second, "E"), "Unpack[Ts]"], lifted("Y"))
            batches = plain(first + 1), plain(second + 1, "E")
            made = rep(function([*batches, "Unpack[Ts]"], "Y"))
            yield f"(of: View[{of}], /, *, {_NAMED}) -> {made}"
