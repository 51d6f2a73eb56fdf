"""The syntax of `reduce`, `scan` and `reduceWindow`: by an operation, by DLVM's `builtin "max"`, or by a function.

reduce %x: T by add init %v: U along 0
reduce %x: T by subtract along 0
reduce %x: T by @f init %v: U along 0
scan %x: T by %f: (f32, f32) -> f32 along 0, 1

1. An associative operation starts from its identity, so an initial value is combined with what comes out.
2. A scan along several axes goes through them in row-major order, as a reduction does, so that its last result is
   that of the reduction: the axes are joined to one, and set apart again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ..ir import Builder, Op, Value
from ..ops import (
    ORDERED,
    Add,
    And,
    Combinator,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reduce,
    ReduceBy,
    ReduceInOrder,
    ReduceWindow,
    ReduceWindowBy,
    ReduceWindowInOrder,
    Scan,
    ScanBy,
    ScanInOrder,
    ShapeCast,
    Transpose,
)
from ..ops.movement import check_axes, reshaped
from ..types import TensorType
from .cursor import Cursor
from .nest_syntax import parse_combinator, parse_ordered
from .template import Attribute, Optional, Piece, Words, template_of
from .values import Operands, ParsedOperation

REDUCTIONS: Mapping[str, tuple[type[Op], type[Op], type[Op]]] = {
    "reduce": (Reduce, ReduceBy, ReduceInOrder),
    "scan": (Scan, ScanBy, ScanInOrder),
    "reduceWindow": (ReduceWindow, ReduceWindowBy, ReduceWindowInOrder),
}
"""By opcode: the op that combines by an associative operation, by a function, and by another operation."""

BY_FUNCTION = tuple(by_function for _, by_function, _ in REDUCTIONS.values())
IN_ORDER = tuple(in_order for _, _, in_order in REDUCTIONS.values())

_MEANINGS: Mapping[Combinator, Op] = {
    Combinator.ADD: Add(),
    Combinator.MULTIPLY: Multiply(),
    Combinator.MIN: Minimum(),
    Combinator.MAX: Maximum(),
    Combinator.AND: And(),
    Combinator.OR: Or(),
}

_NAMES = tuple(combinator.value for combinator in _MEANINGS)


class OperandReader(Protocol):
    """Who reads operands and templates."""

    cursor: Cursor
    operands: Operands

    def pieces(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None: ...

    def no_tensor(self, opcode: str, operand: Value, start: int) -> Exception: ...


ParsedReduction: TypeAlias = tuple[Op, Sequence[Value], Sequence[str]]
"""An op, its operands, and the words that could have gone on it."""


def parse_reduction(reader: OperandReader, b: Builder, opcode: str) -> ParsedReduction:
    """The operation whose opcode has been read."""
    cursor = reader.cursor
    start = cursor.position - 1
    x = reader.operands.operand(b)
    cursor.expect("by")
    plain, by_function, in_order = REDUCTIONS[opcode]
    attributes: dict[str, Any] = {}
    given: list[Value] = []
    function: list[Value] = []
    if cursor.is_name("@") or cursor.is_name("%"):
        kind = by_function
        function = [reader.operands.operand(b)]
    elif cursor.token.text in ORDERED:
        kind = in_order
        attributes["by"] = parse_ordered(cursor)
    elif cursor.at("builtin") or cursor.token.text in _NAMES:
        kind = plain
        attributes["combinator"] = parse_combinator(cursor)
    else:
        known = ", ".join((*_NAMES, *ORDERED))
        message = f"an operation or a function @… was expected, not {cursor.token.shown}"
        raise cursor.error(f"{message}: operations are {known}")
    clauses, needed = _clauses(template_of(by_function)[3:])
    reader.pieces(b, clauses, attributes, given)
    for word, name in needed:
        if name not in attributes:
            raise cursor.error(f"{word!r} was expected, not {cursor.token.shown}")
    words = tuple(clause.word for clause in clauses)
    if kind is not plain:
        return *_combined(b, kind, attributes, [x, *given, *function]), words
    for operand in (x, *given):
        if not isinstance(operand.type, TensorType):
            raise reader.no_tensor(opcode, operand, start)
    found = _combined(b, kind, attributes, [x])
    if given:
        return _MEANINGS[attributes["combinator"]], (*given, b.emit(found[0], *found[1])), words
    return *found, words


def _clauses(pieces: Sequence[Piece]) -> tuple[list[Optional], list[tuple[str, str]]]:
    """What follows the combinator, in any order; words that must be there, with the attributes they bring.

    Several axes may stand where an op has one.
    """
    found: list[Optional] = []
    needed: list[tuple[str, str]] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, Optional):
            found.append(piece)
        elif isinstance(piece, Words):
            what = pieces[index + 1]
            if what == Attribute("axis", "int"):
                what = Attribute("axes", "tuple[int, ...]")
            found.append(Optional((piece, what)))
            if isinstance(what, Attribute):
                needed.append((found[-1].word, what.name))
    return found, needed


def _combined(
    b: Builder, kind: type[Op], attributes: dict[str, Any], operands: Sequence[Value]
) -> ParsedOperation:
    if not issubclass(kind, Scan | ScanBy):
        return kind(**attributes), operands
    axes: tuple[int, ...] = attributes.pop("axes")
    if not isinstance(operands[0].type, TensorType):
        return kind(**attributes), operands

    def along(axis: int) -> Op:
        return kind(**attributes, axis=axis)

    if len(axes) == 1:
        return along(*axes), operands
    x, *others = operands
    return _along_all(b, x, axes, lambda joined, axis: b.emit(along(axis), joined, *others))


def _along_all(
    b: Builder, x: Value, axes: Sequence[int], scan: Callable[[Value, int], Value]
) -> ParsedOperation:
    """A scan along axes that are neighbours joined to one; others are brought to the front first."""
    check_axes("scan", axes, x.tensor)
    first, shape = min(axes, default=0), x.tensor.shape
    behind = first + len(axes)
    if max(axes, default=-1) < behind:
        count = math.prod(shape[first:behind])
        joined = reshaped(b, x, (*shape[:first], count, *shape[behind:]))
        return ShapeCast(shape), [scan(joined, first)]
    order = (*sorted(axes), *(axis for axis in range(len(shape)) if axis not in axes))
    moved = b.emit(Transpose(order), x)
    found = _along_all(b, moved, range(len(axes)), scan)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return Transpose(inverse), [b.emit(found[0], *found[1])]


def in_order_of_text(operands: Sequence[Value]) -> Sequence[Value]:
    """The operands of a folding as they are written: the function second."""
    x, *initial, function = operands if len(operands) > 1 else (*operands, *operands)
    return (x, function, *initial)
