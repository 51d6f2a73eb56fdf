"""`reduce`, `scan` and `reduceWindow`: by an operation, by DLVM's `builtin "max"`, or by a function.

reduce %x: T by add init %v: U along 0
reduce %x: T by @f init %v: U along 0
scan %x: T by %f: (f32, f32) -> f32 along 0

An operation starts from its identity, so an initial value is combined with what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..ir import Builder, Op, Value
from ..ops import Add, And, Combinator, Maximum, Minimum, Multiply, Or, Reduce, Scan
from ..ops.folding import Folding, ReduceBy, ReduceWindowBy, ScanBy
from ..ops.window import ReduceWindow
from ..types import TensorType
from .cursor import Cursor
from .indices import parse_combinator
from .template import Piece, option_words, template_of
from .values import Operands

COMBINING: Mapping[str, tuple[type[Op], type[Folding]]] = {
    "reduce": (Reduce, ReduceBy),
    "scan": (Scan, ScanBy),
    "reduceWindow": (ReduceWindow, ReduceWindowBy),
}
"""By opcode: the op that combines by an operation, and the one that does by a function."""

BY_FUNCTION = tuple(folding for _, folding in COMBINING.values())

_MEANINGS: Mapping[Combinator, Op] = {
    Combinator.ADD: Add(),
    Combinator.MULTIPLY: Multiply(),
    Combinator.MIN: Minimum(),
    Combinator.MAX: Maximum(),
    Combinator.AND: And(),
    Combinator.OR: Or(),
}


class Reader(Protocol):
    """Who reads operands and templates."""

    cursor: Cursor
    operands: Operands

    def pieces(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None: ...


def parse_combining(
    reader: Reader, b: Builder, opcode: str
) -> tuple[Op, Sequence[Value], Sequence[str]]:
    """The operation whose opcode has been read, and the words that could have gone on it."""
    cursor = reader.cursor
    plain, folding = COMBINING[opcode]
    x = reader.operands.operand(b)
    cursor.expect("by")
    attributes: dict[str, Any] = {}
    operands = [x]
    if cursor.is_name("@") or cursor.is_name("%"):
        function = reader.operands.operand(b)
        reader.pieces(b, template_of(folding)[3:], attributes, operands)
        return folding(**attributes), [*operands, function], option_words(folding)
    start = cursor.position
    combinator = parse_combinator(cursor)
    initial = reader.operands.operand(b) if cursor.accept("init") else None
    reader.pieces(b, template_of(plain)[3:], attributes, operands)
    attributes["combinator"] = combinator
    op = plain(**attributes)
    words = ("init", *option_words(plain))
    if initial is None:
        return op, operands, words
    for operand in (x, initial):
        if not isinstance(operand.type, TensorType):
            raise cursor.error(f"{opcode} takes tensors, not a {operand.type}", start)
    return _MEANINGS[combinator], (initial, b.emit(op, x)), words


def in_order_of_text(operands: Sequence[Value]) -> Sequence[Value]:
    """The operands of a folding as they are written: the function second."""
    x, *initial, function = operands if len(operands) > 1 else (*operands, *operands)
    return (x, function, *initial)
