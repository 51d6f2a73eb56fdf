"""Types of the functions that derivatives are computed by in place of a function's body (`CustomRules`).

    func @f: (T) -> U
    jvp @t                 (T, T) -> U          arguments, tangents of arguments -> tangents of results
    vjp @p                 (T, U) -> T          arguments, cotangents of results -> cotangents of arguments
    vjp @p saving @s       @s: (T) -> (U, S)    arguments -> results, what is saved
                           @p: (S, U) -> T      what is saved, cotangents of results -> cotangents of arguments

They are compared leaf by leaf, so that they are right before and after tuples and structs are taken apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import NNKitError
from ..ir import Function, Module
from ..ops.leaves import leaves_of
from ..types import FunctionType, TensorType, Type, written


def leaf_types(*types: Type) -> list[Type]:
    """The types of the leaves of values of these types."""
    return [leaf.type for type in types for leaf in leaves_of(type, large_arrays=False)]


def saved_types(function: FunctionType, saving: FunctionType) -> list[Type]:
    """What `saving` returns behind the results of `function`, leaf by leaf."""
    return leaf_types(saving.result)[len(leaf_types(function.result)) :]


def rule_violations(function: Function, module: Module) -> Iterator[str]:
    """What is wrong with the rules of `function`: functions that do not exist, or of other types."""
    rules = function.rules
    if not rules:
        return
    missing = [name for name in rules.names if name not in module.functions]
    if missing:
        for name in missing:
            yield f"has the rule {written('@', name)}, which does not exist"
        return
    if rules.saving is not None and rules.vjp is None:
        yield "has a rule that saves, and none for the way back"
        return
    arguments, results = leaf_types(*function.type.parameters), leaf_types(function.type.result)
    other = next((x for x in (*arguments, *results) if not isinstance(x, TensorType)), None)
    if other is not None:
        yield f"has rules of its derivatives and takes or returns a {other}: they are of tensors"
        return
    given, before = arguments, "arguments"
    if rules.saving is not None:
        saving = module.functions[rules.saving].type
        if leaf_types(*saving.parameters) != arguments:
            yield _wrong("takes the arguments", rules.saving, arguments, saving.parameters)
            return
        if leaf_types(saving.result)[: len(results)] != results:
            yield _wrong("returns the results first", rules.saving, results, [saving.result])
            return
        given, before = saved_types(function.type, saving), "what is saved"
    if rules.jvp is not None:
        wanted = [*arguments, *arguments]
        yield from _check(module, rules.jvp, "arguments and their tangents", wanted, results)
    if rules.vjp is not None:
        what = f"{before} and cotangents of the results"
        yield from _check(module, rules.vjp, what, [*given, *results], arguments)


def _check(
    module: Module, name: str, what: str, parameters: Sequence[Type], results: Sequence[Type]
) -> Iterator[str]:
    type = module.functions[name].type
    try:
        found, returned = leaf_types(*type.parameters), leaf_types(type.result)
    except NNKitError as error:  # a type that is no good, which is said elsewhere
        yield str(error)
        return
    if found != parameters:
        yield _wrong(f"takes {what}", name, parameters, type.parameters)
    if returned != results:
        kind = (
            "tangents of the results" if "tangents" in what.split() else "cotangents of arguments"
        )
        yield _wrong(f"returns {kind}", name, results, [type.result])


def _wrong(what: str, name: str, wanted: Sequence[Type], found: Sequence[Type]) -> str:
    shown, given = (", ".join(map(str, types)) for types in (wanted, found))
    return f"has the rule {written('@', name)}, which {what}: ({shown}), not ({given})"
