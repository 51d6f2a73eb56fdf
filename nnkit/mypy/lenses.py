"""`nk.fields(P)` where it is taken apart: a lens for each field, with its type."""

from __future__ import annotations

import ast

from mypy.nodes import GDEF, MemberExpr, NameExpr, RefExpr, TypeInfo
from mypy.plugin import FunctionContext
from mypy.types import Instance, TupleType, Type, get_proper_type

from .fields import STRUCT, declares_field, struct_of
from .refusals import Span, span

LENS = "nnkit.Lens"


def taken_apart(source: str) -> set[Span]:
    """The calls in a file that are unpacked or subscripted: a loop over lenses wants one type for all."""
    found: set[Span] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Call() as call):
                found.add(span(call))
            case ast.Subscript(value=ast.Call() as call):
                found.add(span(call))
            case _:
                pass
    return found


def lenses(ctx: FunctionContext, calls: set[Span]) -> Type:
    """A tuple with the lens of each field, as `P.field` has it, if this call is one of those."""
    where, made = ctx.context, get_proper_type(ctx.default_return_type)
    [[cls]] = ctx.args
    struct = struct_of(cls.node) if isinstance(cls, RefExpr) else None
    is_apart = (where.line, where.column, where.end_line, where.end_column) in calls
    if not is_apart or struct is None or struct.is_generic() or not isinstance(made, Instance):
        return made
    own = struct.mro[: [each.fullname for each in struct.mro].index(STRUCT)]
    owners: dict[str, TypeInfo] = {}  # in order, those of the bases first
    for owner in reversed(own):
        owners |= {name: owner for name, symbol in owner.names.items() if declares_field(symbol)}
    found = [_lens(name, owner, struct, ctx) for name, owner in owners.items()]
    exact = [each for each in found if each is not None]
    return TupleType(list(exact), made) if found and len(exact) == len(found) else made


def _lens(name: str, owner: TypeInfo, struct: TypeInfo, ctx: FunctionContext) -> Instance | None:
    """That of the class which declares the field, as mypy's data classes hide it in those below."""
    cls = NameExpr(owner.name)
    cls.node, cls.kind, cls.fullname = owner, GDEF, owner.fullname
    member = MemberExpr(cls, name)
    cls.set_line(ctx.context)
    member.set_line(ctx.context)
    found = get_proper_type(ctx.api.get_expression_type(member))
    if not isinstance(found, Instance) or found.type.fullname != LENS:
        return None
    return found.copy_modified(args=[Instance(struct, []), *found.args[1:]])
