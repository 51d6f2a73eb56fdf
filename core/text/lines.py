"""Blocks and instructions as lines of text, with the names that `names` has given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import Any

from ..ir import NOT_PLACED, Block, Instruction, Op, Region, Value
from ..lazy_dataclass import dataclass
from ..ops import (
    Aggregate,
    Apply,
    ApplyValue,
    ElementPointer,
    EnumCase,
    Literal,
    Null,
    Reference,
    Undefined,
)
from ..types import VOID, ArrayType, StructType
from .attributes import print_attribute
from .control_flow_syntax import PRINTED
from .lexer import written
from .literals import print_elements
from .reduction_syntax import BY_FUNCTION, in_order_of_text
from .template import (
    Attribute,
    Operand,
    Optional,
    Piece,
    Words,
    attributes_in,
    defaults_of,
    opcode_of,
    template_of,
)

_NOTHING = Value(VOID)
_QUESTION = "'?"
_CLOSE = (",", "(", ")")
_STEP = "    "
_WIDEST = 40 * len(_STEP)
"""Deeper regions are not indented further: the text would grow with the square of the depth."""


@dataclass
class Lines:
    """The lines written so far.  What has no name in `names` goes by its own, or is `%?`."""

    names: Mapping[Value, str]
    labels: Mapping[Block, str] = field(default_factory=dict[Block, str])
    written: list[str] = field(default_factory=list[str])
    types: dict[int, str] = field(default_factory=dict[int, str])

    def write(self, body: Region) -> list[str]:
        """The lines of the blocks of a region."""
        return self._run(self._region(body, ""))

    def write_instruction(self, instruction: Instruction) -> list[str]:
        """The lines of one instruction with its bodies."""
        return self._run(self._instruction(instruction, ""))

    def _run(self, lines: Iterator[tuple[Region, str]]) -> list[str]:
        """Write regions inside regions without going deeper on Python's stack."""
        open = [lines]
        while open:
            inner = next(open[-1], None)
            if inner is None:
                open.pop()
            else:
                open.append(self._region(*inner))
        return self.written

    def _region(self, region: Region, indent: str) -> Iterator[tuple[Region, str]]:
        deeper = indent if len(indent) >= _WIDEST else indent + _STEP
        for block in region.blocks:
            arguments = ", ".join(map(self.typed, block.arguments))
            self.written.append(f"{indent}{self.labels.get(block) or _QUESTION}({arguments}):")
            for instruction in block.instructions:
                if instruction.regions:
                    yield from self._instruction(instruction, deeper)
                else:
                    self.written.append(f"{deeper}{self._head(instruction)}")

    def _instruction(self, instruction: Instruction, indent: str) -> Iterator[tuple[Region, str]]:
        head = f"{indent}{self._head(instruction)}"
        words = instruction.op.bodies[: len(instruction.regions)]
        for word, body in zip_longest(words, instruction.regions, fillvalue=""):
            assert isinstance(body, Region)
            self.written.append(f"{head} {word} {{" if word else f"{head} {{")
            yield body, indent
            head = f"{indent}}}"
        self.written.append(head)

    def _head(self, instruction: Instruction) -> str:
        """`%a, %b = opcode …`."""
        results = instruction.results
        form = _FORMS.get(type(instruction.op))
        text = self._by_template(instruction) if form is None else form(self, instruction)
        if instruction.placement != NOT_PLACED:
            text = f"{text} {instruction.placement}"
        return f"{', '.join(map(self.bare, results))} = {text}" if results else text

    def _by_template(self, instruction: Instruction) -> str:
        """Opcode, words, operands and attributes as the syntax template of the op says."""
        op, operands = type(instruction.op), instruction.operands
        ordered = in_order_of_text(operands) if op in BY_FUNCTION else operands
        parts = [opcode_of(op)]
        self._pieces(instruction, template_of(op), [*reversed(ordered)], parts)
        return " ".join(parts)

    def _pieces(
        self,
        instruction: Instruction,
        pieces: Sequence[Piece],
        operands: list[Value],
        parts: list[str],
    ) -> None:
        """Append the text of the pieces; `operands` are those that follow, the next one last."""
        op = instruction.op
        for piece in pieces:
            match piece:
                case Operand(is_variadic=True):
                    if operands:
                        _add(parts, ", ".join(map(self.typed, reversed(operands))))
                        operands.clear()
                case Operand():
                    _add(parts, self.typed(operands.pop() if operands else _NOTHING))
                case Words(tokens):
                    for token in tokens:
                        _add(parts, token)
                case Attribute(name, kind):
                    _add(parts, print_attribute(kind, getattr(op, name)))
                case Optional(inner):
                    if _is_needed(instruction, inner, operands):
                        self._pieces(instruction, inner, operands, parts)

    def bare(self, value: Value) -> str:
        """`%x`."""
        name = self.names.get(value)
        return name or (written("%", value.name) if value.name else "%?")

    def typed(self, value: Value) -> str:
        """`%x: T`."""
        type = value.type
        text = self.types.get(id(type))
        if text is None:
            text = self.types[id(type)] = str(type)
        return f"{self.names.get(value) or self.bare(value)}: {text}"


def _literal(lines: Lines, at: Instruction[Literal]) -> str:
    return f"literal {print_elements(at.op)}: {at.op.type}"


def _reference(lines: Lines, at: Instruction[Reference]) -> str:
    return f"literal {written('@', at.op.symbol)}: {at.op.type}"


def _nothing(lines: Lines, at: Instruction[Null | Undefined]) -> str:
    return f"literal {at.op.name}: {at.op.type}"


def _case(lines: Lines, at: Instruction[EnumCase]) -> str:
    inside = f"({', '.join(map(lines.typed, at.operands))})" if at.operands else ""
    return f"literal {written('?', at.op.case)}{inside}: {at.op.type}"


def _aggregate(lines: Lines, at: Instruction[Aggregate]) -> str:
    type, elements = at.op.type, [*map(lines.typed, at.operands)]
    if isinstance(type, StructType):
        names = (written("#", name) for name, _ in type.fields)
        elements = [f"{name} = {x}" for name, x in zip(names, elements, strict=False)]
    first, last = (
        "{}" if isinstance(type, StructType) else "[]" if isinstance(type, ArrayType) else "()"
    )
    return f"literal {first}{', '.join(elements)}{last}: {type}"


def _apply(lines: Lines, at: Instruction[Apply]) -> str:
    arguments = ", ".join(map(lines.bare, at.operands))
    return f"apply {written('@', at.op.callee)}({arguments}): {at.op.type}"


def _apply_value(lines: Lines, at: Instruction[ApplyValue]) -> str:
    function, *given = map(lines.bare, at.operands or (_NOTHING,))
    return f"apply {function}({', '.join(given)}): {at.op.type}"


def _element_pointer(lines: Lines, at: Instruction[ElementPointer]) -> str:
    pointer, *indices = map(lines.typed, at.operands or (_NOTHING,))
    given = iter(indices)
    shown = (
        next(given, "%?") if k is None else written("#", k) if isinstance(k, str) else str(k)
        for k in at.op.keys
    )
    return f"elementPointer {pointer} at {', '.join(shown)}"


def _control(lines: Lines, at: Instruction) -> str:
    labels = [lines.labels.get(block) or _QUESTION for block in at.successors]
    return PRINTED[type(at.op)](at, lines.typed, labels)


_FORMS: Mapping[type[Op], Callable[[Lines, Instruction[Any]], str]] = {
    Literal: _literal,
    Reference: _reference,
    Null: _nothing,
    Undefined: _nothing,
    EnumCase: _case,
    Aggregate: _aggregate,
    Apply: _apply,
    ApplyValue: _apply_value,
    ElementPointer: _element_pointer,
    **dict.fromkeys(PRINTED, _control),
}
"""The ops that are not written by their templates."""


def _add(parts: list[str], text: str) -> None:
    """Append to what stands between spaces; commas and parentheses stand close."""
    if text in _CLOSE or parts[-1][-1] == "(":
        parts[-1] += text
    else:
        parts.append(text)


def _is_needed(
    instruction: Instruction, pieces: tuple[Piece, ...], operands: Sequence[Value]
) -> bool:
    """Whether a part that can be left out says something."""
    attributes = [attribute.name for attribute in attributes_in(pieces)]
    if not attributes:
        return bool(operands)
    defaults = defaults_of(type(instruction.op))
    return any(
        name not in defaults or getattr(instruction.op, name) != defaults[name]
        for name in attributes
    )
