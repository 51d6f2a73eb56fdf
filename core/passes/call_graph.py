"""Who calls whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..ir import Function, Module
from ..ir.surgery import walk
from ..ops import Apply


def callees(function: Function) -> Counter[str]:
    """The functions that `function` calls, in order, and at how many places it does."""
    if function.body is None:
        return Counter()
    return Counter(i.op.callee for i in walk(function.body) if isinstance(i.op, Apply))


def call_sites(module: Module) -> Counter[str]:
    """At how many places each function is called."""
    return sum((callees(function) for function in module.functions.values()), Counter[str]())


def reachable(module: Module, roots: Iterable[str]) -> set[str]:
    """The functions that `roots` need: their callees and what they are declared as the gradient of."""
    found: set[str] = set()
    pending = [name for name in roots if name in module.functions]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        function = module.functions[name]
        pending.extend(callee for callee in callees(function) if callee in module.functions)
        if function.primal is not None:
            pending.append(function.primal)
    return found


def cycles_callees_first(module: Module) -> Iterator[list[str]]:
    """The strongly connected components of the call graph, each after those it calls.

    A component of several functions, or of one that calls itself, is a recursion.
    Source: Tarjan 1972, with the stack made explicit.
    """
    calls = {
        name: [callee for callee in callees(function) if callee in module.functions]
        for name, function in module.functions.items()
    }
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: dict[str, None] = {}
    for root in module.functions:
        path = [] if root in number else [(root, iter(calls[root]))]
        while path:
            name, remaining = path[-1]
            if name not in number:
                number[name] = lowest[name] = len(number)
                open_names[name] = None
            callee = next(remaining, None)
            if callee is None:
                path.pop()
                if path:
                    caller = path[-1][0]
                    lowest[caller] = min(lowest[caller], lowest[name])
                if lowest[name] == number[name]:
                    yield _close(open_names, name)
            elif callee not in number:
                path.append((callee, iter(calls[callee])))
            elif callee in open_names:
                lowest[name] = min(lowest[name], number[callee])


def _close(open_names: dict[str, None], root: str) -> list[str]:
    """Take the component that `root` began off the list of open names."""
    component: list[str] = []
    while not component or component[-1] != root:
        component.append(open_names.popitem()[0])
    return component
