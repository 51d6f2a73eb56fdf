"""A note beside mypy's error for data where a plain function takes Reps: that staged functions take both."""

from __future__ import annotations

from mypy.nodes import CallExpr, RefExpr
from mypy.plugin import FunctionContext
from mypy.types import CallableType, Instance, Overloaded, Type, get_proper_type

from .dimensions import is_rep

_DATA = ("nnkit.AnyTensor", "nnkit.Struct")


def note_unstaged(ctx: FunctionContext) -> None:
    """Say what to decorate, if a function is called with data for a Rep; of overloads, the last is to refuse data."""
    call = ctx.context
    given = [group[0] if group else None for group in ctx.arg_types]
    if not any(map(_is_data, given)) or not isinstance(call, CallExpr):
        return
    function = get_proper_type(ctx.api.get_expression_type(call.callee))
    is_overloaded = isinstance(function, Overloaded)
    if isinstance(function, Overloaded):
        function = function.items[-1]
    if not isinstance(function, CallableType) or not isinstance(call.callee, RefExpr):
        return
    pairs = zip(given, function.arg_types, strict=False)
    refuses = _is_refusal if is_overloaded else is_rep
    if any(_is_data(data) and refuses(taken) for data, taken in pairs):
        name = call.callee.fullname.rpartition(".")[2]
        is_ours = call.callee.fullname.startswith("nnkit.")
        ctx.api.msg.note(OURS.format(name) if is_ours else PLAIN.format(name), call)


PLAIN = "{0} takes Reps: decorate it with @nk.staged, and it takes data, too"
OURS = (
    "{0} is for functions decorated with @nk.staged; of data, {0}(nk.const(x)).eval() is the value"
)
REFUSAL = "DecorateTheFunctionWithNkStaged"


def _is_refusal(type: Type) -> bool:
    return REFUSAL in str(type)


def _is_data(type: Type | None) -> bool:
    found = get_proper_type(type) if type is not None else None
    return isinstance(found, Instance) and any(map(found.type.has_base, _DATA))
