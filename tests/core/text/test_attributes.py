"""Every attribute of every op has a notation, and every notation reads back what it prints."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from nnkit.core.ir import Op
from nnkit.core.ops import Bounds, Combinator, FloorDivide, Update
from nnkit.core.ops.nest import Access, Affine, Loaded, Output, coordinate
from nnkit.core.ops.window import PaddingMode
from nnkit.core.text.attributes import NOTATIONS, parse_attribute, print_attribute
from nnkit.core.text.cursor import Cursor
from nnkit.core.text.operations import OPS
from nnkit.core.text.template import Attribute, Optional, Piece, defaults_of, template_of
from nnkit.core.types import (
    BF16,
    BOOL,
    F32,
    STACK,
    VOID,
    ArrayType,
    BoxType,
    FunctionType,
    PointerType,
    TensorType,
    TupleType,
)
from tests.rows import each

VECTOR = TensorType((3,), F32)
PAIR = FunctionType((VECTOR, VECTOR), VECTOR)
WRITTEN = list(OPS.values())

VALUES: list[tuple[str, Any, str]] = [
    ("int", -3, "-3"),
    ("int", 2**63 - 1, "9223372036854775807"),
    ("bool", True, "true"),
    ("bool", False, "false"),
    ("Shape", (), "scalar"),
    ("Shape", (2, 0, 3), "2 x 0 x 3"),
    ("tuple[int, ...]", (), "()"),
    ("tuple[int, ...]", (1,), "1"),
    ("tuple[int, ...]", (1, 0, -2), "(1, 0, -2)"),
    ("tuple[int | str, ...]", (0, "w", 1, "a b"), '0, #w, 1, #"a b"'),
    ("str", 'a "name"', '"a \\"name\\""'),
    ("Symbol", "f g", '@"f g"'),
    ("Case", "leaf", "?leaf"),
    ("Type", PointerType(TupleType((PAIR, BoxType(VECTOR), ArrayType(2, VOID), STACK))),
     "*((<3 x f32>, <3 x f32>) -> <3 x f32>, box{<3 x f32>}, [2 x void], stack)"),
    ("tuple[Type, ...]", (VOID, VECTOR), "void, <3 x f32>"),
    ("FunctionType", PAIR, "(<3 x f32>, <3 x f32>) -> <3 x f32>"),
    ("TensorType", VECTOR, "<3 x f32>"),
    ("tuple[tuple[int, int], ...]", ((1, 0), (-2, 3)), "(1, 0), (-2, 3)"),
    ("tuple[tuple[int, int], ...]", (), "()"),
    ("Padding", PaddingMode.HALF, "half"),
    ("Padding", ((0, 1),), "(0, 1)"),
    ("DType", BF16, "bf16"),
    ("DType", BOOL, "bool"),
    ("Combinator", Combinator.MULTIPLY, "multiply"),
    ("Elementwise", FloorDivide(), "floorDivide"),
    ("Bounds", Bounds.CLIP, "clip"),
    ("Update", Update.MAX, "max"),
    ("Affine", coordinate(1) * 2 + -1, "2 * d1 + -1"),
    ("tuple[Affine, ...]", (coordinate(0), coordinate(1) * 2 + -1), "(d0, 2 * d1 + -1)"),
    ("tuple[Access, ...]", (Access(()), Access((coordinate(1) * 2 + -1, Loaded(0)), Bounds.ZERO)),
     "(), (2 * d1 + -1, read 0) zero"),
    ("tuple[Output, ...]", (
        Output(TensorType((2,), F32), (coordinate(0),), Combinator.MAX, Bounds.CHECK),
        Output(TensorType((), F32), ()),
     ), "<2 x f32> at (d0) check by max, f32 at ()"),
]  # fmt: skip


def pieces_of(op: type[Op]) -> list[Piece]:
    """All pieces, those that can be left out and what is inside them."""
    found: list[Piece] = []
    pending = list(template_of(op))
    while pending:
        found.append(pending.pop())
        if isinstance(found[-1], Optional):
            pending.extend(found[-1].pieces)
    return found


@each("op", WRITTEN, ids=lambda op: op.name)
def test_every_attribute_is_in_the_syntax_and_has_a_notation(op: type[Op]) -> None:
    attributes = {p.name: p.kind for p in pieces_of(op) if isinstance(p, Attribute)}
    assert set(attributes) == {field.name for field in dataclasses.fields(op)}  # type: ignore[arg-type]
    assert set(attributes.values()) <= set(NOTATIONS)
    assert op.syntax.split()[0] == op.name
    assert OPS[op.name] is op


@each("op", WRITTEN, ids=lambda op: op.name)
def test_what_can_be_left_out_has_a_default_and_a_word(op: type[Op]) -> None:
    for piece in template_of(op):
        if isinstance(piece, Optional):
            assert piece.word.isidentifier()
            inside = [p.name for p in piece.pieces if isinstance(p, Attribute)]
            assert set(inside) <= set(defaults_of(op))


def test_every_notation_is_tried() -> None:
    assert {kind for kind, _, _ in VALUES} == set(NOTATIONS)


@pytest.mark.parametrize(("kind", "value", "text"), VALUES)
def test_attributes_read_back(kind: str, value: Any, text: str) -> None:
    assert print_attribute(kind, value) == text
    cursor = Cursor(f"{text} {{")
    assert parse_attribute(kind, cursor) == value
    assert cursor.at("{")


def test_indices_are_added_up() -> None:
    cursor = Cursor("(3 + d0 + 2 * d1 + d0 + -1 + 0 * d2)")
    [access] = parse_attribute("tuple[Access, ...]", cursor)
    assert access.indices == (Affine(2, ((0, 2), (1, 2))),)
