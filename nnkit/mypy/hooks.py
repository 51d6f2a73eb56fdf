"""Which calls the plugin looks at."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Type

from . import refusals, results, statics
from .unstaged import note_unstaged

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor")
_OPERATORS = {f"__{name}__" for name in (*_ARITHMETIC, *_COMPARISONS)}
_FUNCTIONS = {
    "nnkit.concat": results.concat,
    "nnkit.einsum": results.einsum,
    "nnkit.staged": statics.staged,
}
_OTHERS = ("builtins.", "typing.", "collections.", "numpy.", "functools.", "dataclasses.")
"""Of which functions there is nothing to say."""


class NNKitPlugin(Plugin):
    """Hooks for the methods of `Rep` and for functions of `nnkit`."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname == "builtins.str.format":
            return refusals.formatted
        if fullname == "nnkit._Staging.__call__":
            return statics.staged
        owner, _, name = fullname.rpartition(".")
        if not owner.startswith("nnkit."):
            return None
        return partial(self._method, name if owner == "nnkit.Rep" else "")

    def _method(self, name: str, ctx: MethodContext) -> Type:
        self._refuse_truth(ctx)
        if name in _OPERATORS:
            return results.operator(ctx)
        return results.reshape(ctx) if name == "reshape" else ctx.default_return_type

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname.startswith(_OTHERS):
            return None
        if not fullname.startswith("nnkit."):
            return self._of_user
        return partial(self._function, _FUNCTIONS.get(fullname))

    def _function(
        self, result: Callable[[FunctionContext], Type] | None, ctx: FunctionContext
    ) -> Type:
        self._refuse_truth(ctx)
        note_unstaged(ctx)
        return result(ctx) if result is not None else ctx.default_return_type

    def _of_user(self, ctx: FunctionContext) -> Type:
        note_unstaged(ctx)
        return ctx.default_return_type

    def _refuse_truth(self, ctx: MethodContext | FunctionContext) -> None:
        refusals.refuse_truth(ctx, _conditions_in(ctx.api.path))


@lru_cache(maxsize=4)  # files are checked one after the other
def _conditions_in(path: str) -> set[refusals.Span]:
    try:
        return refusals.conditions_of(Path(path).read_text())
    except (OSError, SyntaxError, UnicodeDecodeError):  # mypy was given text, or says what is wrong
        return set()


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    del version  # any that loads this
    return NNKitPlugin
