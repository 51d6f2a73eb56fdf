"""Tuples and structs become their tensors."""

from __future__ import annotations

import pytest

from nnkit.core.errors import UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ir.surgery import clone_module, walk
from nnkit.core.ops import Add, Aggregate, Exp, Extract
from nnkit.core.passes import Inline, Scalarize, apply_pass
from nnkit.core.passes.scalarize import MOST_LEAVES, flat_type
from nnkit.core.types import (
    F32,
    I32,
    VOID,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
)
from nnkit.core.verify import verify
from tests.core.passes.laws import (
    call,
    define,
    every_opcode,
    module_of,
    opcodes,
    parsed,
    special,
)
from tests.programs import same_bits

X = TensorType((11,), F32)
N = TensorType((9,), I32)
PAIR = TupleType((X, X))
POINT = StructType("Point", (("x", X), ("n", N)))
DEEP = TupleType((POINT, VOID, TupleType((X, POINT))))


def swap(b: Builder, pair: Value) -> Value:
    """(x, y) to (y, x)."""
    x, y = (b.emit(Extract((index,)), pair) for index in (0, 1))
    return b.emit(Aggregate(PAIR), y, x)


def test_inside_a_function() -> None:
    def build(b: Builder, x: Value) -> Value:
        pair = swap(b, swap(b, b.emit(Aggregate(PAIR), x, b.emit(Exp(), x))))
        return b.emit(Add(), b.emit(Extract((0,)), pair), b.emit(Extract((1,)), pair))

    module = module_of([X], build)
    assert apply_pass(Scalarize(), module)
    assert opcodes(module.functions["main"]) == "exp add"
    assert not apply_pass(Scalarize(), module)


def test_the_signature_stays() -> None:
    module = module_of([PAIR], swap)
    type = module.functions["main"].type
    apply_pass(Scalarize(), module)
    assert module.functions["main"].type == type
    assert opcodes(module.functions["main"]) == "extract extract"


def test_flat_signatures() -> None:
    flat = TupleType((X, N, X, X, N))
    assert flat_type(FunctionType((DEEP, N), DEEP)) == FunctionType((*flat.elements, N), flat)
    assert flat_type(FunctionType((), TupleType((X,)))) == FunctionType((), X)
    assert flat_type(FunctionType((), VOID)) == FunctionType((), VOID)


def test_flatten_parameters_and_result() -> None:
    module = module_of([DEEP, X], lambda b, deep, x: b.emit(Extract((0,)), deep))
    argument = special(DEEP)
    expected = evaluate(module, "main", argument, special(X))
    assert apply_pass(Scalarize(flatten=True), module)
    main = module.functions["main"]
    assert not opcodes(main)
    assert main.type == FunctionType((X, N, X, X, N, X), TupleType((X, N)))
    assert main.type.parameters == tuple(p.type for p in main.parameters)
    (px, pn), _, (y, (qx, qn)) = argument
    assert same_bits(evaluate(module, "main", px, pn, y, qx, qn, special(X)), expected)
    assert not apply_pass(Scalarize(flatten=True), module)


def test_a_tuple_of_one_becomes_one_result() -> None:
    one = TupleType((X,))
    module = module_of([X], lambda b, x: b.emit(Aggregate(one), b.emit(Exp(), x)))
    (expected,) = evaluate(module, "main", special(X))
    assert apply_pass(Scalarize(flatten=True), module)
    assert same_bits(evaluate(module, "main", special(X)), expected)
    assert not apply_pass(Scalarize(flatten=True), module)


def test_no_result_stays_none() -> None:
    module = Module()
    define(module, "main", [X], lambda b, x: None)
    assert not apply_pass(Scalarize(flatten=True), module)
    assert evaluate(module, "main", special(X)) == ()


def test_leaves_are_named_after_their_parameter() -> None:
    module = module_of([POINT], lambda b, p: p)
    module.functions["main"].parameters[0].name = "p"
    apply_pass(Scalarize(flatten=True), module)
    assert [p.name for p in module.functions["main"].parameters] == ["p_x", "p_n"]


def test_calls_follow() -> None:
    module = Module()
    callee = define(module, "swap", [PAIR], swap)
    point = define(module, "exp", [X], lambda b, x: b.emit(Exp(), x))

    def build(b: Builder, pair: Value) -> Value:
        swapped = call(b, callee, call(b, callee, pair))
        return call(b, point, b.emit(Extract((0,)), swapped))

    define(module, "main", [PAIR], build)
    x, y = special(X, 1), special(X, 2)
    expected = evaluate(module, "main", (x, y))
    apply_pass(Scalarize(flatten=True), module)
    assert same_bits(evaluate(module, "main", x, y), expected)
    assert opcodes(module.functions["main"]) == "apply apply apply"
    apply_pass(Inline(), module)
    assert opcodes(module.functions["main"]) == "exp"


LOOP = """
func @f: ((f32, i64), i64) -> (f32, i64) {
'entry(%p: (f32, i64), %n: i64):
    %z = literal 0: i64
    %q, %last = for %z: i64 upto %n: i64 carrying %p: (f32, i64), %z: i64 {
    'body(%i: i64, %v: (f32, i64), %k: i64):
        %a = extract 0 from %v: (f32, i64)
        %c = greaterThan %a: f32, 4: f32
        %w = if %c: bool -> (f32, i64) {
        'then():
            yield %v: (f32, i64)
        } else {
        'else():
            %s = add %a: f32, %a: f32
            %t = literal (%s: f32, %i: i64): (f32, i64)
            yield %t: (f32, i64)
        }
        yield %w: (f32, i64), %i: i64
    }
    return %q: (f32, i64)
}
"""


def test_through_structured_ops() -> None:
    module = parsed(LOOP)
    expected = [evaluate(module, "f", (1.0, 7), n) for n in range(6)]
    assert apply_pass(Scalarize(flatten=True), module)
    verify(module)
    body = module.functions["f"].body
    assert body is not None
    kinds = {type(x.type) for i in walk(body) for x in (*i.operands, *i.results)}
    assert kinds == {TensorType}
    assert [evaluate(module, "f", 1.0, 7, n) for n in range(6)] == expected
    assert not apply_pass(Scalarize(flatten=True), module)


def test_through_blocks() -> None:
    module = parsed("""
    func @f: (bool, (f32, f32)) -> f32 {
    'entry(%c: bool, %p: (f32, f32)):
        conditional %c: bool then 'join(%p: (f32, f32)) else 'swap
    'swap():
        %x = extract 0 from %p: (f32, f32)
        %y = extract 1 from %p: (f32, f32)
        %q = literal (%y: f32, %x: f32): (f32, f32)
        branch 'join(%q: (f32, f32))
    'join(%r: (f32, f32)):
        %z = extract 0 from %r: (f32, f32)
        return %z: f32
    }
    """)
    assert apply_pass(Scalarize(flatten=True), module)
    verify(module)
    assert "extract" not in every_opcode(module, "f")
    for c, z in ((True, 1.0), (False, 2.0)):
        assert evaluate(module, "f", c, 1.0, 2.0) == z
    assert not apply_pass(Scalarize(flatten=True), module)


def test_functions_that_are_values_keep_their_signature() -> None:
    module = parsed("""
    func @swap: ((f32, f32)) -> (f32, f32) {
    'entry(%p: (f32, f32)):
        %x = extract 0 from %p: (f32, f32)
        %y = extract 1 from %p: (f32, f32)
        %q = literal (%y: f32, %x: f32): (f32, f32)
        return %q: (f32, f32)
    }
    func @main: (bool, (f32, f32)) -> (f32, f32) {
    'entry(%c: bool, %p: (f32, f32)):
        %f = if %c: bool -> ((f32, f32)) -> (f32, f32) {
        'then():
            %s = literal @swap: ((f32, f32)) -> (f32, f32)
            yield %s: ((f32, f32)) -> (f32, f32)
        } else {
        'else():
            %s = literal null: ((f32, f32)) -> (f32, f32)
            yield %s: ((f32, f32)) -> (f32, f32)
        }
        %q = apply %f(%p): ((f32, f32)) -> (f32, f32)
        return %q: (f32, f32)
    }
    """)
    type = module.functions["swap"].type
    for entries, kept in ((("main",), "swap"), (("main", "swap"), "swap_value")):
        copy = clone_module(module)
        assert apply_pass(Scalarize(flatten=True, entries=entries), copy)
        verify(copy)
        assert copy.functions[kept].type == type
        assert evaluate(copy, "main", True, 1.0, 2.0) == (2.0, 1.0)
        assert not apply_pass(Scalarize(flatten=True, entries=entries), copy)


@pytest.mark.parametrize("nested", [False, True])
def test_a_function_of_very_many_values_is_refused_where_it_stands(nested: bool) -> None:
    def text(count: int) -> str:
        parts = [f"({', '.join(['f32'] * 64)})"] * (count // 64) if nested else ["f32"] * count
        type = f"({', '.join(parts)})"
        return f"func @f: ({type}) -> f32 {{\n'entry(%x: {type}): return 1: f32 }}"

    module = parsed(text(MOST_LEAVES - 64))
    assert apply_pass(Scalarize(flatten=True, entries=("f",)), module)
    assert len(module.functions["f"].parameters) == MOST_LEAVES - 64
    wide = parsed(text(MOST_LEAVES))
    with pytest.raises(
        UnsupportedError, match=f"@f takes and returns more than {MOST_LEAVES:,}"
    ) as caught:
        apply_pass(Scalarize(flatten=True, entries=("f",)), wide)
    assert "func @f" in "\n".join(caught.value.__notes__)
    assert evaluate(wide, "f", _nest(wide.functions["f"].type.parameters[0])) == 1.0


def _nest(type: Type) -> object:
    """Ones in the form of `type`."""
    elements = elements_of(type)
    return 1.0 if elements is None else tuple(map(_nest, elements))
