"""jvp, taylor, vjp, hvp, jacobian and hessian.

As `gradient`, by literal index over the prefix of the parameters.  A tangent or a seed comes behind all parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .differentiation import (
    SAVE,
    derivatives_by,
    indices_of,
    parameters_by,
    wrt_choices,
    wrt_literal,
)
from .expressions import (
    MAX_INDEX,
    MAX_RANK,
    MAX_SELECTED,
    OTHER_DIMENSIONS,
    RANKS,
    commas,
    define,
    dims,
    function,
    names,
    refused,
    rep,
    tensor,
    tup,
    with_unstaged,
)


def jacobians() -> Iterator[str]:
    yield from define("jvp", with_unstaged(_jvp("tuple[R, R]")))
    yield from define("taylor", with_unstaged(_jvp("tuple[R, ...]", "order: int")))
    yield from define("vjp", with_unstaged(_vjp()))
    yield from define("hvp", with_unstaged(_hvp()))
    yield from define("jacobian", with_unstaged(_jacobian()))
    yield from define("hessian", with_unstaged(_hessian()))


ALL = range(1, MAX_INDEX + 2)
"""How many parameters there may be where no `wrt` selects some of them."""


@dataclass(frozen=True)
class Selected:
    """A field, or what a selector returns: no index."""

    of: str
    wrt: str
    parameters: Sequence[str]
    type: str
    tangent: Sequence[str] | None
    """The parameter behind the others, where its type follows."""

    def along(self, result: str) -> str:
        """A function of tangents besides."""
        if self.tangent is None:
            return rep(f"Callable[..., {result}]")
        return rep(function(_behind(self.parameters, self.tangent), result))


def selections(result: str) -> Iterator[Selected]:
    lens = ["S", "Unpack[Ts]"]
    yield Selected(rep(function(lens, result)), "wrt: Lens[S, D0, Any]", lens, "D0", ["D0"])
    for n in range(1, MAX_SELECTED + 1):
        each = names("A", n)
        of = f"View[Function{n}[{commas([*each, result])}]]"
        yield Selected(of, f"wrt: {function(each, 'G')}", each, "G", None)


def _behind(parameters: Sequence[str], given: Sequence[str]) -> list[str]:
    """Parameters, and those behind them; pyright mis-expands [*Ts, FT] without the inner tuple."""
    return [f"Unpack[{tup([*parameters, *given])}]"]


def _jvp(both: str, *options: str) -> Iterator[str]:
    """What gives `both`, the value and what follows it along tangents."""
    yield _refusal("FunctionOfFloatsAtIncreasingWrt", *options)
    for n in ALL:
        each = names("D", n)
        of = commas([f"of: {rep(function(each, 'R'))}", *["*"] * bool(options), *options])
        yield f"({of}) -> {rep(function(each * 2, both))}"
    for wrt in wrt_choices():
        of = rep(function(parameters_by(wrt), "R"))
        made = function(_behind(parameters_by(wrt), each_of(wrt)), both)
        yield f"({commas([f'of: {of}', '*', *options, wrt_literal(wrt)])}) -> {rep(made)}"
    for one in selections("R"):
        yield f"({commas([f'of: {one.of}', '*', *options, one.wrt])}) -> {one.along(both)}"


def _vjp() -> Iterator[str]:
    yield _refusal("FunctionOfFloatsAtIncreasingWrt", SAVE)
    for n in ALL:
        each = names("D", n)
        yield f"(of: {rep(function(each, 'R'))}, *, {SAVE}) -> {rep(function([*each, 'R'], tup(each)))}"
    for wrt in wrt_choices():
        of = rep(function(parameters_by(wrt), "R"))
        made = function(_behind(parameters_by(wrt), ["R"]), derivatives_by(wrt))
        yield f"(of: {of}, *, {wrt_literal(wrt)}, {SAVE}) -> {rep(made)}"
    for one in selections("R"):
        made = rep(function(_behind(one.parameters, ["R"]), one.type))
        yield f"(of: {one.of}, *, {one.wrt}, {SAVE}) -> {made}"


def _hvp() -> Iterator[str]:
    yield _refusal("NumberFunctionOfFloatsAtIncreasingWrt", "from_: From = 0")
    for wrt in wrt_choices():
        made = rep(function(_behind(parameters_by(wrt), each_of(wrt)), derivatives_by(wrt)))
        of = rep(function(parameters_by(wrt), "Tensor0D[F]"))
        several = f"View[{function(parameters_by(wrt), 'tuple[Any, ...]')}]"
        yield f"(of: {of}, *, {_or_first(wrt)}) -> {made}"
        yield f"(of: {several}, *, {_or_first(wrt)}, from_: From = 0) -> {made}"
    for one in selections("Tensor0D[F]"):
        yield f"(of: {one.of}, *, {one.wrt}) -> {one.along(one.type)}"


def _jacobian() -> Iterator[str]:
    """By one tensor, of one tensor; the ranks of several Jacobians are not followed."""
    mode = 'mode: Literal["auto", "forward", "reverse"] = "auto"'
    yield _refusal("FunctionOfFloatsAtIncreasingWrt", "from_: From = 0", mode)
    for index in range(MAX_INDEX + 1):
        for by in RANKS:
            parameters = _one_tensor(index, by)
            for out in range(MAX_RANK + 1 - by):
                axes = dims(out, OTHER_DIMENSIONS)
                of = rep(function(parameters, tensor(out, axes, "F")))
                made = rep(function(parameters, tensor(out + by, [*axes, *dims(by)], "F")))
                yield f"(of: {of}, *, {_or_first(index)}, {mode}) -> {made}"
    for wrt in wrt_choices():
        parameters, result = parameters_by(wrt), _untyped(wrt)
        several = f"View[{function(parameters, 'tuple[Any, ...]')}]"
        made = rep(function(parameters, result))
        if not isinstance(wrt, int):
            yield f"(of: {rep(function(parameters, 'FT'))}, *, {wrt_literal(wrt)}, {mode}) -> {made}"
        yield f"(of: {several}, *, {_or_first(wrt)}, from_: From = 0, {mode}) -> {made}"
    for one in selections("FT"):
        yield f"(of: {one.of}, *, {one.wrt}, {mode}) -> {rep(function(one.parameters, 'Any'))}"


def _hessian() -> Iterator[str]:
    yield _refusal("NumberFunctionOfFloatsAtIncreasingWrt", "from_: From = 0")
    for index in range(MAX_INDEX + 1):
        for by in range(MAX_RANK // 2 + 1):
            parameters = _one_tensor(index, by)
            of = rep(function(parameters, "Tensor0D[F]"))
            made = rep(function(parameters, tensor(2 * by, dims(by) * 2, "F")))
            yield f"(of: {of}, *, {_or_first(index)}) -> {made}"
    for wrt in wrt_choices():
        parameters, row = parameters_by(wrt), _untyped(wrt)
        several = f"View[{function(parameters, 'tuple[Any, ...]')}]"
        made = rep(function(parameters, row if isinstance(wrt, int) else tup([row] * len(wrt))))
        if not isinstance(wrt, int):
            yield f"(of: {rep(function(parameters, 'Tensor0D[F]'))}, *, {wrt_literal(wrt)}) -> {made}"
        yield f"(of: {several}, *, {_or_first(wrt)}, from_: From = 0) -> {made}"
    for one in selections("Tensor0D[F]"):
        yield f"(of: {one.of}, *, {one.wrt}) -> {rep(function(one.parameters, 'Any'))}"


def _refusal(what: str, *options: str) -> str:
    given = commas([f"of: {refused(what)}", "*", "wrt: int | tuple[int, ...] = 0", *options])
    return f"({given}) -> Any"


def _or_first(wrt: int | tuple[int, ...]) -> str:
    """`wrt`, which may be left out for the first parameter."""
    return f"{wrt_literal(wrt)} = 0" if wrt == 0 else wrt_literal(wrt)


def _untyped(wrt: int | tuple[int, ...]) -> str:
    return "Any" if isinstance(wrt, int) else tup(["Any"] * len(wrt))


def each_of(wrt: int | tuple[int, ...]) -> list[str]:
    return [f"D{i}" for i in indices_of(wrt)]


def _one_tensor(position: int, rank: int) -> list[str]:
    """Parameters of which one is a tensor of that rank."""
    return [*names("A", position), tensor(rank, None, "F"), "Unpack[Ts]"]
