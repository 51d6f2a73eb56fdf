"""Building blocks and functions, and what the graph refuses."""

from __future__ import annotations

import pytest

from nnkit.core.errors import InternalError, ShapeError
from nnkit.core.ir import Block, Builder, Instruction, Value, finish_function, start_function
from nnkit.core.location import Location
from nnkit.core.ops import Add, Aggregate, Negate, Return
from nnkit.core.types import F32, FunctionType, TensorType, TupleType

X = TensorType((2,), F32)


class Here:
    """A place."""

    def resolve(self) -> Location:
        return Location("model.py", 1)


def test_an_instruction_is_typed_by_its_op_and_appended() -> None:
    b = start_function([X, X], ["x", None])
    x, y = b.block.arguments
    b.location = here = Here()
    z = b.emit(Add(), x, y)
    assert z.type == X and z.index == 0 and z.op == Add()
    [instruction] = b.block.instructions
    assert z.producer is instruction and instruction.result is z
    assert instruction.operands == (x, y) and instruction.location is here
    assert (x.name, y.name, x.op) == ("x", None, None)


def test_wrong_operands_append_nothing() -> None:
    b = start_function([X, TensorType((3,), F32)])
    with pytest.raises(ShapeError):
        b.emit(Add(), *b.block.arguments)
    assert not b.block.instructions


def test_a_finished_function_has_its_type() -> None:
    b = start_function([X])
    b.emit_many(Return(), [b.emit(Negate(), b.block.arguments[0])])
    function = finish_function("f", b, X)
    assert function.type == FunctionType((X,), X)
    assert function.entry is b.block and function.parameters is b.block.arguments
    assert b.block.terminator.op == Return()


def test_values_are_themselves() -> None:
    one, other = Value(X, "x"), Value(X, "x")
    assert one != other and len({one, other}) == 2


def test_what_is_not_there_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="the block has no terminator"):
        assert Block().terminator
    with pytest.raises(InternalError, match="return has 0 results, not one"):
        assert Instruction(Return(), (), ()).result
    pair = Builder().emit(Aggregate(TupleType((X, X))), Value(X), Value(X))
    with pytest.raises(InternalError, match="a tensor was expected here"):
        assert pair.tensor
