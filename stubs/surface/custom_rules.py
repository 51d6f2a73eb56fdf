"""defjvp, defvjp and differentiate_as: rules of derivatives.

A jvp has twice the parameters of its function, so these tables end at half of what a staged function may have.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import MAX_PARAMETERS, MAX_RESULTS, commas, function, method, names, rep, tup

MAX_RULED = MAX_PARAMETERS // 2


def rule_methods() -> Iterator[str]:
    yield from method("defjvp", list(_jvp()))
    yield from method("defvjp", list(_vjp()))


def _jvp() -> Iterator[str]:
    results = [("R", "Rep[R]")] + [
        (tup(names("R", n)), tup(names("R", n, "Rep[{}]"))) for n in range(2, MAX_RESULTS + 1)
    ]
    for n in range(1, MAX_RULED + 1):
        for result, returned in results:
            rule = function(names("A", n, "Rep[{}]") * 2, returned)
            made = rep(function(names("A", n) * 2, result))
            yield f"(self: {rep(function(names('A', n), result))}, rule: {rule}, /) -> {made}"


def _vjp() -> Iterator[str]:
    saved = [("Y", "Rep[Y]")] + [
        (tup(names("C", n)), tup(names("C", n, "Rep[{}]"))) for n in range(2, MAX_RESULTS + 1)
    ]
    for n in range(1, MAX_RULED + 1):
        of = rep(function(names("A", n), "R"))
        given = names("A", n, "Rep[{}]")
        # what a call of a staged function returns is one Rep of a tuple
        cotangents = f"{tup(given)} | {rep(tup(names('A', n)))}"
        rule = function([*given, "Rep[R]"], cotangents)
        made = rep(function([*names("A", n), "R"], tup(names("A", n))))
        yield f"(self: {of}, rule: {rule}, /) -> {made}"
        for kept, returned in saved:
            fwd = function(given, f"tuple[Rep[R], {returned}]")
            bwd = function([rep(kept), "Rep[R]"], cotangents)
            made = rep(function(names("A", n), tup(["R", kept])))
            yield f"(self: {of}, {commas([f'fwd: {fwd}', f'bwd: {bwd}', '/'])}) -> {made}"
