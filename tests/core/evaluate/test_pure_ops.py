"""Aggregates, rows of tensors and enums: what one instruction computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import InternalError
from nnkit.core.evaluate import EnumValue, evaluate_instruction, evaluate_region
from nnkit.core.ir import Block, Builder, Op, Region
from nnkit.core.ops import (
    Aggregate,
    EnumCase,
    Extract,
    Insert,
    IsCase,
    Load,
    Negate,
    Payload,
    Return,
)
from nnkit.core.types import (
    BF16,
    F32,
    ArrayType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from tests.core.ops.program_samples import TREE

S = scalar(F32)
ROWS = TensorType((2, 3), F32)
INNER = StructType("Inner", (("a", S), ("rows", ROWS)))
OUTER = TupleType((ArrayType(2, INNER), S))
ONE, TWO, THREE = (np.asarray(np.float32(number)) for number in (1, 2, 3))
VALUE = (((ONE, np.zeros((2, 3), "f")), (TWO, np.ones((2, 3), "f"))), THREE)


def result(op: Op, types: list[Type], *operands: Any) -> Any:
    b = Builder()
    b.emit(op, *[b.argument(type) for type in types])
    [found] = evaluate_instruction(b.block.instructions[0], operands)
    return found


def test_extract_goes_through_aggregates_and_rows() -> None:
    assert result(Extract((0, 1, "a")), [OUTER], VALUE) == 2
    row = result(Extract((0, 1, "rows", 1)), [OUTER], VALUE)
    np.testing.assert_array_equal(row, [1, 1, 1])
    element = result(Extract((0, 1, "rows", 1, 2)), [OUTER], VALUE)
    assert isinstance(element, np.ndarray) and element.shape == () and element == 1


def test_insert_changes_one_place_and_keeps_the_operand() -> None:
    row = np.array([7, 8, 9], np.float32)
    found = result(Insert((0, 1, "rows", 0)), [TensorType((3,), F32), OUTER], row, VALUE)
    np.testing.assert_array_equal(found[0][1][1], [[7, 8, 9], [1, 1, 1]])
    np.testing.assert_array_equal(VALUE[0][1][1], np.ones((2, 3)))
    assert found[0][0] is VALUE[0][0] and found[1] == 3
    tensor = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(
        result(Insert((1, 2)), [S, ROWS], np.float32(5), tensor), [[0, 0, 0], [0, 0, 5]]
    )
    assert not tensor.any()


@pytest.mark.parametrize("keys", [(0,), (1,), (0, 1), (0, 0, "a"), (0, 1, "rows", 1, 2)])
def test_what_was_inserted_is_extracted(keys: tuple[int | str, ...]) -> None:
    place = Extract(keys).infer(OUTER)
    given = result(Extract(keys), [OUTER], VALUE)
    again = result(Insert(keys), [place, OUTER], given, VALUE)
    assert str(again) == str(VALUE)


def test_arrays_are_tuples() -> None:
    assert result(Aggregate(ArrayType(2, S)), [S, S], np.float32(1), np.float32(2)) == (1, 2)


def test_enums() -> None:
    leaf = result(EnumCase(TREE, "leaf"), [S], np.float32(2))
    assert leaf == EnumValue("leaf", (2,))
    node = result(EnumCase(TREE, "node"), [TREE, TREE], leaf, EnumValue("none"))
    assert result(IsCase("node"), [TREE], node) and not result(IsCase("leaf"), [TREE], node)
    assert result(Payload("node", 0), [TREE], node) is leaf
    assert result(Payload("leaf", 0), [TREE], node) == 0
    assert str(node) == "?node(?leaf(2.0), ?none)"


def test_results_are_rounded() -> None:
    type = TupleType((scalar(BF16),))
    assert result(Extract((0,)), [type], (np.float32(1 + 2.0**-12),)) == 1


def test_a_region_gives_the_operands_of_its_terminator() -> None:
    b = Builder()
    x = b.argument(TensorType((2,), F32))
    b.emit_many(Return(), [b.emit(Negate(), x), x])
    negated, same = evaluate_region(Region([b.block]), [np.array([1, -2], np.float32)])
    np.testing.assert_array_equal(negated, -same)
    with pytest.raises(InternalError, match="a region without a terminator was evaluated"):
        evaluate_region(Region([Block()]), [])


def test_memory_is_only_touched_by_runs() -> None:
    with pytest.raises(InternalError, match="load has no reference semantics"):
        result(Load(), [PointerType(S)], None)
