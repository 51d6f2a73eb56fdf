"""Structured control flow from blocks that branch."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from nnkit.core.errors import FuelError
from nnkit.core.evaluate import EnumValue, evaluate
from nnkit.core.ir import Block, Builder, Function, Module, Region
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Add, Branch, Conditional, LessThan, Modulo, Return, While, splat
from nnkit.core.passes import Structurize, apply_pass, run_pipeline
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BOOL, I64, FunctionType, scalar
from nnkit.core.verify import verify
from tests.patience import PATIENCE
from tests.programs import Program, describe, graphs, same_bits
from tests.test_scaling import many_cases

COUNT = scalar(I64)


def parsed(text: str) -> Module:
    """The module of these definitions."""
    return parse_module(f'module "m"\nstage raw\n{text}')


def structured(text: str) -> Module:
    """The module after the pass, which is valid, and prints and parses."""
    module = parsed(text)
    run_pipeline(module, [Structurize()], verifier=verify, verify=True)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    assert not apply_pass(Structurize(), module)
    return module


def opcodes(module: Module, name: str = "f") -> Counter[str]:
    """How often each op stands in a function, `yield` and `return` aside."""
    body = module.functions[name].body
    assert body is not None and len(body.blocks) == 1
    names = Counter(instruction.op.name for instruction in walk(body))
    del names["yield"], names["return"]
    return names


WHILE = """
func @f: (i64, f32) -> f32 {
'entry(%n: i64, %x: f32):
    %z = literal 0: i64
    branch 'header(%z: i64, %x: f32)
'header(%i: i64, %acc: f32):
    %c = lessThan %i: i64, %n: i64
    conditional %c: bool then 'body else 'exit(%acc: f32)
'body():
    %a2 = add %acc: f32, %x: f32
    %one = literal 1: i64
    %i2 = add %i: i64, %one: i64
    branch 'header(%i2: i64, %a2: f32)
'exit(%r: f32):
    return %r: f32
}
"""


def test_a_plain_loop_is_a_plain_while() -> None:
    module = structured(WHILE)
    assert opcodes(module) == {"literal": 2, "while": 1, "lessThan": 1, "add": 2}
    loop = next(i for i in module.functions["f"].entry.instructions if isinstance(i.op, While))
    assert [x.name for x in loop.regions[1].entry.arguments] == ["i", "acc"]
    assert len(loop.regions[0].entry.instructions) == 2
    assert evaluate(module, "f", 3, 2.0) == 8.0
    assert evaluate(module, "f", 0, 2.0) == 2.0


def test_the_way_out_may_be_the_first() -> None:
    text = WHILE.replace("then 'body else 'exit(%acc: f32)", "then 'exit(%acc: f32) else 'body")
    module = structured(text.replace("lessThan", "greaterThanOrEqual"))
    assert opcodes(module) == {
        "literal": 2,
        "while": 1,
        "greaterThanOrEqual": 1,
        "not": 1,
        "add": 2,
    }
    assert evaluate(module, "f", 3, 2.0) == 8.0


def test_a_cheap_value_of_the_header_is_computed_again() -> None:
    text = WHILE.replace("lessThan %i: i64", "lessThan %k: i64").replace(
        "    %c =", "    %k = multiply %i: i64, %i: i64\n    %c ="
    )
    module = structured(text.replace("add %i: i64, %one", "add %k: i64, %one"))
    assert opcodes(module)["multiply"] == 2 and opcodes(module)["while"] == 1
    assert opcodes(module)["if"] == 0
    assert evaluate(module, "f", 3, 2.0) == 6.0


def test_a_dear_value_of_the_header_is_kept() -> None:
    """The header is executed before the loop and at the end of its body: as often as before."""
    module = structured("""
    func @f: (f64) -> f64 {
    'entry(%limit: f64):
        %m = literal 1: <9 x 9 x f64>
        branch 'header(%m: <9 x 9 x f64>)
    'header(%x: <9 x 9 x f64>):
        %y = dot %x: <9 x 9 x f64>, %x: <9 x 9 x f64>
        %s = reduce %y: <9 x 9 x f64> by add along (0, 1)
        %c = greaterThan %s: f64, %limit: f64
        conditional %c: bool then 'exit else 'body
    'body():
        branch 'header(%y: <9 x 9 x f64>)
    'exit():
        return %s: f64
    }
    """)
    assert opcodes(module) == {
        "literal": 1, "dot": 2, "reduce": 2, "greaterThan": 2, "while": 1, "not": 1,
    }  # fmt: skip
    assert evaluate(module, "f", 1e6) == 9.0**8 * 9


def test_a_diamond_is_an_if() -> None:
    module = structured("""
    func @f: (bool, f32) -> f32 {
    'entry(%c: bool, %x: f32):
        conditional %c: bool then 'a else 'b
    'a():
        %u = exp %x: f32
        branch 'join(%u: f32)
    'b():
        %v = negate %x: f32
        branch 'join(%v: f32)
    'join(%r: f32):
        return %r: f32
    }
    """)
    assert opcodes(module) == {"if": 1, "exp": 1, "negate": 1}
    assert evaluate(module, "f", False, 2.0) == -2.0


def test_branches_that_only_choose_are_no_if() -> None:
    module = structured("""
    func @f: (bool, bool) -> bool {
    'entry(%c: bool, %x: bool):
        conditional %c: bool then 'join(%x: bool) else 'join(%x: bool)
    'join(%r: bool):
        return %r: bool
    }
    """)
    assert not opcodes(module)


def test_returns_from_several_places() -> None:
    module = structured("""
    func @f: (i64) -> i64 {
    'entry(%n: i64):
        %a = lessThan %n: i64, 0: i64
        conditional %a: bool then 'negative else 'b
    'negative():
        return -1: i64
    'b():
        %z = greaterThan %n: i64, 0: i64
        conditional %z: bool then 'positive else 'zero
    'positive():
        return 1: i64
    'zero():
        return 0: i64
    }
    """)
    assert opcodes(module)["if"] == 2
    assert [int(evaluate(module, "f", n)) for n in (-5, 0, 7)] == [-1, 0, 1]


def test_short_circuits_have_flags() -> None:
    module = structured("""
    func @f: (bool, bool) -> i64 {
    'entry(%c: bool, %d: bool):
        conditional %c: bool then 'second else 'no
    'second():
        conditional %d: bool then 'yes else 'no
    'yes():
        branch 'join(1: i64)
    'no():
        branch 'join(2: i64)
    'join(%r: i64):
        return %r: i64
    }
    """)
    assert opcodes(module)["if"] == 3
    for c in (False, True):
        for d in (False, True):
            assert evaluate(module, "f", c, d) == (1 if c and d else 2)


def test_a_loop_of_one_block_carries_its_condition() -> None:
    module = structured("""
    func @f: (i64) -> i64 {
    'entry(%n: i64):
        %z = literal 0: i64
        branch 'body(%z: i64)
    'body(%i: i64):
        %one = literal 1: i64
        %next = add %i: i64, %one: i64
        %c = lessThan %next: i64, %n: i64
        conditional %c: bool then 'body(%next: i64) else 'exit
    'exit():
        return %next: i64
    }
    """)
    assert opcodes(module)["if"] == 0 and opcodes(module)["add"] == 1
    assert [int(evaluate(module, "f", n)) for n in (-1, 1, 4)] == [1, 1, 4]


def test_a_loop_left_in_the_middle() -> None:
    module = structured("""
    func @f: (i64) -> i64 {
    'entry(%n: i64):
        branch 'header(%n: i64)
    'header(%i: i64):
        %c = greaterThan %i: i64, 0: i64
        conditional %c: bool then 'body else 'exit(0: i64)
    'body():
        %d = modulo %i: i64, 7: i64
        %e = equal %d: i64, 0: i64
        conditional %e: bool then 'exit(%i: i64) else 'latch
    'latch():
        %j = subtract %i: i64, 1: i64
        branch 'header(%j: i64)
    'exit(%r: i64):
        return %r: i64
    }
    """)
    assert opcodes(module)["while"] == 1
    assert [int(evaluate(module, "f", n)) for n in (20, 6, 0)] == [14, 0, 0]


def test_irreducible_loops() -> None:
    text = """
    func @f: (bool, i64) -> i64 {
    'entry(%c: bool, %n: i64):
        conditional %c: bool then 'a(%n: i64) else 'b(%n: i64)
    'a(%i: i64):
        %i2 = subtract %i: i64, 1: i64
        %p = greaterThan %i2: i64, 0: i64
        conditional %p: bool then 'b(%i2: i64) else 'exit(%i2: i64)
    'b(%j: i64):
        %j2 = subtract %j: i64, 2: i64
        %q = greaterThan %j2: i64, 0: i64
        conditional %q: bool then 'a(%j2: i64) else 'exit(%j2: i64)
    'exit(%r: i64):
        return %r: i64
    }
    """
    original, module = parsed(text), structured(text)
    # no block is written twice
    assert opcodes(module)["subtract"] == 2 and opcodes(module)["while"] == 1
    for n in range(12):
        for c in (False, True):
            assert evaluate(module, "f", c, n) == evaluate(original, "f", c, n)


def test_loops_without_an_exit_stay() -> None:
    module = structured("""
    func @f: (bool) -> i64 {
    'entry(%c: bool):
        conditional %c: bool then 'forever else 'out
    'forever():
        branch 'forever
    'out():
        return 7: i64
    'nowhere():
        branch 'forever
    }
    """)
    (loop,) = [i for i in walk(module.functions["f"].body) if isinstance(i.op, While)]  # type: ignore[arg-type]
    condition = loop.regions[0].entry.terminator.operands[0]
    assert condition.op == splat(scalar(BOOL), True)
    assert evaluate(module, "f", False) == 7


def test_a_function_that_never_returns() -> None:
    module = structured("""
    func @f: () -> i64 {
    'entry():
        branch 'forever
    'forever():
        branch 'forever
    }
    """)
    assert opcodes(module)["while"] == 1 and opcodes(module)["undefined"] == 1


def test_an_entry_that_is_a_loop() -> None:
    """The verifier forbids it; the pass does not mind."""
    b, block = Builder(Block()), Block()
    b = Builder(block)
    n = b.argument(COUNT, "n")
    after = b.emit(Add(), n, b.emit(splat(COUNT, 3)))
    more = b.emit(LessThan(), after, b.emit(splat(COUNT, 10)))
    end = Block()
    b.emit_many(Conditional(1), [more, after], (), [block, end])
    Builder(end).emit_many(Return(), [after])
    module = Module()
    module.add(Function("f", FunctionType((COUNT,), COUNT), Region([block, end])))
    run_pipeline(module, [Structurize()])  # which the verifier would refuse
    verify(module)
    assert [int(evaluate(module, "f", n)) for n in (0, 9, 20)] == [12, 12, 23]


ENUM = """
enum $Shape { ?none, ?circle(f32), ?box(f32, f32) }

func @f: ($Shape) -> f32 {
'entry(%s: $Shape):
    branchEnum %s: $Shape case ?none 'none case ?circle 'circle case ?box 'box
'none():
    return 0: f32
'circle(%r: f32):
    %rr = square %r: f32
    branch 'out(%rr: f32)
'box(%w: f32, %h: f32):
    %wh = multiply %w: f32, %h: f32
    branch 'out(%wh: f32)
'out(%area: f32):
    return %area: f32
}
"""


def test_enums() -> None:
    module = structured(ENUM)
    assert opcodes(module)["isCase"] == 2 and opcodes(module)["payload"] == 3
    shapes = [EnumValue("none"), EnumValue("circle", (3.0,)), EnumValue("box", (2.0, 5.0))]
    assert [float(evaluate(module, "f", shape)) for shape in shapes] == [0.0, 9.0, 10.0]


def test_effects_happen_as_often_and_in_the_same_order() -> None:
    text = """
    var @log: i64

    func @note: (i64) -> i64 {
    'entry(%digit: i64):
        %p = literal @log: *i64
        %old = load %p: *i64
        %shifted = multiply %old: i64, 10: i64
        %new = add %shifted: i64, %digit: i64
        store %new: i64 to %p: *i64
        return %new: i64
    }

    func @f: (i64) -> i64 {
    'entry(%n: i64):
        branch 'header(%n: i64)
    'header(%i: i64):
        %a = apply @note(1: i64): (i64) -> i64
        %c = greaterThan %i: i64, 0: i64
        conditional %c: bool then 'body else 'exit
    'body():
        %b = apply @note(2: i64): (i64) -> i64
        %odd = modulo %i: i64, 2: i64
        %o = equal %odd: i64, 1: i64
        conditional %o: bool then 'extra else 'latch
    'extra():
        %e = apply @note(3: i64): (i64) -> i64
        branch 'latch
    'latch():
        %j = subtract %i: i64, 1: i64
        branch 'header(%j: i64)
    'exit():
        return %a: i64
    }
    """
    original, module = parsed(text), structured(text)
    for n in range(5):
        assert evaluate(module, "f", n) == evaluate(original, "f", n)
    assert evaluate(module, "f", 3) == 1231212_31


@settings(max_examples=100)
@given(program=graphs(control=True, memory=True))
def test_random_graphs_keep_every_bit(program: Program) -> None:
    expected = evaluate(program.module, program.entry, *program.arguments)
    run_pipeline(program.module, [Structurize()], verifier=verify, verify=True)
    actual = evaluate(program.module, program.entry, *program.arguments)
    assert same_bits(actual, expected), f"became\n{describe(program.module)}"
    for function in program.module.functions.values():
        assert function.body is not None and len(function.body.blocks) == 1
    assert not apply_pass(Structurize(), program.module)


def random_blocks(count: int, seed: int, *, forward: bool) -> Module:
    """A function of so many blocks that branch anywhere, or only forward, and notes its way.

    Each block multiplies a number by its own; the remainder decides where it goes on to.
    """
    rng = random.Random(seed)
    blocks = [Block(name=f"b{k}") for k in range(count)]
    module = Module()
    builders = [Builder(block) for block in blocks]
    for b in builders:
        b.argument(COUNT, "x")
        b.argument(COUNT, "left")
    exit_block = Block(name="exit")
    result = Builder(exit_block).argument(COUNT, "r")
    Builder(exit_block).emit_many(Return(), [result])
    for k, b in enumerate(builders):
        x, left = b.block.arguments
        y = b.emit(Add(), x, b.emit(splat(COUNT, rng.randrange(1 << 40))))
        less = b.emit(Add(), left, b.emit(splat(COUNT, -1)))
        low = k + 1 if forward else 1
        targets = (
            [
                blocks[min(rng.randrange(low, low + 60 if forward else count), count - 1)]
                for _ in "ab"
            ]
            if low < count
            else []
        )
        if not targets:
            b.emit_many(Branch(), [y], (), [exit_block])
            continue
        if rng.random() < 0.5:
            targets[0] = exit_block
            goes = b.emit(LessThan(), less, b.emit(splat(COUNT, 0)))
            b.emit_many(Conditional(1), [goes, y, y, less], (), targets)
        else:
            remainder = b.emit(Modulo(), y, b.emit(splat(COUNT, 97)))
            odd = b.emit(LessThan(), remainder, b.emit(splat(COUNT, rng.randrange(97))))
            b.emit_many(Conditional(2), [odd, y, less, y, less], (), targets)
    module.add(Function("f", FunctionType((COUNT, COUNT), COUNT), Region([*blocks, exit_block])))
    return module


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_blocks(seed: int, forward: bool) -> None:
    original = random_blocks(1000, seed, forward=forward)
    module = random_blocks(1000, seed, forward=forward)
    start = time.process_time()
    apply_pass(Structurize(), module)
    assert time.process_time() - start < 5 * PATIENCE
    verify(module)
    done = 0
    for n in range(6):
        try:
            expected = evaluate(original, "f", n, 50, fuel=5_000)
        except FuelError:
            continue  # it may never end
        assert evaluate(module, "f", n, 50, fuel=10_000_000) == expected
        done += 1
    assert done


def chain(count: int) -> str:
    """A function that returns from `count` places, one behind the other."""
    blocks = [
        f"'b{k}(): %c{k} = equal %n: i64, {k}: i64 conditional %c{k}: bool then 'r{k} else 'b{k + 1}\n"
        f"'r{k}(): return {k * k}: i64"
        for k in range(count)
    ]
    head = "func @f: (i64) -> i64 {\n'entry(%n: i64): branch 'b0\n"
    return f"{head}{chr(10).join(blocks)}\n'b{count}(): return -1: i64\n}}"


def test_deep_nesting() -> None:
    count = 1500
    module = parsed(chain(count))
    start = time.process_time()
    apply_pass(Structurize(), module)
    assert time.process_time() - start < 5 * PATIENCE
    verify(module)
    for n in (0, 7, count - 1, count):
        assert evaluate(module, "f", n) == (n * n if n < count else -1)


def nest(depth: int) -> str:
    """Loops inside each other, each of two iterations but for all but the innermost five of one."""
    lines = ["func @f: (i64) -> i64 {", "'entry(%n: i64): branch 'h0(0: i64, 0: i64)"]
    for k in range(depth):
        limit = 2 if k >= depth - 5 else 1
        inner = f"'h{k + 1}(0: i64, %s{k}: i64)" if k + 1 < depth else f"'l{k}(%s{k}: i64)"
        out = f"'l{k - 1}(%s{k}: i64)" if k else "'exit(%s0: i64)"
        lines += [
            f"'h{k}(%i{k}: i64, %s{k}: i64): %c{k} = lessThan %i{k}: i64, {limit}: i64",
            f"conditional %c{k}: bool then 'b{k} else {out}",
            f"'b{k}(): branch {inner}",
            f"'l{k}(%t{k}: i64): %u{k} = add %t{k}: i64, %n: i64 %j{k} = add %i{k}: i64, 1: i64",
            f"branch 'h{k}(%j{k}: i64, %u{k}: i64)",
        ]
    return "\n".join([*lines, "'exit(%r: i64): return %r: i64", "}"])


@pytest.mark.parametrize("depth", [1, 6, 300])
def test_loops_inside_loops(depth: int) -> None:
    text = nest(depth)
    original, module = parsed(text), parsed(text)
    start = time.process_time()
    apply_pass(Structurize(), module)
    assert time.process_time() - start < 5 * PATIENCE
    verify(module)
    assert opcodes(module)["while"] == depth and opcodes(module)["if"] == 0
    assert same_bits(evaluate(module, "f", 3), np.asarray(evaluate(original, "f", 3)))


def test_a_choice_between_many_cases() -> None:
    """What each case reads for itself is nothing to the choices around it: sets of it would grow with the number."""
    few, many = many_cases(4 * 2000), many_cases(4 * 8000)
    # other programs disturb the measurement: one of several that shows it is enough
    assert any(_seconds(many) < 8 * _seconds(few) for _ in range(3))


def _seconds(text: str) -> float:
    """CPU time of the pass, without collections of garbage, which depend on what came before."""
    module = parse_module(text)
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        apply_pass(Structurize(), module)
        return time.process_time() - start
    finally:
        gc.enable()
