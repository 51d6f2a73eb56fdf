"""Specialises control flow: emits `if`, `while` and `for` with their regions, whose yields must agree in shape.

The functions here are steps of `specialize`: they yield bodies to fill, and are sent what these give.
With a `None` among the types, the function is recursive and its result is being found out (`specialize`):
then nothing is emitted, and only what is known of the results matters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from ..core.errors import InternalError, ShapeError
from ..core.ir import Block, Builder, Region, Value
from ..core.ops import For, If, While, Yield
from ..core.ops.literal import constant, number_of
from ..core.types import I64, TensorType, Type, scalar
from .carry import OF_BRANCHES, OF_LOOPS
from .explanation import difference, shown
from .expression import Expression, ForLoop, IfElse, TracedBody, WhileLoop
from .location import HELP

Given: TypeAlias = "tuple[Value | None, ...]"
"""Values, as far as they are known."""
Fill: TypeAlias = Callable[[TracedBody, Builder, Sequence["Value | None"]], Any]
"""The steps that emit a body on given arguments; they end with what it gives."""
Suspension: TypeAlias = Generator[Any, Any, Given]


def emit_control_flow(
    b: Builder, node: Expression, operands: Sequence[Value | None], fill: Fill, probe: bool
) -> Suspension:
    """Emit a choice or a loop: its results."""
    match node.operation:
        case IfElse() as operation:
            return _emit_if(b, operation, operands, fill, probe)
        case WhileLoop() as operation:
            return _emit_while(b, operation, operands, fill, probe)
        case ForLoop() as operation:
            return _emit_for(b, operation, operands, fill, probe)
        case _:
            raise InternalError(f"{node.operation} has no bodies")


def _emit_if(
    b: Builder, operation: IfElse, operands: Sequence[Value | None], fill: Fill, probe: bool
) -> Suspension:
    filled: list[tuple[Builder, Given]] = []
    for body in operation.bodies:
        inner = _start(b)
        filled.append((inner, (yield fill(body, inner, ()))))
    types: list[Type | None] = []
    for position, (one, other) in enumerate(zip(filled[0][1], filled[1][1], strict=True)):
        if one is not None and other is not None and one.type != other.type:
            first, second, field = difference(one.type, other.type)
            raise ShapeError(
                f"the branches of cond return {first} and {second}"
                f"{_among(position, len(filled[0][1]), field)}{HELP}{OF_BRANCHES}"
            )
        known = other if one is None else one
        types.append(None if known is None else known.type)
    if probe:
        return _found(types)
    results = tuple(type for type in types if type is not None)
    regions = [_finish(inner, given) for inner, given in filled]
    return b.emit_many(If(results), _known(operands[:1]), regions)


def _emit_while(
    b: Builder, operation: WhileLoop, operands: Sequence[Value | None], fill: Fill, probe: bool
) -> Suspension:
    carried = operands[: operation.carried]
    if probe:
        return _found([None if one is None else one.type for one in carried])
    start = _known(carried)
    regions: list[Region] = []
    for body in operation.bodies:
        inner = _start(b)
        arguments = [inner.argument(one.type) for one in start]
        given = _known((yield fill(body, inner, arguments)))
        if body is operation.step:
            _check_next(operation.what, start, given)
        regions.append(_finish(inner, given))
    return b.emit_many(While(), start, regions)


def _emit_for(
    b: Builder, operation: ForLoop, operands: Sequence[Value | None], fill: Fill, probe: bool
) -> Suspension:
    first = operation.over or 2
    carried = operands[first : first + operation.carried]
    if None in operands[: operation.over]:
        stacks = len(operation.step.outputs) - operation.carried
        return _found([*(None if one is None else one.type for one in carried), *[None] * stacks])
    if not operation.over and _has_no_round(operands[:2]):
        return tuple(carried)  # what the body reads need not be there: x[i] of no elements
    extent = _extent(operation, _known(operands[:first])) if operation.over else None
    inner = _start(b)
    index = inner.argument(scalar(I64), "index")
    arguments = [None if one is None else inner.argument(one.type) for one in carried]
    given: Given = yield fill(operation.step, inner, (index, *arguments))
    stacked = [
        None if one is None else one.tensor.with_shape((extent or 0, *one.tensor.shape))
        for one in given[operation.carried :]
    ]
    if probe:
        return _found([*(None if one is None else one.type for one in carried), *stacked])
    start, ends = _known(carried), _known(given)
    _check_next(operation.what, start, ends[: operation.carried])
    bounds = _known(operands[:2])
    if extent is not None:
        bounds = tuple(constant(b, scalar(I64), bound) for bound in (0, extent))
    loop = For(tuple(type for type in stacked if type is not None))
    return b.emit_many(loop, (*bounds, *start), [_finish(inner, ends)])


def _has_no_round(bounds: Sequence[Value | None]) -> bool:
    """Whether the bounds are known, and nothing is between them."""
    low, high = (None if bound is None else number_of(bound) for bound in bounds)
    return low is not None and high is not None and high <= low


def _extent(operation: ForLoop, over: Sequence[Value]) -> int:
    """How many elements there are along the leading axes."""
    extents = [one.tensor.shape[0] for one in over]
    if len(set(extents)) > 1:
        words = " and ".join(shown(one.type) for one in over)
        raise ShapeError(
            f"cannot {operation.what} over {words} together: leading extents "
            f"{' and '.join(map(str, extents))} differ"
        )
    return extents[0]


def _check_next(what: str, carried: Sequence[Value], following: Sequence[Value]) -> None:
    for position, (one, other) in enumerate(zip(carried, following, strict=True)):
        if one.type != other.type:
            first, second, field = difference(one.type, other.type)
            raise ShapeError(
                f"{what} carries {first} and its body returns {second}"
                f"{_among(position, len(carried), field)}{HELP}{OF_LOOPS}"
            )


def _among(position: int, count: int, field: str) -> str:
    """Which of several values, and which field of it."""
    value = f"value {position}" if count > 1 else ""
    return f": in {value}{field}" if value or field else ""


def _start(b: Builder) -> Builder:
    return Builder(Block(), b.location)


def _finish(b: Builder, given: Given) -> Region:
    b.emit_many(Yield(), _known(given))
    return Region([b.block])


def _found(types: Sequence[Type | None]) -> Given:
    """Stand-ins of these types."""
    return tuple(None if type is None else Value(type) for type in types)


def _known(values: Sequence[Value | None]) -> tuple[Value, ...]:
    known = tuple(value for value in values if value is not None)
    if len(known) != len(values):
        raise InternalError("a value is not known where it is needed")
    return known


__all__ = ["Fill", "Given", "Suspension", "TensorType", "emit_control_flow"]
