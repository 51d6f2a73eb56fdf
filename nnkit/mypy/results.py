"""What calls of functions and methods result in, where their arguments say more than overloads can follow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mypy.nodes import (
    Expression,
    IndexExpr,
    IntExpr,
    ListExpr,
    MemberExpr,
    StrExpr,
    TupleExpr,
    UnaryExpr,
)
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, LiteralType, Type

from .dimensions import (
    UNKNOWN,
    dimensions,
    is_known,
    is_named,
    shown,
    size_of,
    tensor_in,
    with_dimensions,
)
from .sizes import check_sizes

MAX_RANK = 5  # the highest that has a class, Tensor5D


def operator(ctx: MethodContext) -> Type:
    """x + y and the like: what the left operand does not name, the right one does."""
    check_sizes(ctx)
    left, right, made = tensor_in(ctx.type), _first_tensor(ctx), tensor_in(ctx.default_return_type)
    if left is None or right is None or made is None:
        return ctx.default_return_type
    named = dimensions(made)
    for position, other in enumerate(reversed(dimensions(right)), 1):
        if position <= len(named) and not is_known(named[-position]):
            named[-position] = other
    return with_dimensions(ctx.default_return_type, named)


def _first_tensor(ctx: MethodContext) -> Instance | None:
    return tensor_in(ctx.arg_types[0][0]) if ctx.arg_types and ctx.arg_types[0] else None


def reshape(ctx: MethodContext) -> Type:
    """x.reshape(x.shape[0], -1): an extent of x keeps its name; sizes that are known must have one product."""
    tensor = tensor_in(ctx.type)
    given = [each for group in ctx.args for each in group]
    if len(given) == 1 and isinstance(given[0], TupleExpr):
        given = given[0].items
    if tensor is None or tensor_in(ctx.default_return_type) is None:
        return ctx.default_return_type
    before = dimensions(tensor)
    found = [_extent(ctx, each) for each in given]
    rest = [each for each in before if is_named(each)]
    for each in found:
        if each in rest:
            rest.remove(each)
    sizes_before, sizes = [size_of(each) for each in before], [_size(each) for each in given]
    for position, size in enumerate(sizes):
        if size == -1:
            found[position] = _left_over(ctx, before, rest, sizes_before, sizes)
    _check_product(ctx, sizes_before, sizes)
    return with_dimensions(ctx.default_return_type, found)


def _extent(ctx: MethodContext, given: Expression) -> Type:
    """The dimension that an argument of reshape makes."""
    size = _size(given)
    if size is not None:
        tensor = tensor_in(ctx.type)
        has_sizes = tensor is not None and any(map(size_of, dimensions(tensor)))
        return _literal(ctx, size) if has_sizes else UNKNOWN
    match given:
        case IndexExpr(base=MemberExpr(name="shape", expr=owner), index=index):
            tensor, axis = tensor_in(ctx.api.get_expression_type(owner)), _size(index)
            axes = dimensions(tensor) if tensor is not None else []
            return axes[axis] if axis is not None and -len(axes) <= axis < len(axes) else UNKNOWN
        case _:
            return UNKNOWN


def _literal(ctx: MethodContext, size: int) -> Type:
    return LiteralType(size, ctx.api.named_generic_type("builtins.int", []))


def _left_over(
    ctx: MethodContext,
    before: Sequence[Type],
    rest: Sequence[Type],
    sizes_before: Sequence[int | None],
    sizes: Sequence[int | None],
) -> Type:
    """What −1 stands for: the one name that is left, or what the sizes leave."""
    if len(rest) == 1 and all(map(is_named, before)) and not any(s and s > 0 for s in sizes):
        return rest[0]
    known, others = _product(sizes_before), _product([s for s in sizes if s != -1])
    if known is None or not others or known % others:
        return UNKNOWN
    return _literal(ctx, known // others)


def _check_product(
    ctx: MethodContext, before: Sequence[int | None], after: Sequence[int | None]
) -> None:
    have, wanted = _product(before), _product([size for size in after if size != -1])
    if have is None or wanted is None:
        return
    if (have % wanted if wanted else have) if -1 in after else have != wanted:
        ctx.api.fail(
            f"cannot reshape {_shape(before)} to {_shape(after)}: {have} elements do not fit",
            ctx.context,
        )


def _product(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _shape(sizes: Sequence[int | None]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in sizes)}]"


def _size(given: Expression) -> int | None:
    """The number that is written there."""
    if isinstance(given, IntExpr):
        return given.value
    is_negative = isinstance(given, UnaryExpr) and given.op == "-"
    if is_negative and isinstance(given, UnaryExpr) and isinstance(given.expr, IntExpr):
        return -given.expr.value
    return None


def concat(ctx: FunctionContext) -> Type:
    """concat([x, y], axis=0): the other axes keep their names, which must agree."""
    parts = ctx.args[0][0] if ctx.args and ctx.args[0] else None
    if not isinstance(parts, ListExpr | TupleExpr):
        return ctx.default_return_type
    if not parts.items:
        ctx.api.fail("concat takes at least one tensor, and this list is empty", ctx.context)
        return ctx.default_return_type
    tensors = [tensor_in(ctx.api.get_expression_type(each)) for each in parts.items]
    each = [dimensions(tensor) for tensor in tensors if tensor is not None]
    axis = _size(ctx.args[1][0]) if len(ctx.args) > 1 and ctx.args[1] else 0
    if axis is None or len(each) != len(tensors) or len({len(found) for found in each}) != 1:
        return ctx.default_return_type
    joined = [
        UNKNOWN if i == axis % len(each[0]) else _common(ctx, i, each) for i in range(len(each[0]))
    ]
    return with_dimensions(ctx.default_return_type, joined)


def _common(ctx: FunctionContext, axis: int, each: Sequence[Sequence[Type]]) -> Type:
    """The dimension of an axis along which nothing is joined."""
    known = [found[axis] for found in each if is_known(found[axis])]
    other = next((one for one in known if one != known[0]), None)
    if other is not None:
        ctx.api.fail(
            f"concat joins {shown(known[0])} and {shown(other)} on axis {axis}, where they must agree",
            ctx.context,
        )
        return UNKNOWN
    return known[0] if known else UNKNOWN


def einsum(ctx: FunctionContext) -> Type:
    """einsum("ij,jk->ik", x, y): a letter has one dimension."""
    given = [each for group in ctx.args for each in group]
    if not given or not isinstance(given[0], StrExpr):
        return ctx.default_return_type
    inputs, arrow, output = given[0].value.replace(" ", "").partition("->")
    letters: dict[str, Type] = {}
    for term, operand in zip(inputs.split(","), given[1:], strict=False):
        tensor = tensor_in(ctx.api.get_expression_type(operand))
        found = dimensions(tensor) if tensor is not None else []
        if len(found) != len(term):
            return ctx.default_return_type
        for letter, dimension in zip(term, found, strict=True):
            before = letters.get(letter, UNKNOWN)
            if is_known(before) and is_known(dimension) and before != dimension:
                ctx.api.fail(
                    f"einsum: the axes {letter!r} are {shown(before)} and {shown(dimension)}",
                    ctx.context,
                )
            letters[letter] = before if is_known(before) else dimension
    result = output if arrow else _implicit(inputs)
    if any(letter not in letters for letter in result):
        return ctx.default_return_type
    first = tensor_in(ctx.api.get_expression_type(given[1])) if given[1:] else None
    if first is None or len(result) > MAX_RANK:
        return ctx.default_return_type
    found = [first.args[0], *(letters[letter] for letter in result)]
    tensor = ctx.api.named_generic_type(f"nnkit.Tensor{len(result)}D", found)
    return ctx.api.named_generic_type("nnkit.Rep", [tensor])


def _implicit(inputs: str) -> str:
    """The letters of a result that is not given: those that occur once, sorted."""
    return "".join(sorted(one for one in {*inputs} - {","} if inputs.count(one) == 1))
