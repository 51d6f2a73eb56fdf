"""Laws of tuples, structs and enums."""

from __future__ import annotations

import pytest

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import Aggregate, EnumCase, Extract, Insert, IsCase, Payload, Undefined
from nnkit.core.types import F32, I32, EnumType, StructType, TensorType, TupleType
from tests.core.passes.laws import Law, check, rows

X = TensorType((2,), F32)
N = TensorType((), I32)
PAIR = TupleType((X, N))
POINT = StructType("Point", (("x", X), ("n", N)))
DEEP = TupleType((POINT, X))
CHOICE = EnumType("Choice")
CHOICE.define((("both", (X, N)), ("neither", ())))


def pair(b: Builder, x: Value, n: Value) -> Value:
    """A tuple of two."""
    return b.emit(Aggregate(PAIR), x, n)


def take(b: Builder, x: Value, *keys: int | str) -> Value:
    """An element."""
    return b.emit(Extract(keys), x)


def put(b: Builder, element: Value, x: Value, *keys: int | str) -> Value:
    """`x` with another element."""
    return b.emit(Insert(keys), element, x)


def both(b: Builder, x: Value, n: Value) -> Value:
    """The case of an enum that carries two."""
    return b.emit(EnumCase(CHOICE, "both"), x, n)


LAWS = rows(
    ("extract 0 from (x, n) = x", [X, N], lambda b, x, n: take(b, pair(b, x, n), 0), ""),
    (
        "a field of a struct",
        [X, N],
        lambda b, x, n: take(b, b.emit(Aggregate(POINT), x, n), "n"),
        "",
    ),
    ("an element of an argument stays", [PAIR], lambda b, p: take(b, p, 0), "extract"),
    ("extract from extract", [DEEP], lambda b, p: take(b, take(b, p, 0), "x"), "extract"),
    ("extract of no keys", [PAIR], lambda b, p: take(b, p), ""),
    (
        "half of a path",
        [POINT, X],
        lambda b, p, x: take(b, b.emit(Aggregate(DEEP), p, x), 0, "n"),
        "extract",
    ),
    ("(x₀, x₁) = x", [PAIR], lambda b, p: pair(b, take(b, p, 0), take(b, p, 1)), ""),
    (
        "a struct of its fields",
        [POINT],
        lambda b, p: b.emit(Aggregate(POINT), take(b, p, "x"), take(b, p, "n")),
        "",
    ),
    (
        "the elements of an element",
        [DEEP],
        lambda b, p: b.emit(Aggregate(POINT), take(b, p, 0, "x"), take(b, p, 0, "n")),
        "extract",
    ),
    (
        "a tuple of fields stays",
        [POINT],
        lambda b, p: pair(b, take(b, p, "x"), take(b, p, "n")),
        "extract extract aggregate",
    ),
    (
        "elements of two values",
        [PAIR, PAIR],
        lambda b, p, q: pair(b, take(b, p, 0), take(b, q, 1)),
        "extract extract aggregate",
    ),
    (
        "only some elements",
        [TupleType((X, N, N))],
        lambda b, p: pair(b, take(b, p, 0), take(b, p, 1)),
        "extract extract aggregate",
    ),
    (
        "elements out of order",
        [TupleType((X, X))],
        lambda b, p: b.emit(Aggregate(TupleType((X, X))), take(b, p, 1), take(b, p, 0)),
        "extract extract aggregate",
    ),
    ("an element that was inserted", [PAIR, X], lambda b, p, x: take(b, put(b, x, p, 0), 0), ""),
    ("another element", [PAIR, X], lambda b, p, x: take(b, put(b, x, p, 0), 1), "extract"),
    (
        "one beside it, further inside",
        [DEEP, X],
        lambda b, p, x: take(b, put(b, x, p, 0, "x"), 0, "n"),
        "extract",
    ),
    (
        "a part of what was inserted",
        [DEEP, POINT],
        lambda b, p, q: take(b, put(b, q, p, 0), 0, "n"),
        "extract",
    ),
    (
        "more than what was inserted stays",
        [DEEP, X],
        lambda b, p, x: take(b, put(b, x, p, 0, "x"), 0),
        "insert extract",
    ),
    (
        "an element of a tensor stays",
        [X, TensorType((), F32)],
        lambda b, x, e: take(b, put(b, e, x, 1), 1),
        "insert extract",
    ),
    (
        "an element of what is undefined",
        [X],
        lambda b, x: take(b, b.emit(Undefined(PAIR)), 0),
        "undefined",
    ),
    (
        "whether ?both(x, n) is ?both",
        [X, N],
        lambda b, x, n: b.emit(IsCase("both"), both(b, x, n)),
        "",
    ),
    (
        "whether ?both(x, n) is ?neither",
        [X, N],
        lambda b, x, n: b.emit(IsCase("neither"), both(b, x, n)),
        "",
    ),
    (
        "which case it is that is undefined stays",
        [X],
        lambda b, x: b.emit(IsCase("both"), b.emit(Undefined(CHOICE))),
        "undefined isCase",
    ),
    (
        "what ?both(x, n) carries",
        [X, N],
        lambda b, x, n: b.emit(Payload("both", 1), both(b, x, n)),
        "",
    ),
    (
        "what another case carries stays",
        [X],
        lambda b, x: b.emit(Payload("both", 0), b.emit(EnumCase(CHOICE, "neither"))),
        "enumCase payload",
    ),
    ("the empty tuple stays", [X], lambda b, x: b.emit(Aggregate(TupleType(()))), "aggregate"),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)
