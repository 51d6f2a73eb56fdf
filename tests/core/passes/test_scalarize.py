"""Tuples, structs and arrays inside of functions become their leaves."""

from __future__ import annotations

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import Add, Aggregate, Exp, Extract
from nnkit.core.passes import Scalarize, apply_pass
from tests.core.passes.laws import (
    module_of,
    opcodes,
)
from tests.core.passes.nested_types import PAIR, X, swap


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
