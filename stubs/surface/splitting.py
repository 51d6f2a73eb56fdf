"""split, saved and linearize: as `vjp`, by literal index over the prefix of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .differentiation import SAVE, derivatives_by, parameters_by, wrt_choices, wrt_literal
from .everyday import splits
from .expressions import commas, define, function, names, refused, rep, template, tup
from .jacobians import ALL, each_of, selections


def splitting() -> Iterator[str]:
    yield from template("splitting")
    yield from define("split", _split())
    yield from define("linearize", _linearize())


def _split() -> Iterator[str]:
    """The halves of a gradient; the pieces of a tensor."""
    yield _refusal(SAVE)
    for n in ALL:
        each = names("D", n)
        yield f"(of: {rep(function(each, 'R'))}, /, *, {SAVE}) -> {_halves(each, tup(each))}"
    for wrt in wrt_choices():
        taken, made = parameters_by(wrt), derivatives_by(wrt)
        of = rep(function(taken, "R"))
        yield f"(of: {of}, /, *, {wrt_literal(wrt)}, {SAVE}) -> {_halves(taken, made)}"
    for one in selections("R"):
        made = _halves(one.parameters, one.type)
        yield f"(of: {one.of}, /, *, {one.wrt}, {SAVE}) -> {made}"
    yield from splits()


def _halves(taken: Sequence[str], made: str) -> str:
    forward = function(taken, "tuple[R, Residuals]")
    return f"Split[{forward}, {function(['Residuals', 'R'], made)}]"


def _linearize() -> Iterator[str]:
    yield _refusal()
    for n in ALL:
        each = names("D", n)
        made = f"Linearization[{tup(each)}, {tup_of(each)}, R, {tup(each)}]"
        yield f"(of: {rep(function(each, 'R'))}, /) -> {made}"
    for wrt in wrt_choices():
        taken, made = parameters_by(wrt), derivatives_by(wrt)
        found = f"Linearization[tuple[Any, ...], {tup_of(each_of(wrt))}, R, {made}]"
        yield f"(of: {rep(function(taken, 'R'))}, /, *, {wrt_literal(wrt)}) -> {found}"
    for one in selections("R"):
        found = f"Linearization[tuple[Any, ...], ..., R, {one.type}]"
        yield f"(of: {one.of}, /, *, {one.wrt}) -> {found}"


def tup_of(types: Sequence[str]) -> str:
    """Parameters as an argument for a ParamSpec."""
    return f"[{commas(types)}]"


def _refusal(*options: str) -> str:
    of = refused("FunctionOfFloatsAtIncreasingWrt")
    given = commas([f"of: {of}", "/", "*", "wrt: int | tuple[int, ...] = 0", *options])
    return f"({given}) -> Any"
