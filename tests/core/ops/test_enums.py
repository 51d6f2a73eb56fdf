"""Cases of enums: their types, and which case stands for no value in particular."""

from __future__ import annotations

import itertools
import time

from nnkit.core.errors import DTypeError
from nnkit.core.ops import EnumCase, IsCase, Payload
from nnkit.core.ops.enums import default_cases
from nnkit.core.types import BOOL, ArrayType, BoxType, EnumType, PointerType, TupleType, scalar
from tests.patience import PATIENCE

from .program_samples import PAIR, TREE, Refused, S, Typed

SAMPLES = [
    Typed(EnumCase(TREE, "leaf"), (S,), (TREE,)),
    Typed(EnumCase(TREE, "node"), (TREE, TREE), (TREE,)),
    Typed(EnumCase(TREE, "none"), (), (TREE,)),
    Typed(IsCase("none"), (TREE,), (scalar(BOOL),)),
    Typed(Payload("leaf", 0), (TREE,), (S,)),
    Typed(Payload("node", 1), (TREE,), (TREE,)),
]
ERRORS = [
    Refused(
        EnumCase(TREE, "twig"),
        (),
        "$Tree has no case ?twig: it has ?leaf, ?node, ?none",
        DTypeError,
    ),
    Refused(EnumCase(EnumType("Empty"), "a"), (), "$Empty has no case ?a: it has no cases"),
    Refused(EnumCase(TREE, "leaf"), (), "?leaf of $Tree carries (f32), not ()"),
    Refused(EnumCase(TREE, "leaf"), (S, S), "?leaf of $Tree carries (f32), not (f32, f32)"),
    Refused(EnumCase(TREE, "node"), (TREE, S), "carries ($Tree, $Tree), not ($Tree, f32)"),
    Refused(EnumCase(TREE, "none"), (S,), "?none of $Tree carries (), not (f32)"),
    Refused(IsCase("leaf"), (PAIR,), "only enums have cases, not a $Pair"),
    Refused(IsCase("twig"), (TREE,), "$Tree has no case ?twig"),
    Refused(Payload("leaf", 1), (TREE,), "?leaf of $Tree carries (f32): there is no element 1"),
    Refused(Payload("leaf", -1), (TREE,), "there is no element -1"),
]


def defined(name: str, *cases: tuple[str, tuple[object, ...]]) -> EnumType:
    enum = EnumType(name)
    enum.define(cases)  # type: ignore[arg-type]
    return enum


def test_the_default_is_the_first_case_that_needs_no_other_enum() -> None:
    assert default_cases(TREE) == {"Tree": "leaf"}
    late = EnumType("Late")
    late.define([("more", (S, late)), ("wrapped", (TupleType((late,)),)), ("end", ()), ("x", ())])
    assert default_cases(late) == {"Late": "end"}


def test_defaults_do_not_depend_on_where_one_begins() -> None:
    a, b = EnumType("A"), EnumType("B")
    a.define([("b", (b,)), ("x", ())])
    b.define([("a", (a,)), ("y", ())])
    assert default_cases(a) == default_cases(b) == {"A": "x", "B": "y"}
    assert default_cases(ArrayType(2, TupleType((S, b)))) == {"A": "x", "B": "y"}


def test_a_case_may_need_another_enum() -> None:
    inner = defined("Inner", ("only", (S,)))
    outer = EnumType("Outer")
    outer.define([("again", (outer,)), ("inner", (inner, inner))])
    assert default_cases(outer) == {"Outer": "inner", "Inner": "only"}


def test_what_lies_behind_a_pointer_is_not_needed() -> None:
    enum = EnumType("List")
    enum.define([("next", (PointerType(enum), BoxType(enum)))])
    assert default_cases(enum) == {"List": "next"}
    assert default_cases(PointerType(enum)) == {}


def test_enums_without_values_have_no_default() -> None:
    endless = EnumType("Endless")
    endless.define([("more", (endless,))])
    assert default_cases(endless) == {}
    assert default_cases(TupleType((EnumType("Empty"), TREE))) == {"Tree": "leaf"}


def test_arrays_of_nothing_need_no_element() -> None:
    a, b = EnumType("A"), EnumType("B")
    a.define([("b", (b,))])
    b.define([("a", (a,)), ("none", (ArrayType(0, a), TupleType((ArrayType(0, b),))))])
    assert default_cases(a) == default_cases(b) == {"A": "b", "B": "none"}


def test_long_chains_of_enums_take_no_stack_and_little_time() -> None:
    enums = [EnumType(f"E{number}") for number in range(5_000)]
    for enum, following in itertools.pairwise(enums):
        enum.define([("next", (following,))])
    enums[-1].define([("end", ())])
    start = time.process_time()
    assert len(default_cases(enums[0])) == len(enums)
    assert time.process_time() - start < 2 * PATIENCE
