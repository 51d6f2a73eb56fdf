"""Laws of `if`, `while` and `for`."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.passes import Canonicalize, DeadCode, Fold, Pass, Simplify, apply_pass
from nnkit.core.passes import CommonSubexpressions as Cse
from nnkit.core.verify import verify
from tests.core.passes.laws import every_opcode, parsed

IF = """
    %y = if %c: bool -> f32 {{
    'then():
        {}
    }} else {{
    'else():
        {}
    }}
    return %y: f32
"""
WHILE = """
    %n, %s = while carrying %x: f32, %x: f32 {{
    'condition(%i: f32, %a: f32):
        {}
    }} do {{
    'body(%j: f32, %b: f32):
        {}
    }}
    return %s: f32
"""
FOR = """
    %lo = literal {}: i64
    %s = for %lo: i64 upto %m: i64 carrying %x: f32 {{
    'body(%i: i64, %a: f32):
        {}
    }}
    return %s: f32
"""
FALSE = "%t = literal false: bool yield %t: bool"
MORE = "%t = lessThan %i: f32, 3: f32 yield %t: bool"
NEGATED = "%z = negate %x: f32 yield %z: f32"
EXP = "%z = exp %x: f32 yield %z: f32"
X = "yield %x: f32"
NEXT = "%k = add %j: f32, 1: f32"

TEST = "%c = greaterThan %x: f32, 0: f32"
TEST_U = " %c = greaterThan %u: f32, 0: f32"
TWO, THREE = (f"%z = literal {n}: f32 yield %z: f32" for n in (2, 3))
PLUS_TWO = "%t = literal 2: f32 %z = add %x: f32, %t: f32 yield %z: f32"
AFTER = "%u = negate %x: f32 %v = add %u: f32, %y: f32 return %v: f32"

CASES = [
    # (title, pass, text, what is left besides literals)
    ("if true", Fold(), "%c = literal true: bool" + IF.format(NEGATED, X), "negate"),
    ("if false", Fold(), "%c = literal false: bool" + IF.format(NEGATED, X), ""),
    ("if unknown", Fold(), TEST + IF.format(NEGATED, X), "greaterThan if negate"),
    ("while false", Fold(), WHILE.format(FALSE, NEXT + " yield %k: f32, %b: f32"), ""),
    ("while true at first", Fold(), WHILE.format(MORE, NEXT + " yield %k: f32, %k: f32"), "while lessThan add"),
    ("for nothing", Fold(), "%m = literal 3: i64" + FOR.format(3, "%z = negate %a: f32 yield %z: f32"), ""),
    ("for once", Fold(), "%m = literal 4: i64" + FOR.format(3, "%z = negate %a: f32 yield %z: f32"), "negate"),
    ("for twice", Fold(), "%m = literal 5: i64" + FOR.format(3, "%z = negate %a: f32 yield %z: f32"), "for negate"),
    ("both the same", Simplify(), TEST + IF.format(X, X), ""),
    ("equal literals", Simplify(), TEST + IF.format(TWO, TWO), ""),
    ("different literals", Simplify(), TEST + IF.format(TWO, THREE), "greaterThan if"),
    ("a loop's invariant", Simplify(), WHILE.format(MORE, NEXT + " yield %k: f32, %b: f32"), ""),
    ("what was known outside", Cse(), "%u = negate %x: f32" + TEST_U + IF.format(NEGATED, EXP),
     "negate greaterThan if exp"),
    ("never from inside to outside", Cse(), TEST + IF.format(NEGATED, NEGATED).replace("return %y: f32", AFTER),
     "greaterThan if negate add negate negate"),
    ("literals are local", Cse(),
     "%two = literal 2: f32 %u = add %x: f32, %two: f32" + TEST_U + IF.format(PLUS_TWO, EXP),
     "add greaterThan if exp"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_law(case: tuple[str, Pass, str, str]) -> None:
    _, a_pass, text, left = case
    module = parsed(f"func @f: (f32) -> f32 {{\n'entry(%x: f32): {text} }}")
    arguments = (-2.0, 0.0, 2.5)
    expected = [evaluate(module, "f", x) for x in arguments]
    apply_pass(a_pass, module)
    verify(module)
    assert not apply_pass(a_pass, module)
    assert [evaluate(module, "f", x) for x in arguments] == expected
    apply_pass(DeadCode(), module)
    verify(module)
    kept = [op for op in every_opcode(module, "f") if op not in ("literal", "yield", "return")]
    assert sorted(kept) == sorted(left.split())
    assert [evaluate(module, "f", x) for x in arguments] == expected


def test_an_invariant_is_no_longer_carried() -> None:
    text = WHILE.format(MORE, NEXT + " yield %k: f32, %b: f32")
    module = parsed(f"func @f: (f32) -> f32 {{\n'entry(%x: f32): {text} }}")
    apply_pass(Simplify(), module)
    loop = module.functions["f"].entry.instructions[0]
    assert len(loop.operands) == len(loop.results) == 1


def test_the_condition_itself() -> None:
    """And an `if` that is left with nothing goes."""
    for first, second, left in (("true", "false", []), ("false", "true", ["not"])):
        module = parsed(f"""
        func @f: (bool) -> bool {{
        'entry(%c: bool):
            %y = if %c: bool -> bool {{
            'then(): %a = literal {first}: bool yield %a: bool
            }} else {{
            'else(): %a = literal {second}: bool yield %a: bool
            }}
            return %y: bool
        }}
        """)
        apply_pass(Canonicalize(), module)
        apply_pass(DeadCode(), module)
        assert every_opcode(module, "f") == [*left, "return"]


def test_a_condition_that_does_something_is_done_once() -> None:
    module = parsed("""
    var @v: i64
    func @f: () -> i64 {
    'entry():
        %p = literal @v: *i64
        while {
        'condition():
            store 5: i64 to %p: *i64
            %t = literal false: bool
            yield %t: bool
        } do {
        'body():
            yield
        }
        %y = load %p: *i64
        return %y: i64
    }
    """)
    assert apply_pass(Fold(), module)
    verify(module)
    assert "while" not in every_opcode(module, "f") and evaluate(module, "f") == 5


LOOP = """
func @f: (<3 x f32>) -> {results} {{
'entry(%x: <3 x f32>):
    %lo = literal {lower}: i64
    %hi = literal {upper}: i64
    {names} = for %lo: i64 upto %hi: i64 stacking {types} {{
    'body(%i: i64):
        {body}
    }}
    return {values}
}}
"""


@pytest.mark.parametrize(
    ("lower", "row", "numbers"),
    [
        (0, "%r = add %i: i64, 0: i64", [0, 1, 2, 3]),
        (3, "%r = add %i: i64, 5: i64", [8, 9, 10, 11]),
        (3, "%r = subtract 5: i64, %i: i64", [2, 1, 0, -1]),
        (-1, "%t = multiply %i: i64, -3: i64 %r = add 4: i64, %t: i64", [7, 4, 1, -2]),
        (0, "%t = multiply %i: i64, %i: i64 %r = add %t: i64, 0: i64", None),
        (0, "%r = multiply %i: i64, 0: i64", None),
        (2**62, "%r = multiply %i: i64, 2: i64", None),
        (
            0,
            "%t = multiply %i: i64, 1073741825: i64 %r = add %t: i64, 0: i64",
            [0, 1073741825, 2147483650, 3221225475],
        ),
    ],
)
def test_a_loop_does_not_stack_its_numbers(lower: int, row: str, numbers: list[int] | None) -> None:
    """Nor what lies so far from them; what its rounds compute of other values it does."""
    element = "%e = gather %x: <3 x f32> at 1: i64 along 0"
    text = LOOP.format(
        results="(<4 x i64>, <4 x f32>)",
        lower=lower,
        upper=lower + 4,
        names="%n, %e",
        types="<4 x i64>, <4 x f32>",
        body=f"{row} {element} yield %r: i64, %e: f32",
        values="%n: <4 x i64>, %e: <4 x f32>",
    )
    module = parsed(text)
    x = np.array([1, 2, 3], np.float32)
    expected = [np.asarray(each).tolist() for each in evaluate(module, "f", x)]
    apply_pass(Canonicalize(), module)
    apply_pass(DeadCode(), module)
    verify(module)
    assert [np.asarray(each).tolist() for each in evaluate(module, "f", x)] == expected
    (loop,) = [i for i in module.functions["f"].entry.instructions if i.op.is_structured]
    assert len(loop.results) == (2 if numbers is None else 1)
    assert numbers is None or expected[0] == numbers


@pytest.mark.parametrize(
    ("upper", "extent", "row"),
    [
        (3, 5, "%r = add %i: i64, 0: i64"),
        (3, 0, "%r = add %i: i64, 0: i64"),
        (2**63 - 1, 3, "%r = add %i: i64, 0: i64"),
        (2, 2, "%t = multiply %i: i64, 4294967295: i64 %r = subtract %t: i64, 2147483648: i64"),
    ],
)
def test_a_loop_stacks_what_does_not_fit(upper: int, extent: int, row: str) -> None:
    """Numbers that are more or fewer than the axis has, of which the program complains, or further apart than the type
    has numbers, are left to it."""
    module = parsed(f"""
    func @f: () -> <{extent} x i32> {{
    'entry():
        %lo = literal 0: i64
        %hi = literal {upper}: i64
        %n = for %lo: i64 upto %hi: i64 stacking <{extent} x i32> {{
        'body(%i: i64):
            {row}
            %c = dataTypeCast %r: i64 to i32
            yield %c: i32
        }}
        return %n: <{extent} x i32>
    }}
    """)
    apply_pass(Canonicalize(), module)
    verify(module)
    assert "for" in every_opcode(module, "f")
    if upper == extent:
        assert evaluate(module, "f").tolist() == [-(2**31), 2**31 - 1]
