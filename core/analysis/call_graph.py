"""Who calls whom, and who uses what by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ..errors import VerifyError
from ..ir import Extern, Function, Module
from ..ir.surgery import walk
from ..types import written
from .graph import components


def check_names(module: Module, names: Iterable[str]) -> None:
    """Raises: VerifyError, with what there is, when one of `names` is no function of `module`."""
    for name in names:
        if name not in module.functions:
            known = ", ".join(written("@", other) for other in module.functions) or "none"
            raise VerifyError(
                f"the module {module.name!r} has no function {written('@', name)}; its functions: {known}"
            )


def callees(function: Function) -> Counter[str]:
    """The functions that `function` calls, in order, and at how many places it does."""
    if function.body is None:
        return Counter()
    called = (instruction.op.called for instruction in walk(function.body))
    return Counter(name for name in called if name is not None)


def symbols(function: Function, *, rules: bool = True) -> list[str]:
    """The functions and variables that `function` needs: it calls them, takes them as values, or has them as rules."""
    found: dict[str, None] = dict.fromkeys([function.primal] if function.primal else [])
    found.update(dict.fromkeys(function.rules.names if rules else ()))
    if function.body is not None:
        for instruction in walk(function.body):
            name = instruction.op.called or instruction.op.referred
            if name is not None:
                found.setdefault(name)
    return list(found)


def references(module: Module) -> set[str]:
    """The functions and variables that are values somewhere."""
    bodies = [function.body for function in module.functions.values() if function.body is not None]
    ops = (instruction.op for body in bodies for instruction in walk(body))
    return {op.referred for op in ops if op.referred is not None}


def call_sites(module: Module) -> Counter[str]:
    """At how many places each function is called."""
    sites = Counter[str]()
    for function in module.functions.values():
        sites.update(callees(function))
    return sites


def reachable(module: Module, roots: Iterable[str], *, rules: bool = True) -> set[str]:
    """The functions that `roots` need: what they call or take as values, and what they are derivatives of.

    Without `rules`, what only rules of derivatives need is left out.
    """
    found: set[str] = set()
    pending = [name for name in roots if name in module.functions]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        needed = symbols(module.functions[name], rules=rules)
        pending.extend(used for used in needed if used in module.functions)
    return found


def cycles_callees_first(
    module: Module, called: Callable[[Function], Iterable[str]] = callees
) -> Iterator[list[str]]:
    """The strongly connected components of the call graph, each after those it calls.  Who is `called` may be more.

    A component of several functions, or of one that calls itself, is a recursion.
    """
    names = list(module.functions)
    number = {name: position for position, name in enumerate(names)}
    edges = [
        [number[callee] for callee in called(function) if callee in number]
        for function in module.functions.values()
    ]
    for component in components(edges):
        yield [names[position] for position in reversed(component)]


def roots(module: Module) -> tuple[str, ...]:
    """Functions from which every defined function is reached by calls: those that no other function calls.

    Of functions that call each other in circles, and are called by none besides, the first.
    """
    order = {name: number for number, name in enumerate(module.functions)}
    head = {
        name: min(component, key=order.__getitem__)
        for component in cycles_callees_first(module)
        for name in component
    }
    calls = (
        (head[f.name], head.get(name)) for f in module.functions.values() for name in callees(f)
    )
    called = {callee for caller, callee in calls if caller != callee}
    called.update(rule for f in module.functions.values() for rule in f.rules.names)
    return tuple(
        name
        for name, function in module.functions.items()
        if head[name] == name
        and name not in called
        and not isinstance(function.declaration, Extern)
    )
