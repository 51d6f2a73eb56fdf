"""The elements of literals as text: `1.5`, `<<1, 2>, <3, 4>>`, and with types as DLVM has them, `<1: f32>`.

A float may be written by its bits, as in MLIR: `0x7fc00001`.  NaNs are printed so, but for the one that is `nan`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from ..errors import DTypeError
from ..lazy_dataclass import dataclass
from ..ops import Literal
from ..ops.literal import check_range, packed
from ..round_to_odd import odd_double
from ..types import Array, DType, TensorType
from .cursor import MAX_DEPTH, Cursor
from .lexer import Token
from .types import parse_tensor


@dataclass(frozen=True)
class Bits:
    """A float by its bits: `text` begins with 0x and has all digits."""

    text: str

    def __str__(self) -> str:
        return self.text


_Plain: TypeAlias = int | float | bool | Decimal
LiteralNumber: TypeAlias = _Plain | Bits
"""Decimals keep every digit that was written, so that they are rounded once, to the type of the literal."""

_MOST_DIGITS = 400
"""No element type holds an integer with more: the largest f64 has 309.  Python refuses to convert more than 4,300."""


@dataclass
class Elements:
    """Numbers in row-major order, the lengths of the rows they are nested in, and where they begin.

    `claims` are the types written at elements and rows: how deep inside, the type, and where.
    """

    start: int
    numbers: list[LiteralNumber] = field(default_factory=list[LiteralNumber])
    extents: dict[int, int] = field(default_factory=dict[int, int])
    claims: list[tuple[int, TensorType, int]] = field(
        default_factory=list[tuple[int, TensorType, int]]
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.extents[depth] for depth in range(len(self.extents)))


def print_elements(literal: Literal) -> str:
    """The shortest text that reads back as the same elements; one number where all are equal."""
    if literal.type.size == 0:
        return "zero"
    texts = _texts(literal)
    if len(set(texts)) == 1:
        return texts[0]
    for extent in reversed(literal.type.shape):
        rows = range(0, len(texts), extent)
        texts = [f"<{', '.join(texts[row : row + extent])}>" for row in rows]
    return texts[0]


def parse_elements(cursor: Cursor) -> Elements:
    """A number, or rows of them in angle brackets, nested to any rank."""
    elements = Elements(cursor.position)
    counts: list[int] = []  # of the elements so far, for each row that is open
    rank = None
    while True:
        while cursor.accept("<"):
            counts.append(0)
            if len(counts) > MAX_DEPTH:
                raise cursor.error(f"nested more than {MAX_DEPTH} levels deep")
        if rank not in (None, len(counts)):
            raise cursor.error("the rows of this literal are not nested equally deep")
        rank = len(counts)
        elements.numbers.append(parse_number(cursor))
        _close_rows(cursor, counts, elements)
        if not counts:
            return elements
        if not cursor.accept(","):
            raise cursor.error(f"',' or '>' was expected, not {cursor.token.shown}")


def _close_rows(cursor: Cursor, counts: list[int], elements: Elements) -> None:
    """What may follow an element: its type, and the ends of rows, which are elements again."""
    while counts:
        if cursor.accept(":"):
            position = cursor.position
            elements.claims.append((len(counts), parse_tensor(cursor), position))
        counts[-1] += 1
        position = cursor.position
        if not cursor.accept(">"):
            return
        extent = counts.pop()
        if elements.extents.setdefault(len(counts), extent) != extent:
            before = elements.extents[len(counts)]
            raise cursor.error(f"a row of {extent} stands beside rows of {before}", position)


def parse_number(cursor: Cursor) -> LiteralNumber:
    """A number, `true`, `false` or `zero`."""
    token = cursor.next()
    match token:
        case Token("integer", text):
            if len(text) > _MOST_DIGITS:
                raise cursor.error_at(token, "the number has too many digits")
            return int(text)
        case Token("float", text) if text.startswith("0x"):
            return Bits(text)
        case Token("float", text):
            number = float(text)
            if math.isinf(number) and text[-1] != "f":
                raise cursor.error_at(
                    token, f"{text} is beyond every element type; infinity is inf"
                )
            return Decimal(text) if number and math.isfinite(number) else number
        case Token("word", "true" | "false" as text):
            return text == "true"
        case Token("word", "zero"):
            return 0
        case _:
            raise cursor.error_at(token, f"a number was expected, not {token.shown}")


def literal_of(cursor: Cursor, elements: Elements, type: TensorType) -> Literal:
    """The literal op; one number without brackets stands for every element.

    Raises: ParseError when the rows are not those of the type, or a number does not fit.
    """
    shape = elements.shape
    if shape not in ((), type.shape):
        message = f"rows of shape {list(shape)} are no {type}"
        raise cursor.error(message, elements.start)
    for depth, claimed, position in elements.claims:
        expected = type.with_shape(type.shape[depth:])
        if claimed != expected:
            raise cursor.error(f"an element here is a {expected}, not a {claimed}", position)
    try:
        stored = _stored(elements.numbers, type.dtype)
    except DTypeError as error:
        raise cursor.error(str(error), elements.start) from None
    return packed(type, stored) if shape else Literal(type, stored.tobytes())


def _stored(numbers: Sequence[LiteralNumber], dtype: DType) -> Array:
    """The numbers as they lie in memory.  Raises: DTypeError when one does not fit."""
    written = {k: number.text for k, number in enumerate(numbers) if isinstance(number, Bits)}
    stored = dtype.store(_values([0 if isinstance(x, Bits) else x for x in numbers], dtype))
    for k, text in written.items():
        if not dtype.is_float or len(text) != 2 + 2 * dtype.bytes:
            raise DTypeError(f"{text} is not the bits of an element of {dtype}")
        stored.view(f"u{dtype.bytes}")[k] = int(text, 16)
    return stored


def _values(numbers: Sequence[_Plain], dtype: DType) -> Array:
    """The numbers in the type to compute with.  Raises: DTypeError when one does not fit."""
    if dtype.kind == "boolean":
        for number in numbers:
            if number not in (0, 1):
                raise DTypeError(f"{number} is not a bool: write true or false")
        return np.array(numbers, np.bool_)
    if any(isinstance(number, bool) for number in numbers):
        raise DTypeError(f"a bool is not an element of {dtype}")
    if dtype.is_integer:
        for number in numbers:
            check_range(dtype, number)
        return np.array(list(map(int, numbers)), dtype.numpy)
    return _floats(numbers, dtype)


def _floats(numbers: Sequence[_Plain], dtype: DType) -> Array:
    exact = float if dtype.bits == 64 else odd_double
    try:
        wide = np.array([exact(number) for number in numbers], np.float64)
    except OverflowError:
        raise DTypeError(f"a number is too large for {dtype}; infinity is inf") from None
    with np.errstate(over="ignore"):
        rounded = dtype.round(wide)
    beyond: list[int] = np.flatnonzero(np.isinf(rounded) & np.isfinite(wide)).tolist()
    if beyond:
        raise DTypeError(f"{float(numbers[beyond[0]])} is too large for {dtype}; infinity is inf")
    return rounded


def _texts(literal: Literal) -> list[str]:
    """Of each element, the shortest text that reads back as the same bits."""
    elements, dtype = literal.elements().ravel(), literal.type.dtype
    if dtype.kind == "boolean":
        return ["true" if element else "false" for element in elements]
    numbers: list[Any] = elements.tolist() if dtype.is_integer or dtype.bits == 64 else [*elements]
    texts = list(map(str, numbers))
    if "nan" in texts:
        bits = np.frombuffer(literal.data, f"u{dtype.bytes}")
        odd = np.isnan(elements) & (bits != dtype.store(np.array(np.nan)).view(bits.dtype))
        for k in np.flatnonzero(odd).tolist():
            texts[k] = f"{bits[k]:#0{2 + 2 * dtype.bytes}x}"
    return texts
