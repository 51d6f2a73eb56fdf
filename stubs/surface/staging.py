"""staged and fn; functions with static parameters (docs/decisions/0056)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .application import staged_function
from .expressions import (
    MAX_PARAMETERS,
    MAX_RESULTS,
    commas,
    define,
    for_either,
    function,
    method,
    names,
    rep,
    template,
    title,
    tup,
)


def staging() -> Iterator[str]:
    yield title("staging")
    yield from template("staging")
    for n in range(MAX_PARAMETERS + 1):
        yield from _with_statics(n)
    yield "class Staging:"
    yield from _indented(_table("__call__", "self, "))
    yield from _table("staged", "", '(*, shapes: Literal["any", "symbolic"]) -> Staging')
    for n in range(1, MAX_PARAMETERS + 1):
        yield f"class Fn{n}(Generic[{commas(names('A', n))}]):"
        traced = function(names("A", n, "Rep[{}]"), "Rep[R]")
        yield from method("__call__", [f"(self, fn: {traced}, /) -> {staged_function(n)}"])
    yield from define(
        "fn",
        [
            f"({commas(f't{i}: type[A{i}]' for i in range(n))}, /) -> Fn{n}[{commas(names('A', n))}]"
            for n in range(1, MAX_PARAMETERS + 1)
        ],
    )


OVERLAPS = "  # type: ignore[overload-overlap]"
"""The first overload that fits is meant."""


def _table(name: str, first: str, *last: str) -> Iterator[str]:
    """One function, of whose overloads most are for both checkers."""
    common = [*_stagings(first), *_refusing(first)]
    mypy, pyright = ([*common, *more(first), *last] for more in (_accepting, _capturing))
    yield from for_either(_noted(define(name, mypy)), _noted(define(name, pyright)))


def _noted(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}{OVERLAPS}" for line in lines)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


RESULTS = [("Rep[R]", "R")] + [
    (tup(names("R", n, "Rep[{}]")), tup(names("R", n))) for n in range(2, MAX_RESULTS + 1)
]
"""What a staged function returns while it is traced, and what is its result."""


def _stagings(first: str) -> Iterator[str]:
    """What makes a staged function of a Python function, by its results and its number of parameters.

    The commonest first: a checker tries one after the other.  No function fits two of these, but for one with static
    parameters, which is also a function without them.
    """
    for traced, result in RESULTS:
        for n in [*range(1, MAX_PARAMETERS + 1), 0]:
            given = names("A", n)
            taken = (
                f"FunctionWithStatics{n}[{commas([*given, traced, 'STATIC', 'GIVEN', 'TAKEN'])}]"
            )
            yield f"({first}fn: {taken} | NoLambda, /) -> {_made_with_statics(n, result)}"
            made = rep(function(names("A", n), result))
            without = function(names("A", n, "Rep[{}]"), traced)
            yield f"({first}fn: {without}, /) -> {made}"


def _refusing(first: str) -> Iterator[str]:
    """Data that is not annotated as Reps: what is made of such a function is of no use."""
    for n in range(MAX_PARAMETERS, 0, -1):
        taken = commas([*names("A", n), "object", "DATA", "GIVEN", "TAKEN"])
        yield f"({first}fn: FunctionWithStatics{n}[{taken}] | NoLambda, /) -> AnnotateDataAsRep"


def _accepting(first: str) -> Iterator[str]:
    """Other static parameters, those by keyword only that have no default say; not checked in calls.

    All results are Reps: mypy, to which several of these fit where a type has an `Any`, then answers `Rep[Any]`.
    """
    for n in range(MAX_PARAMETERS, 0, -1):
        for traced, result in RESULTS:
            taken = _function_of_more(n, traced)
            yield f"({first}fn: {taken}, /) -> {rep(function(names('A', n), result))}"


def _capturing(first: str) -> Iterator[str]:
    """The same, with names and types: pyright takes the first overload that fits."""
    for n in range(MAX_PARAMETERS, 0, -1):
        for traced, result in RESULTS:
            taken = _function_of_more(n, traced)
            yield f"({first}fn: {taken}, /) -> {_made_with_statics(n, result)}"


def _function_of_more(arity: int, result: str) -> str:
    given = commas([*names("A", arity), result, "GIVEN"])
    return f"FunctionOfMore{arity}[{given}] | NoLambda"


def _made_with_statics(arity: int, result: str) -> str:
    return f"WithStatics{arity}[{commas([*names('A', arity), result, 'GIVEN'])}]"


def _with_statics(arity: int) -> Iterator[str]:
    """A function of Reps with a static parameter behind them, and what `staged` makes of it.

    The parameter's type is bound to be static, or functions of one Rep more would be like these, and mypy would answer
    Any where a type has an `Any`.  What is behind the Reps is taken twice: with it and, for its name, from it on.
    """
    inner = names("A", arity)
    variables = commas([*inner, "X_co", "STATIC_contra", "GIVEN", "TAKEN"])
    # the first overload alone tells the variance of the parameter's type
    note = "  # pyright: ignore[reportInvalidTypeVarUse]"
    yield f"class FunctionWithStatics{arity}(Protocol[{variables}]):{note}"
    listed = [f"a{i}: Rep[{a}]" for i, a in enumerate(inner)]
    rest, named = (
        "*args: TAKEN.args, **kwargs: TAKEN.kwargs",
        "*args: GIVEN.args, **kwargs: GIVEN.kwargs",
    )
    yield from method(
        "__call__",
        [
            f"({commas(['self', *listed, 'static: STATIC_contra', '/', rest])}) -> X_co",
            f"({commas(['self', *listed, '/', named])}) -> X_co",
        ],
    )
    if arity:
        yield f"class FunctionOfMore{arity}(Protocol[{commas([*inner, 'X_co', 'GIVEN'])}]):"
        yield from method("__call__", [f"({commas(['self', *listed, '/', named])}) -> X_co"])
    each = names("A", arity)
    yield f"class WithStatics{arity}({staged_function(arity)}, Generic[{commas([*each, 'R', 'GIVEN'])}]):"
    call: list[str] = []
    for wrap in dict.fromkeys(["Rep[{}]", "{}" if arity else "Rep[{}]"]):
        given = [f"a{i}: {wrap.format(a)}" for i, a in enumerate(each)]
        call.append(f"({commas(['self', *given, '/', named])}) -> {wrap.format('R')}")
    if arity:
        concrete = [f"a{i}: {a}" for i, a in enumerate(each)]
        call.append(
            f"({commas(['self', *concrete, '/', '*', 'out: R', '**statics: Static'])}) -> R"
        )
    yield from method("__call__", call, note="  # type: ignore[override]")
