"""Functions take and return the leaves of tuples, structs and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.autodiff.reverse import differentiate
from nnkit.core.errors import DifferentiationError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, GradientOf, Module, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Aggregate, Exp, Extract
from nnkit.core.ops.leaves import LARGE_ARRAY
from nnkit.core.passes import Flatten, Inline, apply_pass
from nnkit.core.passes.flatten import MOST_LEAVES, flat_type
from nnkit.core.text.declarations import print_declaration
from nnkit.core.types import (
    VOID,
    FunctionType,
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
from tests.core.passes.nested_types import DEEP, PAIR, POINT, N, X, swap
from tests.programs import flat, same_bits


def test_flat_signatures() -> None:
    flat = TupleType((X, N, X, X, N))
    assert flat_type(FunctionType((DEEP, N), DEEP)) == FunctionType((*flat.elements, N), flat)
    assert flat_type(FunctionType((), TupleType((X,)))) == FunctionType((), X)
    assert flat_type(FunctionType((), VOID)) == FunctionType((), VOID)


def test_flatten_parameters_and_result() -> None:
    module = module_of([DEEP, X], lambda b, deep, x: b.emit(Extract((0,)), deep))
    argument = special(DEEP)
    expected = evaluate(module, "main", argument, special(X))
    assert apply_pass(Flatten(), module)
    main = module.functions["main"]
    assert not opcodes(main)
    assert main.type == FunctionType((X, N, X, X, N, X), TupleType((X, N)))
    assert main.type.parameters == tuple(p.type for p in main.parameters)
    (px, pn), _, (y, (qx, qn)) = argument
    assert same_bits(evaluate(module, "main", px, pn, y, qx, qn, special(X)), expected)
    assert not apply_pass(Flatten(), module)


def test_a_tuple_of_one_becomes_one_result() -> None:
    one = TupleType((X,))
    module = module_of([X], lambda b, x: b.emit(Aggregate(one), b.emit(Exp(), x)))
    (expected,) = evaluate(module, "main", special(X))
    assert apply_pass(Flatten(), module)
    assert same_bits(evaluate(module, "main", special(X)), expected)
    assert not apply_pass(Flatten(), module)


def test_no_result_stays_none() -> None:
    module = Module()
    define(module, "main", [X], lambda b, x: None)
    assert not apply_pass(Flatten(), module)
    assert evaluate(module, "main", special(X)) == ()


def test_leaves_are_named_after_their_parameter() -> None:
    module = module_of([POINT], lambda b, p: p)
    module.functions["main"].parameters[0].name = "p"
    apply_pass(Flatten(), module)
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
    apply_pass(Flatten(), module)
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
    assert apply_pass(Flatten(), module)
    verify(module)
    body = module.functions["f"].body
    assert body is not None
    kinds = {type(x.type) for i in walk(body) for x in (*i.operands, *i.results)}
    assert kinds == {TensorType}
    assert [evaluate(module, "f", 1.0, 7, n) for n in range(6)] == expected
    assert not apply_pass(Flatten(), module)


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
    assert apply_pass(Flatten(), module)
    verify(module)
    assert "extract" not in every_opcode(module, "f")
    for c, z in ((True, 1.0), (False, 2.0)):
        assert evaluate(module, "f", c, 1.0, 2.0) == z
    assert not apply_pass(Flatten(), module)


def test_functions_that_are_values_call_the_flat_one() -> None:
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
    assert apply_pass(Flatten(), module)
    verify(module)
    assert module.functions["swap_value"].type == type
    assert module.functions["swap"].type == flat_type(type)
    assert every_opcode(module, "swap_value") == ["extract", "extract", "apply", "return"]
    assert evaluate(module, "main", True, 1.0, 2.0) == (2.0, 1.0)
    assert not apply_pass(Flatten(), module)


def test_a_function_that_swaps_what_it_passes_on_is_no_other_form_of_its_callee() -> None:
    """As a value it keeps its type; called by name it still swaps."""
    module = parsed("""
    func @difference: (f32, f32) -> f32 {
    'entry(%x: f32, %y: f32):
        %z = subtract %x: f32, %y: f32
        return %z: f32
    }
    func @swapped: ((f32, f32)) -> f32 {
    'entry(%p: (f32, f32)):
        %x = extract 0 from %p: (f32, f32)
        %y = extract 1 from %p: (f32, f32)
        %z = apply @difference(%y, %x): (f32, f32) -> f32
        return %z: f32
    }
    func @both: (f32, f32) -> (f32, f32) {
    'entry(%x: f32, %y: f32):
        %z = subtract %x: f32, %y: f32
        return %z: f32, %x: f32
    }
    func @turned: ((f32, f32)) -> (f32, f32) {
    'entry(%p: (f32, f32)):
        %x = extract 0 from %p: (f32, f32)
        %y = extract 1 from %p: (f32, f32)
        %z, %w = apply @both(%x, %y): (f32, f32) -> (f32, f32)
        return %w: f32, %z: f32
    }
    func @first: () -> ((f32, f32)) -> f32 {
    'entry():
        %f = literal @swapped: ((f32, f32)) -> f32
        return %f: ((f32, f32)) -> f32
    }
    func @second: () -> ((f32, f32)) -> (f32, f32) {
    'entry():
        %f = literal @turned: ((f32, f32)) -> (f32, f32)
        return %f: ((f32, f32)) -> (f32, f32)
    }
    func @main: (f32, f32) -> (f32, f32, f32) {
    'entry(%x: f32, %y: f32):
        %p = literal (%x: f32, %y: f32): (f32, f32)
        %z = apply @swapped(%p): ((f32, f32)) -> f32
        %v, %w = apply @turned(%p): ((f32, f32)) -> (f32, f32)
        return %z: f32, %v: f32, %w: f32
    }
    """)
    assert evaluate(module, "main", 5.0, 2.0) == (-3.0, 5.0, 3.0)
    assert apply_pass(Flatten(), module)
    verify(module)
    assert evaluate(module, "main", 5.0, 2.0) == (-3.0, 5.0, 3.0)
    assert not apply_pass(Flatten(), module)


def test_a_callee_becomes_known_where_it_lay_in_a_struct() -> None:
    module = parsed(
        """
    struct $Layer { #f: ((f32, f32)) -> f32, #w: f32 }
    func @product: ((f32, f32)) -> f32 {
    'entry(%p: (f32, f32)):
        %x, %y = %p
        %z = multiply %x: f32, %y: f32
        return %z: f32
    }
    func @layer: ($Layer, f32) -> f32 {
    'entry(%l: $Layer, %x: f32):
        %f = extract #f from %l: $Layer
        %w = extract #w from %l: $Layer
        %p = literal (%x: f32, %w: f32): (f32, f32)
        %y = apply %f(%p): ((f32, f32)) -> f32
        return %y: f32
    }
    func @main: (f32, i64) -> f32 {
    'entry(%x: f32, %n: i64):
        %f = literal @product: ((f32, f32)) -> f32
        %s = literal {#f = %f: ((f32, f32)) -> f32, #w = %x: f32}: $Layer
        %g = extract #f from %s: $Layer
        %p = literal (%x: f32, 3: f32): (f32, f32)
        %y = apply %g(%p): ((f32, f32)) -> f32
        %z = apply @layer(%s, %y): ($Layer, f32) -> f32
        return %z: f32
    }
    [gradient @main wrt 0]
    func @slope: (f32, i64) -> f32
    """.replace(
            "%x, %y = %p",
            """%x = extract 0 from %p: (f32, f32)
        %y = extract 1 from %p: (f32, f32)""",
        )
    )
    assert apply_pass(Flatten(), module)
    verify(module)
    assert "applyValue" not in every_opcode(module, "main")
    assert "applyValue" in every_opcode(module, "layer")
    assert evaluate(module, "main", 2.0, 0) == 12.0
    assert not apply_pass(Flatten(), module)


def test_arrays_are_taken_apart_but_for_very_large_ones() -> None:
    large = LARGE_ARRAY + 1
    module = parsed(f"""
    func @f: ([2 x (f32, [2 x f32])], [{large} x f32]) -> [2 x f32] {{
    'entry(%a: [2 x (f32, [2 x f32])], %l: [{large} x f32]):
        %x = extract 1, 1 from %a: [2 x (f32, [2 x f32])]
        return %x: [2 x f32]
    }}
    """)
    type = module.functions["f"].type
    given = ((1.0, (2.0, 3.0)), (4.0, (5.0, 6.0)))
    assert apply_pass(Flatten(), module)
    function = module.functions["f"]
    assert len(function.parameters) == 7
    assert not opcodes(function)
    assert evaluate(module, "f", given, (0.0,) * large, type=type) == (5.0, 6.0)
    assert not apply_pass(Flatten(), module)


MIXED = """
    struct $P { #x: f64, #n: i64, #y: <2 x f64> }
    func @f: ($P, f64) -> (f64, ($P, f64)) {
    'entry(%p: $P, %z: f64):
        %x = extract #x from %p: $P
        %n = extract #n from %p: $P
        %y = extract #y from %p: $P
        %a = multiply %x: f64, %z: f64
        %b = multiply %a: f64, %x: f64
        %c = multiply %y: <2 x f64>, %x: f64
        %q = literal {#x = %b: f64, #n = %n: i64, #y = %c: <2 x f64>}: $P
        %r = literal (%q: $P, %a: f64): ($P, f64)
        return %a: f64, %r: ($P, f64)
    }
"""


P = (2.0, 7, np.array([3.0, 5.0]))
DP = (0.5, 9, np.array([1.0, 2.0]))
"""A point, and a direction or seed, whose integer is nothing to derivatives."""


@pytest.mark.parametrize(
    ("declaration", "type", "by_leaves", "given", "expected"),
    [
        (
            "gradient @f from 0 wrt 1 keeping 1, 0", "($P, f64) -> (f64, ($P, f64), f64)",
            "gradient @f from 0 wrt 3 keeping 1, 2, 3, 4, 0", (),
            (2.0, ((44.0, 7, [6.0, 10.0]), 22.0), 22.0),
        ),
        (
            "gradient @f from 1 wrt 0", "($P, f64) -> $P",
            "gradient @f from 1, 3, 4 wrt 0, 2", (), (63.0, 0, [2.0, 2.0]),
        ),
        (
            "gradient @f from 1 wrt 1, 0 seedable", "($P, f64, ($P, f64)) -> (f64, $P)",
            "gradient @f from 1, 3, 4 wrt 3, 0, 2 seedable", ((DP, 0.25),),
            (2.5, (37.75, 0, [2.0, 4.0])),
        ),
        (
            "tangent @f from 0 wrt 1, 0", "($P, f64, f64, $P) -> f64",
            "tangent @f from 0 wrt 3, 0, 2", (0.25, DP), 6.0,
        ),
        (
            "tangent @f wrt 0 keeping 0", "($P, f64, $P) -> (f64, ($P, f64), f64)",
            "tangent @f from 0, 1, 3, 4 wrt 0, 2 keeping 0", (DP,),
            (5.5, ((22.0, 0, [3.5, 6.5]), 5.5), 22.0),
        ),
    ],
)  # fmt: skip
def test_declarations_are_by_leaves_with_floats(
    declaration: str, type: str, by_leaves: str, given: Any, expected: Any
) -> None:
    """What is no float gets zeros from a function that calls the derivative."""
    module = parsed(f"{MIXED}\n[{declaration}]\nfunc @d: {type}")
    declared = module.functions["d"].type
    assert apply_pass(Flatten(), module)
    verify(module)
    found = [f.declaration for f in module.functions.values() if f.declaration is not None]
    assert [print_declaration(each) for each in found] == [by_leaves]
    assert not apply_pass(Flatten(), module)
    differentiate(module)
    verify(module)
    result = evaluate(module, "d", P, 11.0, *given, type=declared)
    assert same_bits(flat(result), tuple(map(np.asarray, flat(expected))))


def test_gradients_of_gradients_and_of_functions_that_are_values() -> None:
    """x² y: the gradient of `@f` by its pair being a pair."""
    module = parsed("""
    func @f: ((f64, f64)) -> f64 {
    'entry(%p: (f64, f64)):
        %x = extract 0 from %p: (f64, f64)
        %y = extract 1 from %p: (f64, f64)
        %s = multiply %x: f64, %x: f64
        %z = multiply %s: f64, %y: f64
        return %z: f64
    }
    [gradient @f]
    func @df: ((f64, f64)) -> (f64, f64)
    [gradient @df from 0]
    func @ddf: ((f64, f64)) -> ((f64, f64))
    func @chosen: (bool) -> ((f64, f64)) -> (f64, f64) {
    'entry(%c: bool):
        %f = literal @df: ((f64, f64)) -> (f64, f64)
        %g = literal null: ((f64, f64)) -> (f64, f64)
        %h = if %c: bool -> ((f64, f64)) -> (f64, f64) {
        'then():
            yield %f: ((f64, f64)) -> (f64, f64)
        } else {
        'else():
            yield %g: ((f64, f64)) -> (f64, f64)
        }
        return %h: ((f64, f64)) -> (f64, f64)
    }
    func @main: (f64) -> f64 {
    'entry(%x: f64):
        %f = apply @chosen(true: bool): (bool) -> ((f64, f64)) -> (f64, f64)
        %p = literal (%x: f64, 5: f64): (f64, f64)
        %a = apply %f(%p): ((f64, f64)) -> (f64, f64)
        %r = extract 0 from %a: (f64, f64)
        return %r: f64
    }
    """)
    assert apply_pass(Flatten(), module)
    verify(module)
    differentiate(module)
    verify(module)
    assert evaluate(module, "df", 3.0, 5.0) == (30.0, 9.0)
    assert evaluate(module, "ddf", 3.0, 5.0) == (10.0, 6.0)
    assert evaluate(module, "main", 3.0) == 30.0


def test_a_derivative_that_would_hold_a_pointer_is_refused() -> None:
    module = parsed("""
    func @f: ((f64, *f64)) -> (f64, *f64) {
    'entry(%p: (f64, *f64)):
        return %p: (f64, *f64)
    }
    """)
    module.add(Function("d", FunctionType((), X), declaration=GradientOf("f", (0,))))
    with pytest.raises(
        DifferentiationError, match=r"parameter 0 of @f holds a \*f64, which has no gradient"
    ):
        apply_pass(Flatten(), module)


@pytest.mark.parametrize("nested", [False, True])
def test_a_function_of_very_many_values_is_refused_where_it_stands(nested: bool) -> None:
    def text(count: int) -> str:
        parts = [f"({', '.join(['f32'] * 64)})"] * (count // 64) if nested else ["f32"] * count
        type = f"({', '.join(parts)})"
        return f"func @f: ({type}) -> f32 {{\n'entry(%x: {type}): return 1: f32 }}"

    module = parsed(text(MOST_LEAVES - 64))
    assert apply_pass(Flatten(), module)
    assert len(module.functions["f"].parameters) == MOST_LEAVES - 64
    wide = parsed(text(MOST_LEAVES))
    with pytest.raises(
        UnsupportedError, match=f"@f takes and returns more than {MOST_LEAVES:,}"
    ) as caught:
        apply_pass(Flatten(), wide)
    assert "func @f" in "\n".join(caught.value.__notes__)
    assert evaluate(wide, "f", _nest(wide.functions["f"].type.parameters[0])) == 1.0


def _nest(type: Type) -> object:
    """Ones in the form of `type`."""
    elements = elements_of(type)
    return 1.0 if elements is None else tuple(map(_nest, elements))
