"""Derives the JVP and VJP rules of every op from its form of differentiation.

| form        | reverse (cotangents)                    | forward (tangents)          |
|-------------|-----------------------------------------|-----------------------------|
| Elementwise | ct · ∂y/∂x, summed to the shape of x    | Σ dx · ∂y/∂x                |
| Linear      | the transpose                           | the op itself, on tangents  |
| Bilinear    | the transpose                           | op(dx, y) + op(x, dy)       |
| explicit    | the op's `vjp`                          | the op's `jvp`              |

Products are strong: 0 where a factor is 0, whatever the other (`StrongMultiply`), as long as none is a number.
None is a zero that costs nothing.
Source: Radul, Paszke, Frostig, Johnson & Maclaurin 2022, "You only linearize once".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import DifferentiationError, InternalError
from ..ir import Emitter, Op, Value
from ..ops.arithmetic import Add, Multiply, Negate, StrongMultiply
from ..ops.comparison import Select
from ..ops.forms import Bilinear, Elementwise, Linear, Partial
from ..ops.literal import constant, number_of
from ..ops.reduction import broadcast_to, sum_to_shape
from ..types import broadcast_shapes, scalar

Derivatives: TypeAlias = "tuple[Value | None, ...]"


def vjp_of(
    b: Emitter,
    op: Op,
    ys: Sequence[Value],
    xs: Sequence[Value],
    cts: Sequence[Value | None],
) -> Derivatives:
    """Reverse: the cotangents of the operands from those of the results.

    Raises: DifferentiationError when `op` has no derivative.
    """
    wanted = [x.tensor.dtype.is_float for x in xs]
    if not any(wanted) or all(ct is None for ct in cts):
        return (None,) * len(xs)
    check_differentiable(op)
    found: Sequence[Value | None]
    match op:
        case Elementwise():
            found = _pull_elementwise(b, op, ys[0], xs, _only(cts))
        case Linear() | Bilinear():
            found = op.transpose_rule(b, xs, _only(cts))
        case _:
            found = op.vjp(b, ys, xs, cts)
    return _checked(
        op, [ct if is_float else None for ct, is_float in zip(found, wanted, strict=True)], xs
    )


def jvp_of(
    b: Emitter,
    op: Op,
    ys: Sequence[Value],
    xs: Sequence[Value],
    dxs: Sequence[Value | None],
) -> Derivatives:
    """Forward: the tangents of the results from those of the operands.

    Raises: DifferentiationError when `op` has no derivative.
    """
    wanted = [y.tensor.dtype.is_float for y in ys]
    if not any(wanted) or all(dx is None for dx in dxs):
        return (None,) * len(ys)
    check_differentiable(op)
    found: Sequence[Value | None]
    match op:
        case Elementwise():
            found = (_push_elementwise(b, op, ys[0], xs, dxs),)
        case Linear():
            found = (_push_linear(b, op, xs, dxs),)
        case Bilinear():
            found = (_push_bilinear(b, op, xs, dxs),)
        case _:
            found = op.jvp(b, ys, xs, dxs)
    return _checked(
        op, [dy if is_float else None for dy, is_float in zip(found, wanted, strict=True)], ys
    )


def check_differentiable(op: Op) -> None:
    """Raises: DifferentiationError with the op's reason, when it has one."""
    if op.not_differentiable:
        raise DifferentiationError(f"{op.name} cannot be differentiated: {op.not_differentiable}")


def add(b: Emitter, first: Value | None, second: Value | None) -> Value | None:
    """The sum of two derivatives either of which may be zero."""
    if first is None or second is None:
        return first or second
    return b.emit(Add(), first, second)


def _pull_elementwise(
    b: Emitter, op: Elementwise, y: Value, xs: Sequence[Value], ct: Value
) -> list[Value | None]:
    found: list[Value | None] = []
    for x, partial in zip(xs, op.partials(b, y, *xs), strict=True):
        flows = partial is not None and x.tensor.dtype.is_float
        product = _product(b, ct, partial, (y, *xs)) if flows else None
        found.append(product and sum_to_shape(b, product, x.tensor.shape))
    return found


def _push_elementwise(
    b: Emitter,
    op: Elementwise,
    y: Value,
    xs: Sequence[Value],
    dxs: Sequence[Value | None],
) -> Value | None:
    total: Value | None = None
    for dx, partial in zip(dxs, op.partials(b, y, *xs), strict=True):
        if dx is not None and partial is not None:
            total = add(b, total, _product(b, dx, partial, (y, *xs)))
    return total and broadcast_to(b, total, y.tensor.shape)


def _push_linear(
    b: Emitter, op: Linear, xs: Sequence[Value], dxs: Sequence[Value | None]
) -> Value | None:
    chosen = op.linear_operands
    linear = range(len(xs)) if chosen is None else chosen
    if all(dxs[position] is None for position in linear):
        return None
    operands = [
        (dx or constant(b, x.tensor, 0)) if position in linear else x
        for position, (x, dx) in enumerate(zip(xs, dxs, strict=True))
    ]
    return b.emit(op, *operands)


def _push_bilinear(
    b: Emitter, op: Bilinear, xs: Sequence[Value], dxs: Sequence[Value | None]
) -> Value | None:
    x, y = xs
    dx, dy = dxs
    return add(b, dx and b.emit(op, dx, y), dy and b.emit(op, x, dy))


def _product(
    b: Emitter, derivative: Value, partial: Partial, given: Sequence[Value]
) -> Value | None:
    """`derivative · partial`, without the work that a number as either spares.

    `given` are the values the partial was made from.
    """
    if not isinstance(partial, Value):
        return _scaled(b, derivative, partial)
    shape = broadcast_shapes((derivative.tensor.shape, partial.tensor.shape))
    number = _number(partial)
    if number is not None:
        return _scaled(b, broadcast_to(b, derivative, shape), number)
    if _is_mask(partial, given):
        return _masked(b, derivative, partial, given)
    number = _number(derivative)
    if number is not None:
        return _scaled(b, broadcast_to(b, partial, shape), number)
    return b.emit(StrongMultiply(), derivative, partial)


def _scaled(b: Emitter, x: Value, number: float | None) -> Value | None:
    """`x · number`: plain, as a number that is finite and not 0 needs no test."""
    if not number:
        return None
    if number == 1.0:
        return x
    known = _number(x)
    if known is not None:
        return constant(b, x.tensor, known * number)
    if number == -1.0:
        return b.emit(Negate(), x)
    op = Multiply() if math.isfinite(number) else StrongMultiply()
    return b.emit(op, x, constant(b, scalar(x.tensor.dtype), number))


def _masked(b: Emitter, derivative: Value, partial: Value, given: Sequence[Value]) -> Value | None:
    """ct · select(u, v, c) = select(ct · u, ct · v, c), where a branch is a number and costs no product."""
    assert partial.producer is not None
    *branches, condition = partial.producer.operands
    chosen = [_product(b, derivative, branch, given) for branch in branches]
    if all(product is None for product in chosen):
        return None
    zero = constant(b, scalar(derivative.tensor.dtype), 0)
    return b.emit(Select(), *(product or zero for product in chosen), condition)


def _is_mask(partial: Value, given: Sequence[Value]) -> bool:
    """Whether `partial` was made by its op as a choice that has a number among its branches."""
    if partial in given or partial.producer is None or not isinstance(partial.op, Select):
        return False
    branches = partial.producer.operands[:2]
    return any(_number(branch) is not None or _is_mask(branch, given) for branch in branches)


def _number(value: Value) -> float | None:
    """The number that every element is, when that is known."""
    while (moved := value.producer) is not None and moved.op.is_moved and len(moved.operands) == 1:
        (value,) = moved.operands
    number: float | None = number_of(value)
    return number


def _only(derivatives: Sequence[Value | None]) -> Value:
    (derivative,) = derivatives
    assert derivative is not None
    return derivative


def _checked(op: Op, found: Sequence[Value | None], likes: Sequence[Value]) -> Derivatives:
    for derivative, like in zip(found, likes, strict=True):
        if derivative is not None and derivative.type != like.type:
            raise InternalError(
                f"the derivative of {op.name} has type {derivative.type} where {like.type} belongs"
            )
    return tuple(found)
