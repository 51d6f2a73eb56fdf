"""`p.w` of a Rep[P] is told from other attributes that do not exist: the error says to write `p[P.w]`.

mypy asks no plugin about missing attributes.  So the names of a struct's fields become attributes of
`Rep`, in memory only, when the class or an annotation with it is analysed; any use of one is an error.
"""

from __future__ import annotations

from mypy.errorcodes import ATTR_DEFINED
from mypy.messages import format_type
from mypy.nodes import MDEF, MemberExpr, NameExpr, SymbolTableNode, TypeAlias, TypeInfo, Var
from mypy.plugin import AttributeContext
from mypy.types import AnyType, Instance, Type, TypeOfAny, UnionType, get_proper_type

STRUCT, REP, FIELD = "nnkit.Struct", "nnkit.Rep", "nnkit.Field"
UNFIT = "nnkit._NotAnAttribute"
"""A class that no value has: with a member of it, a Rep fits no protocol that asks for this name."""


def struct_of(node: object) -> TypeInfo | None:
    """The class that a name in an annotation stands for, if it is a struct."""
    if isinstance(node, TypeAlias):
        target = get_proper_type(node.target)
        node = target.type if isinstance(target, Instance) else None
    is_struct = isinstance(node, TypeInfo) and bool(node.mro) and node.has_base(STRUCT)
    return node if is_struct and isinstance(node, TypeInfo) else None


def add_placeholders(struct: TypeInfo, rep: TypeInfo, unfit: TypeInfo) -> None:
    """Have `rep` ask `refuse_field` about the names of the fields of this struct."""
    for owner in struct.mro:
        if owner.fullname == STRUCT:
            break
        for name, symbol in owner.names.items():
            if isinstance(symbol.node, Var) and not name.startswith("__") and rep.get(name) is None:
                var = Var(name, Instance(unfit, []))
                var.info = rep
                rep.names[name] = SymbolTableNode(
                    MDEF, var, plugin_generated=True, no_serialize=True
                )


def is_placeholder(symbol: SymbolTableNode | None) -> bool:
    return symbol is not None and symbol.plugin_generated and symbol.no_serialize


def refuse_field(name: str, ctx: AttributeContext) -> Type:
    """The error for an attribute that is a field of a struct, maybe not of the one at hand."""
    if ctx.context.line < 0:  # whether a Rep fits a protocol
        return ctx.default_attr_type
    type = get_proper_type(ctx.type)
    items = map(get_proper_type, type.items) if isinstance(type, UnionType) else [type]
    for rep in items:
        struct = _struct_in(rep)
        if struct is not None and _has_field(struct, name):
            value = ctx.context.expr if isinstance(ctx.context, MemberExpr) else None
            shown = value.name if isinstance(value, NameExpr) else "rep"
            field = f"{struct.name}.{name}"
            remedy = f"{shown}.set({field}, value)" if ctx.is_lvalue else f"{shown}[{field}]"
            _fail(f"{_missing(name, rep, ctx)}: write {remedy} for {shown}.{name}", ctx)
            return AnyType(TypeOfAny.from_error)
    if isinstance(type, Instance):
        _say_as_mypy(name, type, ctx)
    else:
        _fail(_missing(name, type, ctx), ctx)
    return AnyType(TypeOfAny.from_error)


def _struct_in(rep: Type) -> TypeInfo | None:
    inner = get_proper_type(rep.args[0]) if isinstance(rep, Instance) and rep.args else None
    return struct_of(inner.type) if isinstance(inner, Instance) else None


def _has_field(struct: TypeInfo, name: str) -> bool:
    """Whether a class declares it so; in those below it, mypy's data classes copy it as a property."""
    return any(declares_field(owner.names[name]) for owner in struct.mro if name in owner.names)


def declares_field(symbol: SymbolTableNode) -> bool:
    declared = get_proper_type(symbol.type) if symbol.type is not None else None
    return isinstance(declared, Instance) and declared.type.fullname == FIELD


def _missing(name: str, type: Type, ctx: AttributeContext) -> str:
    return f'{format_type(type, ctx.api.options)} has no attribute "{name}"'


def _fail(words: str, ctx: AttributeContext) -> None:
    ctx.api.fail(words, ctx.context, code=ATTR_DEFINED)


def _say_as_mypy(name: str, type: Instance, ctx: AttributeContext) -> None:
    """As if there were no placeholders, which count as attributes of similar names."""
    [names] = [owner.names for owner in type.type.mro if owner.fullname == REP]
    taken = {key: symbol for key, symbol in names.items() if is_placeholder(symbol)}
    for key in taken:
        del names[key]
    ctx.api.msg.has_no_attr(type, type, name, ctx.context)
    names.update(taken)
