"""gradient and value_and_gradient.

Overloads by literal index over the prefix of the parameters, the rest in Ts, so that any arity
works; indices in increasing order.  The selector form takes them in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from .expressions import (
    MAX_INDEX,
    MAX_SELECTED,
    commas,
    define,
    function,
    method,
    names,
    refused,
    rep,
    template,
    title,
    tup,
    with_unstaged,
)

SAVE = 'save: SavePolicy = "auto"'


def differentiation() -> Iterator[str]:
    yield title("differentiation")
    yield "From: TypeAlias = Literal[" + commas(map(str, range(MAX_INDEX + 1))) + "]"
    yield 'SavePolicy: TypeAlias = Literal["auto", "all", "none"] | int'
    yield from _functions()
    lens = _by_lens("OUT", ", from_: From = 0", "D0")
    value_lens = _by_lens("Tensor0D[F]", "", "tuple[Tensor0D[F], D0]")
    yield from define("gradient", with_unstaged([_refusal(), *_by_index(), lens, *_by_selector()]))
    values = [_value_refusal(), *_value_by_index(), value_lens, *_value_by_selector()]
    yield from define("value_and_gradient", with_unstaged(values))
    yield from template("differentiation")


def wrt_choices() -> Iterator[int | tuple[int, ...]]:
    """What `wrt` may be: an index, or increasing indices."""
    yield from range(MAX_INDEX + 1)
    for count in range(1, MAX_INDEX + 2):
        yield from itertools.combinations(range(MAX_INDEX + 1), count)


def indices_of(wrt: int | tuple[int, ...]) -> Sequence[int]:
    return [wrt] if isinstance(wrt, int) else wrt


def wrt_literal(wrt: int | tuple[int, ...]) -> str:
    if isinstance(wrt, int):
        return f"wrt: Literal[{wrt}]"
    return f"wrt: {tup([f'Literal[{i}]' for i in wrt])}"


def parameters_by(wrt: int | tuple[int, ...]) -> list[str]:
    """D where differentiable, A elsewhere, then the rest."""
    chosen = indices_of(wrt)
    prefix = [f"D{i}" if i in chosen else f"A{i}" for i in range(max(chosen) + 1)]
    return [*prefix, "Unpack[Ts]"]


def derivatives_by(wrt: int | tuple[int, ...]) -> str:
    each = [f"D{i}" for i in indices_of(wrt)]
    return each[0] if isinstance(wrt, int) else tup(each)


def _outputs() -> list[str]:
    """The k-th of several outputs.

    A seeded gradient must name it, which keeps half of the overloads out of most calls.  It is not
    written `FT | tuple[FT, ...]`: mypy pushes that union into a lambda's result.
    """
    rest = ["FT", "Unpack[tuple[Any, ...]]"]
    return [tup(["Any"] * k + rest) for k in range(MAX_INDEX + 1)]


def _by_index() -> Iterator[str]:
    for wrt in wrt_choices():
        parameters, result, literal = parameters_by(wrt), derivatives_by(wrt), wrt_literal(wrt)
        # pyright mis-expands [*Ts, FT] without the inner tuple
        seeded = [f"Unpack[{tup([*parameters, 'FT'])}]"]
        kept = tup([*(f"D{i}" for i in indices_of(wrt)), "FT"])
        any_output = f"of: {rep(function(parameters, 'OUT'))}, {literal}"
        single = f"of: {rep(function(parameters, 'FT'))}, {literal}"
        several = [f"of: View[{function(parameters, output)}], {literal}" for output in _outputs()]
        seed, keep = "seedable: Literal[True]", "keeping: tuple[Literal[0]]"
        yield f"(*, {any_output}, from_: From = 0, {SAVE}) -> {rep(function(parameters, result))}"
        yield f"(*, {single}, {keep}, {SAVE}) -> {rep(function(parameters, kept))}"
        yield f"(*, {several[0]}, from_: From = 0, {keep}, {SAVE}) -> {rep(function(parameters, kept))}"
        yield f"(*, {single}, {seed}, {keep}, {SAVE}) -> {rep(function(seeded, kept))}"
        yield f"(*, {single}, {seed}, {SAVE}) -> {rep(function(seeded, result))}"
        for k, of in enumerate(several):
            yield f"(*, {of}, from_: Literal[{k}], {seed}, {SAVE}) -> {rep(function(seeded, result))}"


def _by_lens(out: str, options: str, result: str) -> str:
    of = rep(function(["S", "Unpack[Ts]"], out))
    gradient = rep(function(["S", "Unpack[Ts]"], result))
    return f"(*, of: {of}, wrt: Lens[S, D0, Any]{options}, {SAVE}) -> {gradient}"


def _functions() -> Iterator[str]:
    """Callables as protocols.

    mypy infers an argument whose parameter mentions Callable together with the lambdas, and knows
    nothing of the lambda's parameters then.
    """
    for n in range(1, MAX_SELECTED + 1):
        yield f"class Function{n}(Protocol[{commas([*names('C', n), 'X_co'])}]):"
        listed = commas(f"a{i}: C{i}" for i in range(n))
        yield from method("__call__", [f"(self, {listed}, /) -> X_co"])


def _selecting(n: int, result: str) -> str:
    parameters = names("A", n)
    of = f"View[Function{n}[{commas([*parameters, result])}]]"
    return f"of: {of}, wrt: {function(parameters, 'G')}"


def _by_selector() -> Iterator[str]:
    """Any order, and fields of structs."""
    for n in range(1, MAX_SELECTED + 1):
        parameters, seed = names("A", n), "seedable: Literal[True]"
        result, seeded = function(parameters, "G"), function([*parameters, "FT"], "G")
        yield f"(*, {_selecting(n, 'OUT')}, from_: From = 0, {SAVE}) -> {rep(result)}"
        yield f"(*, {_selecting(n, 'FT')}, {seed}, {SAVE}) -> {rep(seeded)}"


def _refusal() -> str:
    options = "from_: From = 0, seedable: bool = False, keeping: tuple[Literal[0]] = (0,)"
    of = refused("FunctionOfFloatsAtIncreasingWrt")
    return f"(*, of: {of}, wrt: int | tuple[int, ...], {options}, {SAVE}) -> Any"


def _value_refusal() -> str:
    of = refused("NumberFunctionOfFloatsAtIncreasingWrt")
    return f"(*, of: {of}, wrt: int | tuple[int, ...], {SAVE}) -> Any"


def _value_by_index() -> Iterator[str]:
    for wrt in wrt_choices():
        parameters, result = parameters_by(wrt), tup(["Tensor0D[F]", derivatives_by(wrt)])
        of = rep(function(parameters, "Tensor0D[F]"))
        yield f"(*, of: {of}, {wrt_literal(wrt)}, {SAVE}) -> {rep(function(parameters, result))}"


def _value_by_selector() -> Iterator[str]:
    for n in range(1, MAX_SELECTED + 1):
        parameters, given = names("A", n), _selecting(n, "Tensor0D[F]")
        yield f"(*, {given}, {SAVE}) -> {rep(function(parameters, 'tuple[Tensor0D[F], G]'))}"
