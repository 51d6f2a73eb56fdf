"""Rules 6 to 9, and the whole: a module's functions, variables and declarations."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.batches import declared_batch
from ..analysis.custom_rules import rule_violations
from ..analysis.derivatives import declared_type
from ..errors import NNKitError, VerifyError
from ..ir import BatchOf, Declaration, Extern, Function, GradientOf, Module, TangentOf, Variable
from ..ir.donation import donation_violations, is_donation
from ..ir.loop_schedules import schedule_of
from ..ops.aggregate import listed
from ..text.lexer import written
from .error_location import with_locations
from .function import FunctionCheck, guarded
from .stage import form_violations
from .types import Types

ATTRIBUTES = ("inline", "noinline", "checkpoint")
"""What may stand before a function with an exclamation mark, besides schedules of loops and donations."""


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
        yield from (f"{written('@', function.name)}: {message}" for message in messages)


def _variable_violations(module: Module, types: Types) -> Iterator[str]:
    for name, variable in module.variables.items():
        found = guarded(_one_variable(name, variable, module, types))
        shown = written("@", variable.name)
        yield from (f"{shown}: {message}" for message in with_locations(found, variable.location))


def _one_variable(name: str, variable: Variable, module: Module, types: Types) -> Iterator[str]:
    if name != variable.name:
        yield f"stands in the module as {written('@', name)}"
    if name in module.functions:
        yield "is both a variable and a function"
    yield from types.check(variable.type)


def _function_violations(
    name: str, function: Function, module: Module, types: Types
) -> Iterator[str]:
    """What is wrong with a function, its blocks aside."""
    head = guarded(_head_violations(name, function, types))
    yield from with_locations(head, function.location)
    yield from guarded(_attribute_violations(function))
    rules = guarded(rule_violations(function, module))
    yield from with_locations(rules, function.rules.location, function.location)
    yield from with_locations(guarded(form_violations(function, module.stage)), function.location)
    if isinstance(function.declaration, GradientOf | TangentOf):
        derivative = guarded(_derivative_violations(function, function.declaration, module))
        yield from with_locations(derivative, function.declaration.location, function.location)
        if not derivative:
            yield from with_locations(guarded(_declared_type(function, module)), function.location)
    if isinstance(function.declaration, BatchOf):
        batch = guarded(_batch_violations(function, function.declaration, module))
        yield from with_locations(batch, function.declaration.location, function.location)
    if function.body is not None:
        entry = function.entry.location if function.body.blocks else None
        yield from with_locations(guarded(_entry_violations(function)), entry, function.location)


def _head_violations(name: str, function: Function, types: Types) -> Iterator[str]:
    """What is wrong with what stands before the body."""
    if name != function.name:
        yield f"stands in the module as {written('@', name)}"
    yield from types.check(function.type)
    if function.declaration is not None and function.body is not None:
        what = "says it is elsewhere" if _is_extern(function) else "asks for one"
        yield f"has both a body and a declaration that {what}"
    elif function.declaration is None and function.body is None:
        yield "has neither a body nor a declaration of what it is"


def _attribute_violations(function: Function) -> Iterator[str]:
    """Rule 9, each with the attribute's place."""
    for attribute in function.attributes:
        if (
            attribute not in ATTRIBUTES
            and schedule_of([attribute]) is None
            and not is_donation(attribute)
        ):
            known = ", ".join(written("!", known) for known in ATTRIBUTES)
            message = f"has the attribute {written('!', attribute)}; known are {known}"
            place = function.attribute_locations.get(attribute)
            yield from with_locations([message], place, function.location)
    yield from with_locations(donation_violations(function), function.location)


def _entry_violations(function: Function) -> Iterator[str]:
    """Rule 10."""
    if not function.body or not function.body.blocks:
        yield "has no entry block"
        return
    given = tuple(argument.type for argument in function.entry.arguments)
    expected = function.type.parameters
    if given != expected:
        yield f"the entry takes ({listed(given)}), the function ({listed(expected)})"


def _derivative_violations(
    function: Function, declaration: GradientOf | TangentOf, module: Module
) -> Iterator[str]:
    """Rule 7: the primal can be differentiated as it is asked."""
    what = _kind(declaration)
    primal = module.functions.get(declaration.primal)
    if primal is None:
        yield f"is the {what} of {written('@', declaration.primal)}, which does not exist"
        return
    reason = _without_body(function, module)
    if reason:
        yield f"is the {what} of {written('@', declaration.primal)}{reason}"
        return
    try:
        declared_type(primal.type, function)
    except NNKitError as error:
        yield str(error)


def _batch_violations(function: Function, declaration: BatchOf, module: Module) -> Iterator[str]:
    """Rule 7, of what is batched."""
    primal = module.functions.get(declaration.primal)
    if primal is None:
        yield f"is the batch of {written('@', declaration.primal)}, which does not exist"
        return
    reason = _without_body(function, module)
    if reason:
        yield f"is the batch of {written('@', declaration.primal)}{reason}"
        return
    try:
        declared_batch(primal.type, function)
    except NNKitError as error:
        yield str(error)


def _declared_type(function: Function, module: Module) -> Iterator[str]:
    """Rule 7: a derivative that exists has the type that is declared."""
    assert function.primal is not None
    expected = declared_type(module.functions[function.primal].type, function)
    if expected != function.type:
        yield f"is declared as {function.type}; the {_kind(function.declaration)} is {expected}"


def _kind(declaration: Declaration | None) -> str:
    if isinstance(declaration, BatchOf):
        return "batch"
    return "gradient" if isinstance(declaration, GradientOf) else "tangent"


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
