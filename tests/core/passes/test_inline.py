"""Inlining."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from nnkit.core.analysis.call_graph import callees
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, GradientOf, Module, Value
from nnkit.core.ir.surgery import clone_module
from nnkit.core.ops import Add, Apply, Exp, Multiply, Negate, Tanh
from nnkit.core.passes import (
    Canonicalize,
    DeadCode,
    DeadFunctions,
    Inline,
    apply_pass,
    run_pipeline,
)
from nnkit.core.passes.inline import COPIES, GROWTH, LARGEST, SHORT
from nnkit.core.text import parse_module
from nnkit.core.types import F32, FunctionType, TensorType
from nnkit.core.verify import verify
from tests.core.passes.laws import call, define, every_opcode, opcodes, parsed, special
from tests.programs import same_bits

X = TensorType((11,), F32)
UNARY = FunctionType((X,), X)


def tower(height: int) -> Module:
    """f0 is exp; each further function calls the one before twice."""
    module = Module()
    below = define(module, "f0", [X], lambda b, x: b.emit(Exp(), x))
    for level in range(1, height):
        below = define(
            module,
            f"f{level}",
            [X],
            lambda b, x, callee=below: b.emit(Add(), call(b, callee, x), call(b, callee, x)),
        )
    return module


def length(module: Module) -> int:
    """The instructions of all functions."""
    return sum(len(f.entry.instructions) for f in module.functions.values() if f.body is not None)


def test_calls_of_calls_go_in_one_run() -> None:
    module = tower(4)
    expected = evaluate(module, "f3", special(X))
    assert apply_pass(Inline(), module)
    assert opcodes(module.functions["f3"]).split().count("exp") == 8
    assert "apply" not in opcodes(module.functions["f3"])
    assert opcodes(module.functions["f0"]) == "exp"
    assert same_bits(evaluate(module, "f3", special(X)), expected)
    assert not apply_pass(Inline(), module)


def test_the_order_of_definition_does_not_matter() -> None:
    module = tower(4)
    module.functions = dict(reversed(module.functions.items()))
    apply_pass(Inline(), module)
    assert "apply" not in opcodes(module.functions["f3"])


@pytest.mark.parametrize("sites", [2, 40, 200])
def test_what_would_be_copied_too_often_stays_a_function(sites: int) -> None:
    """Short functions go always, longer ones while their copies have at most a thousand instructions in all."""
    module = Module()

    def chain(b: Builder, x: Value, length: int) -> Value:
        for _ in range(length):
            x = b.emit(Tanh(), x)
        return x

    short = define(module, "short", [X], lambda b, x: chain(b, x, SHORT))
    long = define(module, "long", [X], lambda b, x: chain(b, x, SHORT + 2))

    def main(b: Builder, x: Value) -> Value:
        for _ in range(sites):
            x = call(b, long, call(b, short, x))
        return x

    define(module, "main", [X], main)
    expected = evaluate(module, "main", special(X))
    apply_pass(Inline(entries=("main",)), module)
    left = opcodes(module.functions["main"]).split()
    stays = sites * (SHORT + 1) > COPIES  # a copy replaces a call
    assert left.count("apply") == (sites if stays else 0)
    assert left.count("tanh") == sites * (SHORT if stays else 2 * SHORT + 2)
    assert same_bits(evaluate(module, "main", special(X)), expected)


def test_small_functions_only() -> None:
    module = tower(4)
    apply_pass(Inline(small=2), module)
    assert opcodes(module.functions["f1"]) == "exp exp add"
    assert opcodes(module.functions["f2"]) == "apply apply add"


def test_a_function_called_once() -> None:
    module = Module()
    once = define(module, "once", [X], lambda b, x: b.emit(Exp(), b.emit(Negate(), x)))
    define(module, "main", [X], lambda b, x: call(b, once, x))
    assert apply_pass(Inline(small=0), module)
    assert opcodes(module.functions["main"]) == "negate exp"


def test_marked_functions() -> None:
    module = tower(2)
    assert not apply_pass(Inline(small=0), module)
    module.functions["f0"].attributes = ("inline",)
    assert apply_pass(Inline(small=0), module)


def test_recursion_stays() -> None:
    module = Module()
    define(module, "even", [X], lambda b, x: b.emit(Apply("odd", UNARY), x))
    define(module, "odd", [X], lambda b, x: b.emit(Apply("even", UNARY), b.emit(Negate(), x)))
    define(module, "loop", [X], lambda b, x: b.emit(Apply("loop", UNARY), x))
    define(module, "main", [X], lambda b, x: b.emit(Apply("even", UNARY), x))
    assert not apply_pass(Inline(small=0), module)
    assert not apply_pass(Inline(), module)
    assert opcodes(module.functions["loop"]) == "apply"
    assert opcodes(module.functions["even"]) == "apply"
    assert opcodes(module.functions["odd"]) == "negate apply"


def test_declarations_stay() -> None:
    module = tower(1)
    type = FunctionType((X,), X)
    module.add(Function("gradient", type, declaration=GradientOf("f0")))
    define(module, "main", [X], lambda b, x: b.emit(Apply("gradient", type), x))
    assert not apply_pass(Inline(), module)
    assert not apply_pass(DeadFunctions(("main",)), module)


def test_void() -> None:
    module = Module()
    nothing = define(module, "nothing", [X], lambda b, x: None)
    define(module, "main", [X], lambda b, x: call(b, nothing, x))
    assert apply_pass(Inline(), module)
    assert not opcodes(module.functions["main"])
    assert evaluate(module, "main", special(X)) == ()


def test_arguments_that_were_calls() -> None:
    module = tower(1)
    f = module.functions["f0"]

    def build(b: Builder, x: Value) -> Value:
        return b.emit(Multiply(), call(b, f, call(b, f, call(b, f, x))), x)

    define(module, "main", [X], build)
    apply_pass(Inline(), module)
    assert opcodes(module.functions["main"]) == "exp exp exp multiply"


def test_a_body_that_is_its_parameter() -> None:
    module = Module()
    same = define(module, "same", [X], lambda b, x: x)
    define(module, "main", [X], lambda b, x: call(b, same, call(b, same, x)))
    apply_pass(Inline(), module)
    assert opcodes(module.functions["main"]) == ""


def test_deep_calls() -> None:
    module = Module()
    below = define(module, "f0", [X], lambda b, x: b.emit(Negate(), x))
    for level in range(1, 3000):
        below = define(module, f"f{level}", [X], lambda b, x, f=below: call(b, f, x))
    apply_pass(Inline(), module)
    assert opcodes(module.functions["f2999"]) == "negate"


def test_into_bodies_and_with_bodies() -> None:
    module = parsed("""
    func @clip: (f32) -> f32 {
    'entry(%x: f32):
        %c = lessThan %x: f32, 0: f32
        %y = if %c: bool -> f32 {
        'then():
            %zero = literal 0: f32
            yield %zero: f32
        } else {
        'else():
            yield %x: f32
        }
        return %y: f32
    }
    func @f: (f32, i64) -> f32 {
    'entry(%x: f32, %n: i64):
        %z = literal 0: i64
        %y = for %z: i64 upto %n: i64 carrying %x: f32 {
        'body(%i: i64, %v: f32):
            %w = subtract %v: f32, 1: f32
            %u = apply @clip(%w): (f32) -> f32
            yield %u: f32
        }
        return %y: f32
    }
    """)
    assert apply_pass(Inline(), module)
    verify(module)
    assert "apply" not in every_opcode(module, "f") and "if" in every_opcode(module, "f")
    assert evaluate(module, "f", 2.5, 2) == 0.5 and evaluate(module, "f", 2.5, 9) == 0
    assert not apply_pass(Inline(), module)


def test_memory_that_lasts_until_the_return_stays_with_its_function() -> None:
    module = parsed("""
    func @g: (f32) -> f32 {
    'entry(%x: f32):
        %p = allocateStack f32 count 1
        store %x: f32 to %p: *f32
        %y = load %p: *f32
        return %y: f32
    }
    func @f: (f32) -> f32 {
    'entry(%x: f32):
        %y = apply @g(%x): (f32) -> f32
        return %y: f32
    }
    """)
    assert not apply_pass(Inline(), module)


def test_nothing_grows_without_bounds() -> None:
    module = tower(40)
    before = length(module)
    assert apply_pass(Inline(), module)
    verify(module)
    longest = max(len(function.entry.instructions) for function in module.functions.values())
    assert longest <= LARGEST and length(module) <= before + LARGEST


def test_functions_as_values() -> None:
    module = parsed("""
    func @g: (f32) -> f32 {
    'entry(%x: f32):
        %y = exp %x: f32
        return %y: f32
    }
    func @f: (f32) -> f32 {
    'entry(%x: f32):
        %g = literal @g: (f32) -> f32
        %y = apply %g(%x): (f32) -> f32
        return %y: f32
    }
    """)
    assert not apply_pass(Inline(), module)
    assert not apply_pass(DeadFunctions(("f",)), module)
    run_pipeline(module, [Canonicalize(), Inline(), DeadCode(), DeadFunctions(("f",))])
    assert every_opcode(module, "f") == ["exp", "return"] and list(module.functions) == ["f"]


def test_a_long_chain_of_calls_is_copied_once_for_its_entry() -> None:
    lines = ['module "m"', "func @f0: (i64) -> i64 {", "'entry(%x: i64):", "return %x: i64", "}"]
    for k in range(1, 1000):
        lines += [
            f"func @f{k}: (i64) -> i64 {{", "'entry(%x: i64):", f"%y = add %x: i64, {k}: i64",
            f"%z = apply @f{k - 1}(%y): (i64) -> i64", "return %z: i64", "}",
        ]  # fmt: skip
    module = parse_module("\n".join(lines))
    assert apply_pass(Inline(entries=("f999",)), module)
    verify(module)
    sizes = [len(f.entry.instructions) for f in module.functions.values()]
    assert max(sizes) == sizes[-1] and sum(sizes) < 10_000
    assert not apply_pass(Inline(entries=("f999",)), module)
    assert evaluate(module, "f999", 1) == 1 + 999 * 500


SHAPES: Mapping[str, Callable[[int, int], Sequence[int]]] = {
    "a chain": lambda k, n: [k - 1],
    "a chain below a recursion": lambda k, n: [k - 1] if k > 1 else [n - 2],
    "diamonds": lambda k, n: [k - 1, k - 1],
    "a fan": lambda k, n: [0, 0],
    "one caller": lambda k, n: range(k) if k == n - 1 else [],
    "a tree": lambda k, n: [k // 2, k // 3],
    "a web": lambda k, n: [k - 1, k // 2, k * k % 7 % k],
}
"""Whom function number k of n calls; number 0 calls nobody but in a recursion."""


def calling(shape: str, count: int, work: int = 8) -> Module:
    """So many functions that do some work and call others; the last one is `main`."""
    names = [*(f"f{k}" for k in range(count - 1)), "main"]
    parts = ['module "m"']
    for k, name in enumerate(names):
        adds = [f"%w{i + 1} = add %w{i}: i64, {k + i}: i64" for i in range(work)]
        callees = SHAPES[shape](k, count) if k or "recursion" in shape else ()
        calls = [
            f"%w{i + 1} = apply @{names[callee]}(%w{i}): (i64) -> i64"
            for i, callee in enumerate(callees, work)
        ]
        body = "\n".join([*adds, *calls, f"return %w{work + len(calls)}: i64"])
        parts.append(f"func @{name}: (i64) -> i64 {{\n'entry(%w0: i64):\n{body}\n}}")
    return parse_module("\n".join(parts))


@pytest.mark.parametrize("entries", [(), ("main",)], ids=["all", "entry"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_module_grows_by_what_was_counted_before(shape: str, entries: tuple[str, ...]) -> None:
    for count in (3, 600):
        module = calling(shape, count)
        before = length(module)
        apply_pass(Inline(entries=entries), module)
        assert length(module) <= before + max(LARGEST, GROWTH * before)
        assert max(len(f.entry.instructions) for f in module.functions.values()) <= LARGEST
        verify(module)


@pytest.mark.parametrize("entries", [(), ("main",)], ids=["all", "entry"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "recursion" not in shape])
def test_cut_short_it_means_the_same(
    shape: str, entries: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = calling(shape, 8, work=2)
    expected = [evaluate(whole, name, 3) for name in whole.functions]
    for largest in range(0, 120, 23):
        monkeypatch.setattr("nnkit.core.passes.inline.LARGEST", largest)
        module = clone_module(whole)
        apply_pass(Inline(entries=entries), module)
        verify(module)
        assert [evaluate(module, name, 3) for name in module.functions] == expected


def test_what_an_entry_still_calls_is_inlined_into_too() -> None:
    module = parse_module("""module "m"
    func @leaf: (i64) -> i64 {
    'entry(%x: i64):
        %y = add %x: i64, 1: i64
        return %y: i64
    }
    func @down: (i64) -> i64 {
    'entry(%n: i64):
        %c = lessThan %n: i64, 1: i64
        %r = if %c: bool -> i64 {
        'then():
            yield %n: i64
        } else {
        'else():
            %m = subtract %n: i64, 2: i64
            %d = apply @down(%m): (i64) -> i64
            %e = apply @leaf(%d): (i64) -> i64
            yield %e: i64
        }
        return %r: i64
    }
    func @main: (i64) -> i64 {
    'entry(%n: i64):
        %r = apply @down(%n): (i64) -> i64
        return %r: i64
    }""")
    before = evaluate(module, "main", 7)
    apply_pass(Inline(entries=("main",)), module)
    verify(module)
    assert [callees(module.functions[name]) for name in ("main", "down")] == [{"down": 1}] * 2
    assert evaluate(module, "main", 7) == before
