"""Topological order of derivative declarations: each after everything it calls or differentiates.

Functions may call themselves; a declaration may not need its own body.

Source: depth-first search with an explicit stack; Cormen et al., Introduction to Algorithms, §20.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.call_graph import callees
from ..errors import DifferentiationError, UnsupportedError
from ..ir import Function, Module
from ..types import written


def declarations_in_order(module: Module, needed: Sequence[str]) -> list[Function]:
    """The declarations of derivatives that the functions `needed` are or call, each after those it depends on.

    Raises: UnsupportedError when a declaration depends on itself; DifferentiationError for a primal that does
        not exist.
    """
    return [
        module.functions[name]
        for name in dependencies(module, needed)
        if _is_derivative(module.functions[name])
    ]


def _is_derivative(function: Function) -> bool:
    return function.primal is not None and function.body is None


def dependencies(module: Module, roots: Sequence[str]) -> list[str]:
    """Everything reachable from `roots`, themselves included, callees before callers.

    In a recursion the one that is met first comes last.
    """
    finished: dict[str, None] = {}
    for root in roots:
        path = [(root, iter(_needs(module, root)))] if root not in finished else []
        entered = {root}
        while path:
            name, needs = path[-1]
            following = next(needs, None)
            if following is None:
                path.pop()
                finished[name] = None
            elif following in entered and following not in finished:
                _check_cycle(module, [*(entry for entry, _ in path), following])
            elif following not in finished:
                path.append((following, iter(_needs(module, following))))
                entered.add(following)
    return list(finished)


def _needs(module: Module, name: str) -> list[str]:
    function = module.functions[name]
    primal = [function.primal] if function.primal is not None else []
    for needed in (*primal, *callees(function)):
        if needed not in module.functions:
            raise DifferentiationError(
                f"{written('@', name)} speaks of {written('@', needed)}, which is not in the module"
            )
    return [*primal, *callees(function)]


def _check_cycle(module: Module, path: list[str]) -> None:
    cycle = path[path.index(path[-1]) :]
    if any(_is_derivative(module.functions[name]) for name in cycle):
        refuse_cycle(cycle)


def refuse_cycle(cycle: list[str]) -> None:
    """Raises: UnsupportedError that shows how the last function of `cycle` depends on itself."""
    chain = " → ".join(written("@", name) for name in cycle)
    raise UnsupportedError(
        f"the gradient of a function that uses that gradient ({chain}) is not supported: unroll the "
        "recursion while staging, with a depth that is a Python number"
    )
