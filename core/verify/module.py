"""Rules 6 to 9, and the whole: a module's functions, variables and declarations."""

from __future__ import annotations

from collections.abc import Iterator

from ..autodiff.declaration import gradient_type, tangent_type
from ..errors import NNKitError, VerifyError
from ..ir import Extern, Function, GradientOf, Module, TangentOf
from .function import FunctionCheck, guarded
from .instruction import listed
from .types import Types

ATTRIBUTES = ("inline",)
"""What may stand before a function with an exclamation mark."""


def verify(module: Module) -> None:
    """Raises: VerifyError listing every violation."""
    found = violations(module)
    if found:
        count = f"{len(found)} violation{'s' * (len(found) > 1)}"
        raise VerifyError("\n".join([f"module {module.name!r} has {count}:", *found]))


def violations(module: Module) -> list[str]:
    """Every violation, in order of the text."""
    return [f"  {message}" for message in guarded(_module_violations(module))]


def _module_violations(module: Module) -> Iterator[str]:
    types = Types(module)
    yield from guarded(types.defined())
    yield from guarded(_variable_violations(module, types))
    for name, function in module.functions.items():
        messages = guarded(_function_violations(name, function, module, types))
        if function.body is not None and function.body.blocks:
            messages += FunctionCheck(module, function, types).run(function.body)
        yield from (f"@{function.name}: {message}" for message in messages)


def _variable_violations(module: Module, types: Types) -> Iterator[str]:
    for name, variable in module.variables.items():
        if name != variable.name:
            yield f"@{variable.name}: stands in the module as @{name}"
        if name in module.functions:
            yield f"@{name}: is both a variable and a function"
        yield from (f"@{name}: {message}" for message in types.check(variable.type))


def _function_violations(
    name: str, function: Function, module: Module, types: Types
) -> Iterator[str]:
    """What is wrong with a function, its blocks aside."""
    if name != function.name:
        yield f"stands in the module as @{name}"
    yield from types.check(function.type)
    for attribute in function.attributes:
        if attribute not in ATTRIBUTES:
            known = ", ".join(f"!{known}" for known in ATTRIBUTES)
            yield f"has the attribute !{attribute}; known is {known}"
    if function.declaration is not None:
        yield from _declaration_violations(function, module)
        if function.body is not None:
            what = "says it is elsewhere" if _is_extern(function) else "asks for one"
            yield f"has both a body and a declaration that {what}"
    elif function.body is None:
        yield "has neither a body nor a declaration of what it is"
    if function.body is None:
        return
    if not function.body.blocks:
        yield "has no entry block"
        return
    given = tuple(argument.type for argument in function.entry.arguments)
    expected = function.type.parameters
    if given != expected:
        yield f"the entry takes ({listed(given)}), the function ({listed(expected)})"


def _declaration_violations(function: Function, module: Module) -> Iterator[str]:
    """Rule 7: the primal can be differentiated as it is asked, and gives the declared type."""
    declaration = function.declaration
    if not isinstance(declaration, GradientOf | TangentOf):
        return
    what = "gradient" if isinstance(declaration, GradientOf) else "tangent"
    primal = module.functions.get(declaration.primal)
    if primal is None:
        yield f"is the {what} of @{declaration.primal}, which does not exist"
        return
    reason = _without_body(function, module)
    if reason:
        yield f"is the {what} of @{declaration.primal}{reason}"
        return
    try:
        if isinstance(declaration, GradientOf):
            expected = gradient_type(primal.type, declaration)
        else:
            expected = tangent_type(primal.type, declaration)
    except NNKitError as error:
        yield str(error)
        return
    if expected != function.type:
        yield f"is declared as {function.type}; the {what} is {expected}"


def _without_body(function: Function, module: Module) -> str:
    """Why what a declaration is a derivative of, declarations included, ends at no body; or nothing."""
    seen = {function.name}
    current = function
    while current.primal is not None:
        name = current.primal
        if name in seen:
            return ", which is a derivative of itself"
        seen.add(name)
        following = module.functions.get(name)
        if following is None:
            return ""  # said of the declaration that names it
        if _is_extern(following):
            return ", which is defined elsewhere" if name == function.primal else ""
        current = following
    return ""


def _is_extern(function: Function) -> bool:
    return isinstance(function.declaration, Extern)
