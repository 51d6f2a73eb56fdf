"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Sequence

from nnkit.core.ir import Builder, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Add, Exp, Multiply, Negate
from nnkit.core.ops.nest import Access, Output, Yield, build_nest, coordinate
from nnkit.core.passes import DeadCode, apply_pass
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import call, define, module_of, opcodes

X = TensorType((3,), F32)


def test_unused_chains_go() -> None:
    def build(b: Builder, x: Value) -> Value:
        b.emit(Negate(), b.emit(Exp(), x))
        return b.emit(Add(), x, x)

    module = module_of([X], build)
    assert apply_pass(DeadCode(), module)
    assert opcodes(module.functions["main"]) == "add"
    assert not apply_pass(DeadCode(), module)


def test_what_is_returned_stays() -> None:
    module = module_of([X], lambda b, x: b.emit(Add(), b.emit(Exp(), x), x))
    assert not apply_pass(DeadCode(), module)


def test_unused_calls_go() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    callee = module.functions["main"]

    def build(b: Builder, x: Value) -> Value:
        call(b, callee, x)
        return x

    assert apply_pass(DeadCode(), module) is False
    caller = define(module, "caller", [X], build)
    assert apply_pass(DeadCode(), module)
    assert opcodes(caller) == ""


def test_inside_the_body_of_a_nest() -> None:
    def body(b: Builder, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
        b.emit(Exp(), *read)
        return [b.emit(Multiply(), *read, *read)]

    def build(b: Builder, x: Value) -> Value:
        point = (coordinate(0),)
        reads = [(x, Access(point))]
        return build_nest(b, (3,), reads, [Output(X, point)], body)[0]

    module = module_of([X], build)
    assert apply_pass(DeadCode(), module)
    region = module.functions["main"].body
    assert region is not None
    names = [instruction.op.name for instruction in walk(region)]
    assert names == ["nest", "return", "multiply", Yield.name]
