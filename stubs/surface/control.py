"""cond, while_loop, fori, fix, zip, and the methods that take a function of elements.

What branches return and loops carry is spelled out (`carries`): a free type variable would let both checkers
widen it, and a changing rank would pass.  These are the only tables that lambdas go into; they are short, or
told apart by `self`, as mypy goes through a lambda once per overload.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    MAX_CARRIED,
    MAX_RESULTS,
    batched,
    commas,
    define,
    function,
    lifted,
    method,
    names,
    refused,
    rep,
    title,
    tup,
)

SCHEDULE = "checkpoint: LoopSchedule | None = None"


def control() -> Iterator[str]:
    yield title("control flow")
    yield "class LoopSchedule: ..."
    yield "def every_sqrt() -> LoopSchedule: ..."
    yield "def binomial(slots: int, /) -> LoopSchedule: ..."
    yield "class Stacked(Generic[X_co]):"
    yield from method("tensor", [f"(self: Stacked[{lifted('Y')}]) -> Rep[Y]"])
    other = refused("TypeOfTheFirstBranchAndOfTheResult")
    yield from define(
        "cond",
        [
            f"(pred: Rep[Bool] | bool, then: {function([], 'Any')}, orelse: {function([], other)}, /) -> Any",
            *(
                f"(pred: Rep[Bool] | bool, then: {function([], c)}, orelse: {function([], c)}, /) -> {c}"
                for c in [*carries(MAX_RESULTS), "None"]
            ),
        ],
    )
    yield from define(
        "while_loop",
        [
            f"(test: {function([c], 'Rep[Bool]')}, body: {function([c], c)}, /, init: {c}, *, {SCHEDULE}) -> {c}"
            for c in carries(MAX_RESULTS)
        ]
        + [f"(test: {function([], 'Rep[Bool]')}, body: {function([], 'None')}, /) -> None"],
    )
    index = "Rep[Tensor0D[i32]]"
    yield from define(
        "fori",
        [
            f"(lo: Index, hi: Index, body: {function([index, c], c)}, /, init: {c}, *, {SCHEDULE}) -> {c}"
            for c in carries(MAX_RESULTS)
        ]
        + [f"(lo: Index, hi: Index, body: {function(['Rep[Tensor0D[i32]]'], 'None')}, /) -> None"],
    )
    yield from define(
        "fixed_point",
        [
            f"({commas([f'f: {function([c, *given], c)}', f'x0: {c}', *listed, '/', *options])}) -> {c}"
            for c in carries(MAX_RESULTS)
            for n in range(MAX_CARRIED + 1)
            for given in [names("A", n, "Rep[{}]")]
            for listed in [[f"a{k}: {a}" for k, a in enumerate(given)]]
            for options in [["*", "tolerance: float | None = None", "max_iterations: int = 1000"]]
        ],
    )
    itself = rep(function(["A0"], "R"))
    yield from define("fix", [f"(f: {function([itself], itself)}, /) -> {itself}"])
    pair = f"a: View[{batched('A0')}], b: View[{batched('A1')}]"
    yield from define("zip_with", [f"({pair}, fn: {_of_pair()}, /) -> Rep[M]"])
    tensors = "a: Rep[TT], b: Rep[TU]"
    yield from define("zip", [f"({tensors}, /) -> Rep[tuple[TT, TU]]"])


def traversals() -> Iterator[str]:
    """Methods of Rep, along the leading axis."""
    one = f"self: View[{batched('Y')}]", "Rep[Y]"
    pair = f"self: View[{tup([batched('A0'), batched('A1')])}]", "Rep[tuple[A0, A1]]"
    stacked = f"View[{lifted('M')}]"
    yield from method(
        "map",
        [f"({me}, fn: {function([each], stacked)}, /) -> Rep[M]" for me, each in (one, pair)],
    )
    yield from method(
        "fold",
        [
            f"({me}, init: {c}, fn: {function([c, each], c)}, /, *, {SCHEDULE}) -> {c}"
            for me, each in (one, pair)
            for c in carries(MAX_CARRIED)
        ],
    )
    yield from method(
        "scan",
        [
            f"({me}, init: {c}, fn: {function([c, each], tup([c, 'Rep[R]']))}, /, *, {SCHEDULE})"
            f" -> {tup([c, 'Stacked[R]'])}"
            for me, each in (one, pair)
            for c in carries(MAX_CARRIED)
        ],
    )
    predicate = function(["Rep[Y]"], "Rep[Bool]")
    yield from method(
        "filter",
        [f"({one[0]}, predicate: {predicate}, /) -> tuple[Rep[X], Rep[Tensor0D[i64]]]"],
    )


def carries(most: int) -> list[str]:
    """What branches return and loops carry: one Rep, or a tuple of up to `most`."""
    return ["Rep[R0]", *(tup(names("R", n, "Rep[{}]")) for n in range(2, most + 1))]


def _of_pair() -> str:
    return function(["Rep[A0]", "Rep[A1]"], f"View[{lifted('M')}]")
