"""The type of a staged function with static parameters, whose names and types calls are then checked against.

The stub gives it where the first static parameter may be given by position; not where all are by keyword only, and not
where a type of the function has an `Any`, as mypy then finds that several overloads fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from mypy.nodes import ARG_NAMED, ARG_NAMED_OPT, ARG_OPT, ARG_POS
from mypy.plugin import CheckerPluginInterface, FunctionContext, MethodContext
from mypy.types import (
    CallableType,
    Instance,
    Parameters,
    ProperType,
    TupleType,
    Type,
    get_proper_type,
)

MAX_PARAMETERS = 8  # of Reps: the stub has no classes for more
_BY_NAME = (ARG_OPT, ARG_NAMED, ARG_NAMED_OPT)


def staged(ctx: FunctionContext | MethodContext) -> Type:
    """What @nk.staged makes of a function, the same for all overloads that fit it."""
    given = ctx.arg_types[0] if ctx.arg_types else []
    function = get_proper_type(given[0]) if given else None
    if not isinstance(function, CallableType) or _is_refusal(ctx.default_return_type):
        return ctx.default_return_type
    made = _made(ctx.api, function)
    return made if made is not None else ctx.default_return_type


def _is_refusal(type: Type) -> bool:
    """Whether the stub says by a name that the function cannot be staged."""
    found = get_proper_type(type)
    return isinstance(found, Instance) and found.type.name == "_AnnotateDataAsRep"


def _made(api: CheckerPluginInterface, function: CallableType) -> Instance | None:
    """None where the stub's answer is the only one there is."""
    result = _result(function)
    data: list[Type] = []
    for type, kind in zip(function.arg_types, function.arg_kinds, strict=True):
        inner = _in_rep(type) if kind == ARG_POS else None
        if inner is None:
            break
        data.append(inner)
    count = len(data)
    kinds = function.arg_kinds[count:]
    is_static = all(kind in _BY_NAME or kind == ARG_POS for kind in kinds)
    if result is None or not is_static or count > MAX_PARAMETERS or function.variables:
        return None
    if not kinds:
        return api.named_generic_type("nnkit.Rep", [_of_data(function, data, result)])
    rest = Parameters(function.arg_types[count:], kinds, function.arg_names[count:])
    return api.named_generic_type(f"nnkit._WithStatics{count}", [*data, result, rest])


def _of_data(function: CallableType, data: Sequence[Type], result: Type) -> CallableType:
    count = len(data)
    return CallableType(
        list(data), [ARG_POS] * count, [None] * count, result, fallback=function.fallback
    )


def _result(function: CallableType) -> ProperType | None:
    """What it returns, as a value: a Rep's, or a tuple of those of several."""
    returned = get_proper_type(function.ret_type)
    if isinstance(returned, TupleType):
        parts = [_in_rep(each) for each in returned.items]
        known = [each for each in parts if each is not None]
        fits = 1 < len(parts) == len(known) <= 4  # as many as the stub has overloads for
        return returned.copy_modified(items=list[Type](known)) if fits else None
    return _in_rep(returned)


def _in_rep(type: Type) -> ProperType | None:
    """X of `Rep[X]`."""
    found = get_proper_type(type)
    is_rep = isinstance(found, Instance) and found.type.fullname == "nnkit.Rep"
    return get_proper_type(found.args[0]) if isinstance(found, Instance) and is_rep else None
