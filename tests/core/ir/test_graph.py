"""The data structures themselves."""

from __future__ import annotations

from nnkit.core.ir import Module, Region, finish_function, start_function
from nnkit.core.ops import Add, Return
from nnkit.core.types import F32, TensorType


def test_what_is_printed_for_debugging_stays_short() -> None:
    """A value knows its producer, which knows its operands: following them would print the program."""
    b = start_function([TensorType((2,), F32)], ["x"])
    x = b.block.arguments[0]
    for _ in range(2000):
        x = b.emit(Add(), x, x)
    b.emit_many(Return(), [x])
    function = finish_function("f", b, x.type)
    module = Module("m")
    module.add(function)
    assert x.producer is not None
    assert repr(x) == "<%?: <2 x f32>>"
    assert repr(b.block.arguments[0]) == "<%x: <2 x f32>>"
    assert repr(x.producer) == "<add of 2 operands>"
    assert repr(b.block) == "<block 'entry of 2001 instructions>"
    assert repr(Region([b.block])) == "<region of 1 blocks>"
    assert repr(function) == "<func @f: (<2 x f32>) -> <2 x f32>>"
    assert repr(module) == "<module 'm' of 1 functions>"
