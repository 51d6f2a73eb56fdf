"""Which calls the plugin looks at."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from mypy.nodes import TypeInfo
from mypy.plugin import (
    AttributeContext,
    ClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    Plugin,
)
from mypy.types import FunctionLike, Type

from . import fields, refusals, results, statics
from .lenses import lenses, taken_apart
from .sizes import check_sizes
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
        if name == "__matmul__":
            check_sizes(ctx)
        return results.reshape(ctx) if name == "reshape" else ctx.default_return_type

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        words = refusals.CONVERSIONS.get(fullname)
        return partial(refusals.note_conversion, words) if words is not None else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname == "builtins.bool":
            return refusals.truth
        if fullname.startswith(_OTHERS):
            return None
        if not fullname.startswith("nnkit."):
            return self._of_user
        if fullname == "nnkit.fields":
            return lambda ctx: lenses(ctx, _spans(taken_apart, ctx.api.path))
        return partial(self._function, _FUNCTIONS.get(fullname))

    def _function(
        self, result: Callable[[FunctionContext], Type] | None, ctx: FunctionContext
    ) -> Type:
        self._refuse_truth(ctx)
        note_unstaged(ctx)
        return result(ctx) if result is not None else ctx.default_return_type

    def get_type_analyze_hook(self, fullname: str) -> None:
        """Types are mypy's own affair; of an annotation with a struct, the fields become known."""
        if not fullname.startswith(_OTHERS):
            found = self.lookup_fully_qualified(fullname)
            self._know_fields(found.node if found is not None else None)

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return None if fullname.startswith(_OTHERS) else lambda ctx: self._know_fields(ctx.cls.info)

    def _know_fields(self, node: object) -> None:
        struct = fields.struct_of(node)
        found = map(self.lookup_fully_qualified, (fields.REP, fields.UNFIT))
        match [each.node if each is not None else None for each in found] if struct else []:
            case [TypeInfo() as rep, TypeInfo() as unfit] if struct is not None:
                fields.add_placeholders(struct, rep, unfit)
            case _:
                pass

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        owner, _, name = fullname.rpartition(".")
        if owner != fields.REP:
            return None
        symbol = self.lookup_fully_qualified(fullname)
        return partial(fields.refuse_field, name) if fields.is_placeholder(symbol) else None

    def _of_user(self, ctx: FunctionContext) -> Type:
        note_unstaged(ctx)
        return ctx.default_return_type

    def _refuse_truth(self, ctx: MethodContext | FunctionContext) -> None:
        refusals.refuse_truth(ctx, _spans(refusals.conditions_of, ctx.api.path))


@lru_cache(maxsize=8)  # files are checked one after the other
def _spans(find: Callable[[str], set[refusals.Span]], path: str) -> set[refusals.Span]:
    try:
        return find(Path(path).read_text())
    except (OSError, SyntaxError, UnicodeDecodeError):  # mypy was given text, or says what is wrong
        return set()


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    del version  # any that loads this
    return NNKitPlugin
