"""Ranges of integers: what is known of indices, what is not, and that no bit changes."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops.nest import Bounds
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.integer_ranges import IntegerRanges
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

PROGRAM = """
func @f: (<10 x f64>, i64) -> <10 x f64> {{
'entry(%x: <10 x f64>, %n: i64):
    %last = for {lower}: i64 upto {upper}: i64 carrying %x: <10 x f64> {{
    'body(%i: i64, %h: <10 x f64>):
{lines}
        %e = gather %h: <10 x f64> at {index} along 0
        %s = multiply %e: {type}, 0.5: f64
        %t = add %h: <10 x f64>, {added}: f64
        yield %t: <10 x f64>
    }}
    return %last: <10 x f64>
}}
"""
FROM_THE_END = """
        %neg = lessThan %i: i64, 0: i64
        %up = add %i: i64, 10: i64
        %k = select %up: i64, %i: i64 by %neg: bool
"""

INSIDE = {
    "the index": (0, 10, ""),
    "some of the rounds": (3, 7, ""),
    "a sum": (0, 8, "%k = add %i: i64, 2: i64"),
    "backwards": (0, 10, "%k = subtract 9: i64, %i: i64"),
    "a product": (0, 5, "%k = multiply %i: i64, 2: i64"),
    "a remainder": (-5, 50, "%k = modulo %i: i64, 10: i64"),
    "of at least and at most": (
        -5,
        50,
        "%m = max %i: i64, 0: i64\n%k = min %m: i64, 9: i64",
    ),
    "from the end or the start": (0, 10, FROM_THE_END),
    "from the end": (-10, 0, FROM_THE_END),
    "of 32 bits and back": (
        0,
        10,
        "%m = dataTypeCast %i: i64 to i32\n%k = dataTypeCast %m: i32 to i64",
    ),
    "of two": (
        0,
        5,
        "%m = greaterThan %n: i64, 0: i64\n%o = add %i: i64, 4: i64\n%k = select %i: i64, %o: i64 by %m: bool",
    ),
}
NOT_KNOWN = {
    "one too many": (0, 11, ""),
    "negative": (-1, 9, ""),
    "rounds that are not counted": (0, "%n", ""),
    "what a parameter says": (0, 10, "%k = min %i: i64, %n: i64"),
    "a sum beyond": (0, 10, "%k = add %i: i64, 1: i64"),
    "a remainder by what is not positive": (
        0,
        10,
        "%m = subtract %i: i64, 3: i64\n%k = modulo 5: i64, %m: i64",
    ),
    "what wraps around": (
        0,
        10,
        "%m = add %i: i64, 9223372036854775800: i64\n%k = min %m: i64, 9: i64",
    ),
    "what an integer of 8 bits does not hold": (
        0,
        10,
        "%w = multiply %i: i64, 100: i64\n%m = dataTypeCast %w: i64 to i8\n%o = dataTypeCast %m: i8 to i64\n"
        "%k = min %o: i64, 9: i64",
    ),
}


def program(case: tuple[object, object, str]) -> Module:
    lower, upper, lines = case
    index = "%k: i64" if lines else "%i: i64"
    text = PROGRAM.format(
        lower=lower, upper=upper, lines=lines, index=index, type="f64", added="%s"
    )
    return parse_module(f'module "m"\nstage raw\n{text}')


def bounds(module: Module) -> list[Bounds]:
    body = module.functions["f"].body
    assert body is not None
    return [i.op.bounds for i in walk(body) if i.op.name == "gather"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", INSIDE.values(), ids=INSIDE)
def test_indices_are_found_inside(case: tuple[object, object, str]) -> None:
    module, changed = program(case), program(case)
    assert apply_pass(IntegerRanges(), changed)
    verify(changed)
    assert not apply_pass(IntegerRanges(), changed)
    assert bounds(changed) == [Bounds.INSIDE]
    x = np.linspace(1, 2, 10)
    was, now = (np.asarray(evaluate(m, "f", x, 3)) for m in (module, changed))
    np.testing.assert_array_equal(now, was)


@pytest.mark.parametrize("case", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_other_indices_are_checked(case: tuple[object, object, str]) -> None:
    module, changed = program(case), program(case)
    apply_pass(IntegerRanges(), changed)
    verify(changed)
    assert bounds(changed) == [Bounds.CHECK]
    x = np.linspace(1, 2, 10)
    found = []
    for m in (module, changed):
        try:
            found.append(np.asarray(evaluate(m, "f", x, 3)).tolist())
        except NNKitError as error:
            found.append([type(error)])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("op", "bounds", "answer"),
    [
        ("lessThan", (0, 10), True),
        ("lessThan", (0, 11), None),
        ("lessThan", (10, 12), False),
        ("lessThanOrEqual", (0, 11), True),
        ("greaterThan", (0, 11), False),
        ("greaterThan", (11, 12), True),
        ("greaterThanOrEqual", (10, 12), True),
        ("greaterThanOrEqual", (9, 12), None),
        ("equal", (0, 10), False),
        ("equal", (0, 11), None),
        ("equal", (10, 11), True),
        ("notEqual", (11, 15), True),
        ("notEqual", (10, 11), False),
    ],
)
def test_comparisons_of_an_index_with_ten(
    op: str, bounds: tuple[int, int], answer: bool | None
) -> None:
    lower, upper = bounds
    answers = f"<{upper - lower} x bool>"
    module = parse_module(f"""module "m"
stage raw
func @f: (i64) -> {answers} {{
'entry(%n: i64):
    %last, %all = for {lower}: i64 upto {upper}: i64 carrying %n: i64 stacking {answers} {{
    'body(%i: i64, %h: i64):
        %c = {op} %i: i64, 10: i64
        yield %h: i64, %c: bool
    }}
    return %all: {answers}
}}""")
    was = np.asarray(evaluate(module, "f", 0))
    assert apply_pass(IntegerRanges(), module) == (answer is not None)
    verify(module)
    np.testing.assert_array_equal(np.asarray(evaluate(module, "f", 0)), was)
    if answer is not None:
        assert (was == answer).all()
