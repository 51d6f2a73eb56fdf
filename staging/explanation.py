"""Diagnostics for specialization errors: the user's line, the origin of each operand, the chain of calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import NNKitError
from ..core.ir import Value
from ..core.types import StructType, TensorType, TupleType, Type
from .expression import Expression, ForLoop, IfElse, Parameter, StagedCall, TracedBody, WhileLoop
from .location import HELP, with_location


def explained(error: NNKitError, node: Expression, operands: Sequence[Value]) -> NNKitError:
    """`error` with the user's line, and where each operand came from.

    Inside a wrapper of NNKit's, as `jvp` makes them, there is no such line: traces are kept, and these expressions have
    that of the first call.  The place of this call is added outside.
    """
    if _is_in_wrapper(node):
        return error
    if isinstance(node.operation, StagedCall):
        return _called_here(error, node)
    if getattr(error, "__notes__", None) or "\n" in str(error).partition(HELP)[0]:
        return error  # it has its place already
    result: NNKitError = with_location(error, node.location)
    if isinstance(node.operation, IfElse | WhileLoop | ForLoop):
        return result  # what its operands are says nothing of what its bodies do
    for position, (expression, value) in enumerate(zip(node.operands, operands, strict=False)):
        result.add_note(f"  note: {_origin(expression, value, position, len(node.operands))}")
    return result


def _is_in_wrapper(node: Expression) -> bool:
    trace = node.trace
    while isinstance(trace, TracedBody) and trace.site is not None:
        trace = trace.site.trace
    return trace is not None and trace.is_wrapper


def shown(type: Type) -> str:
    """A type as users read it."""
    return type.words if isinstance(type, TensorType) else str(type)


def difference(one: Type, other: Type) -> tuple[str, str, str]:
    """Two types that differ as users read them, at the first of their fields that does; and which that is."""
    pairs: list[tuple[str, Type, Type]] = []
    if isinstance(one, StructType) and isinstance(other, StructType):
        pairs = [
            (f".{name}", a, b)
            for (name, a), (same, b) in zip(one.fields, other.fields, strict=False)
            if name == same
        ]
    elif isinstance(one, TupleType) and isinstance(other, TupleType):
        parts = zip(one.elements, other.elements, strict=False)
        pairs = [(f"[{k}]", a, b) for k, (a, b) in enumerate(parts)]
    for place, a, b in pairs:
        if a != b:
            first, second, rest = difference(a, b)
            return first, second, place + rest
    return shown(one), shown(other), ""


def _called_here(error: NNKitError, node: Expression) -> NNKitError:
    assert isinstance(node.operation, StagedCall)
    if "\n" not in str(error):
        result: NNKitError = with_location(error, node.location)
        return result
    place = node.location.resolve() if node.location else None
    noted = sum(_CALLED in note for note in getattr(error, "__notes__", []))
    if place is not None and noted < _CALLS_SHOWN:
        error.add_note(
            f"  note: {node.operation.callee.name}{_CALLED}{place.excerpt().splitlines()[0]}"
        )
    return error


_CALLED = " is called here  "
_CALLS_SHOWN = 3
"""How many of the calls that led to an error it names, the innermost ones: more would hide the message. A matter of
taste."""


def _origin(expression: Expression, value: Value, position: int, count: int) -> str:
    place = expression.location.resolve() if expression.location else None
    where = f"  {place.excerpt().splitlines()[0]}" if place else ""
    if isinstance(expression.operation, Parameter) and expression.trace is not None:
        parameter = expression.operation
        name = expression.trace.name
        return (
            f"{parameter.name} is argument {parameter.index} of {name}: {shown(value.type)}{where}"
        )
    side = (
        ("the left operand", "the right operand")[position] if count == 2 else f"operand {position}"
    )
    if count == 1:
        side = "the operand"
    return f"{side} is {shown(value.type)}, made here{where}"
