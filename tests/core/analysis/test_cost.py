"""What programs cost: counted by hand, and equal to what their loop nests do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.analysis.cost import Costs
from nnkit.core.analysis.symbolic_count import Cost, SymbolicCount
from nnkit.core.ir import Function, Module, finish_function, start_function
from nnkit.core.ops import Return
from nnkit.core.text import parse_module
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.samples import Sample
from tests.rows import each

HEAD = 'module "m"\n'
COUNTS = st.lists(st.integers(0, 9), max_size=3).map(lambda terms: SymbolicCount(tuple(terms)))


def cost_of(body: str, parameters: str, result: str, more: str = "") -> Cost:
    """The cost of @f, written without its head."""
    types = ", ".join(p.partition(": ")[2] for p in parameters.split("; ")) if parameters else ""
    given = f"({', '.join(parameters.split('; '))})" if parameters else ""
    text = f"{HEAD}{more}\nfunc @f: ({types}) -> {result} {{\n'entry{given}:\n{body}\n}}\n"
    return Costs(parse_module(text)).of("f")


@pytest.mark.parametrize(
    ("line", "parameters", "result", "flops", "moved"),
    [
        ("add %x: <5 x f32>, %x: <5 x f32>", "%x: <5 x f32>", "<5 x f32>", 5, 60),
        ("add %x: <5 x f32>, %s: f32", "%x: <5 x f32>; %s: f32", "<5 x f32>", 5, 44),
        ("divide %x: f64, %x: f64", "%x: f64", "f64", 5, 24),
        ("tanh %x: <5 x f32>", "%x: <5 x f32>", "<5 x f32>", 75, 40),
        ("transpose %x: <2 x 3 x f32>", "%x: <2 x 3 x f32>", "<3 x 2 x f32>", 0, 48),
        ("shapeCast %x: <2 x 3 x f32> to 6", "%x: <2 x 3 x f32>", "<6 x f32>", 0, 0),
        ("slice %x: <9 x f32> from 2 upto 4", "%x: <9 x f32>", "<2 x f32>", 0, 16),
        ("broadcast %x: f32 to 5", "%x: f32", "<5 x f32>", 0, 24),
        ("reduce %x: <5 x 3 x f32> by add along 0", "%x: <5 x 3 x f32>", "<3 x f32>", 15, 72),
        ("reduce %x: <5 x 3 x f32> by divide along 0", "%x: <5 x 3 x f32>", "<3 x f32>", 75, 72),
        ("dot %x: <2 x 3 x f32>, %y: <3 x 4 x f32>", "%x: <2 x 3 x f32>; %y: <3 x 4 x f32>",
         "<2 x 4 x f32>", 2 * 24, 104),
        ("dot %x: <7 x 2 x 3 x f32>, %y: <3 x f32>", "%x: <7 x 2 x 3 x f32>; %y: <3 x f32>",
         "<7 x 2 x f32>", 2 * 42, 236),
        ("load %x: *<5 x f32>", "%x: *<5 x f32>", "<5 x f32>", 0, 40),
        ("literal (%x: f32, %x: f32): (f32, f32)", "%x: f32", "(f32, f32)", 0, 0),
    ],
)  # fmt: skip
def test_one_instruction(line: str, parameters: str, result: str, flops: int, moved: int) -> None:
    found = cost_of(f"%r = {line}\nreturn %r: {result}", parameters, result)
    assert (found.flops, found.bytes) == (SymbolicCount((flops,)), SymbolicCount((moved,)))


def test_a_convolution_is_two_flops_per_multiplication() -> None:
    found = cost_of(
        "%r = convolve %x: <1 x 2 x 9 x f32> kernel %k: <4 x 2 x 3 x f32>\n"
        "return %r: <1 x 4 x 7 x f32>",
        "%x: <1 x 2 x 9 x f32>; %k: <4 x 2 x 3 x f32>",
        "<1 x 4 x 7 x f32>",
    )
    assert found.flops == SymbolicCount((2 * 4 * 7 * 2 * 3,))


LOOP = """
    %y = {head} {{
    'body({index}%u: f32):
        %v = add %u: f32, %u: f32
        yield %v: f32
    }}
    return %y: f32"""


def test_loops_count_as_often_as_they_run() -> None:
    body = LOOP.format(head="for 3: i64 upto 10: i64 carrying %x: f32", index="%i: i64, ")
    assert cost_of(body, "%x: f32", "f32").flops == SymbolicCount((7,))
    body = LOOP.format(head="for 3: i64 upto 1: i64 carrying %x: f32", index="%i: i64, ")
    assert str(cost_of(body, "%x: f32", "f32").flops) == "0"
    body = LOOP.format(head="for 3: i64 upto %n: i64 carrying %x: f32", index="%i: i64, ")
    assert str(cost_of(body, "%x: f32; %n: i64", "f32").flops) == "n"


def test_a_while_asks_once_more_than_it_runs() -> None:
    body = """
    %y = while carrying %x: f32 {
    'ask(%u: f32):
        %s = square %u: f32
        %c = lessThan %s: f32, 9: f32
        yield %c: bool
    } do {
    'body(%u: f32):
        %v = exp %u: f32
        yield %v: f32
    }
    return %y: f32"""
    assert str(cost_of(body, "%x: f32", "f32").flops) == "2 + 17n"


def test_of_a_choice_the_dearer_branch_counts() -> None:
    body = """
    %y = if %c: bool -> f32 {
    'then():
        %v = exp %x: f32
        yield %v: f32
    } else {
    'else():
        %v = negate %x: f32
        yield %v: f32
    }
    return %y: f32"""
    assert cost_of(body, "%x: f32; %c: bool", "f32").flops == SymbolicCount((15,))


def test_calls_cost_what_they_call_and_recursions_are_not_known() -> None:
    text = (
        HEAD
        + """
func @g: (f32) -> f32 {
'entry(%x: f32):
    %y = exp %x: f32
    return %y: f32
}
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @g(%x) -> f32
    %z = apply @g(%y) -> f32
    return %z: f32
}
func @even: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @odd(%x) -> f32
    %z = negate %y: f32
    return %z: f32
}
func @odd: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @even(%x) -> f32
    %z = apply @g(%y) -> f32
    return %z: f32
}
func @user: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @even(%x) -> f32
    %z = apply @outside(%y) -> f32
    %w = add %y: f32, %z: f32
    return %w: f32
}
[extern]
func @outside: (f32) -> f32
"""
    )
    costs = Costs(parse_module(text))
    flops = {name: str(costs.of(name).flops) for name in costs.module.functions}
    assert flops == {
        "g": "15", "f": "30", "even": "16n", "odd": "16n", "user": "1 + 16n", "outside": "0",
    }  # fmt: skip
    assert costs.of("user").unknown == {"@outside"} and not costs.of("f").unknown
    assert str(costs.total(["f", "user"]).flops) == "31 + 16n"


def test_blocks_in_cycles_are_not_known_either() -> None:
    body = """
    branch 'outer(%x: f32)
'outer(%u: f32):
    %a = exp %u: f32
    branch 'inner(%a: f32)
'inner(%v: f32):
    %b = negate %v: f32
    conditional %c: bool then 'inner(%b: f32) else 'again
'again:
    conditional %c: bool then 'outer(%b: f32) else 'last
'last:
    %y = divide %b: f32, %b: f32
    return %y: f32
'lost:
    %z = tan %x: f32
    return %z: f32"""
    assert str(cost_of(body, "%x: f32; %c: bool", "f32").flops) == "5 + 15n + n²"


def test_depth_is_no_limit() -> None:
    depth = 2000
    body = "%x0 = negate %x: f32\n" + "".join(
        f"%r{k} = for 0: i64 upto 1: i64 carrying %x{k}: f32 {{\n'b(%i{k}: i64, %x{k + 1}: f32):\n"
        for k in range(depth)
    )
    body += f"yield %x{depth}: f32\n}}\n"
    body += "".join(f"yield %r{k}: f32\n}}\n" for k in reversed(range(1, depth)))
    assert cost_of(body + "return %r0: f32", "%x: f32", "f32").flops == SymbolicCount((1,))


@each("sample", SAMPLES, ids=str)
def test_ops_cost_what_their_nests_do(sample: Sample) -> None:
    """Of every op: no more bytes than there are, and the flops of the loop nest that it means."""
    b = start_function(sample.types, [f"x{k}" for k in range(len(sample.types))])
    result = b.emit(sample.op, *b.block.arguments)
    b.emit_many(Return(), [result])
    found = _cost(finish_function("f", b, result.type))
    types = [*sample.types, result.tensor]
    assert sum(found.bytes.terms) <= sum(type.bytes for type in types) and not found.unknown

    b = start_function(sample.types, [f"x{k}" for k in range(len(sample.types))])
    nested = sample.op.nest(b, *b.block.arguments)
    if nested is not None:
        b.emit_many(Return(), [nested])
        assert _cost(finish_function("f", b, nested.type)).flops == found.flops


def _cost(function: Function) -> Cost:
    return Costs(Module("m", functions={"f": function})).of("f")


def test_counts_are_shown_at_any_size() -> None:
    assert str(SymbolicCount((1234, 1, 2, 0, 5))) == "1,234 + n + 2n² + 5n⁴"
    assert str(SymbolicCount()) == str(SymbolicCount((0, 0))) == "0"
    assert str(SymbolicCount((10**40, 0, 10**9000))) == "10⁴⁰ + 10⁹⁰⁰⁰n²"


@given(COUNTS, COUNTS, st.integers(0, 5))
def test_counts_are_polynomials(a: SymbolicCount, b: SymbolicCount, factor: int) -> None:
    def at(count: SymbolicCount, n: int) -> int:
        return sum(term * n**k for k, term in enumerate(count.terms))

    for n in (0, 1, 7):
        assert at(a + b, n) == at(a, n) + at(b, n)
        assert at(a.times(factor), n) == factor * at(a, n)
        assert at(a.repeated(), n) == n * at(a, n)
        assert at(a.or_more(b), n) >= max(at(a, n), at(b, n))
