"""Tuples, structs and arrays as their leaves."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import InternalError
from nnkit.core.ir import Builder
from nnkit.core.ops import Add, Extract
from nnkit.core.ops.aggregate import type_at
from nnkit.core.ops.leaves import (
    LARGE_ARRAY,
    assemble,
    leaves_of,
    put_together,
    take_apart,
    with_parts,
)
from nnkit.core.types import (
    F32,
    I32,
    VOID,
    ArrayType,
    FunctionType,
    PointerType,
    StructType,
    TupleType,
    Type,
    elements_of,
    scalar,
)

X = scalar(F32)
ROW = ArrayType(2, X)
PARAMS = StructType("Params", (("w", X), ("inner", TupleType((scalar(I32), VOID, ROW)))))
NESTED = TupleType((PARAMS, X, PARAMS))
TYPES = st.recursive(
    st.sampled_from(
        [X, scalar(I32), VOID, PointerType(NESTED), FunctionType((NESTED,), VOID), PARAMS]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: TupleType(tuple(parts)))
        | st.tuples(st.integers(0, 3), inner).map(lambda pair: ArrayType(*pair))
    ),
    max_leaves=12,
)


def test_leaves_are_counted_left_to_right() -> None:
    paths = [leaf.path for leaf in leaves_of(TupleType((PARAMS, X)))]
    assert paths == [(0, "w"), (0, "inner", 0), (0, "inner", 2, 0), (0, "inner", 2, 1), (1,)]
    large = ArrayType(LARGE_ARRAY + 1, X)
    whole = [leaf.type for leaf in leaves_of(TupleType((ROW, large)), large_arrays=False)]
    assert whole == [X, X, large]


def test_a_path_reads_as_the_keys_are_written() -> None:
    assert str(list(leaves_of(NESTED))[1]) == "0.#inner.0"


@given(TYPES, st.booleans())
def test_a_leaf_lies_where_its_path_leads(type: Type, large_arrays: bool) -> None:
    for leaf in leaves_of(type, large_arrays=large_arrays):
        assert type_at(type, leaf.path) == leaf.type
        assert elements_of(leaf.type) is None


@given(TYPES, st.booleans())
def test_what_was_taken_apart_is_put_together(type: Type, large_arrays: bool) -> None:
    b = Builder()
    given = b.argument(type)
    parts = take_apart(b, given, large_arrays=large_arrays)
    assert [part.type for part in parts] == [
        leaf.type for leaf in leaves_of(type, large_arrays=large_arrays)
    ]
    remaining = iter(parts)
    assert put_together(b, type, remaining, large_arrays=large_arrays).type == type
    assert next(remaining, None) is None


def test_what_is_no_aggregate_is_its_own_leaf() -> None:
    b = Builder()
    given = b.argument(X)
    assert take_apart(b, given) == [given]
    assert put_together(b, given.type, iter([given])) is given
    assert not b.block.instructions


def test_other_elements_of_an_aggregate() -> None:
    b = Builder()
    whole, w = b.argument(PARAMS), b.argument(X)
    made = with_parts(b, whole, {"w": b.emit(Add(), w, w)})
    assert made.type == PARAMS
    assert [i.op for i in b.block.instructions[1:-1]] == [Extract(("inner",))]


def test_types_nested_beyond_the_stack_of_python() -> None:
    type: Type = X
    for _ in range(5_000):
        type = TupleType((type,))
    assert len(list(leaves_of(type))) == 1
    assert assemble(type, iter([1]), lambda _, parts: sum(parts)) == 1


def test_an_array_of_billions_is_looked_at_as_far_as_asked() -> None:
    endless = ArrayType(1 << 40, TupleType((X, ROW)))
    assert [leaf.path for leaf in islice(leaves_of(endless), 4)] == [
        (0, 0), (0, 1, 0), (0, 1, 1), (1, 0),
    ]  # fmt: skip


def test_a_leaf_has_no_other_elements() -> None:
    b = Builder()
    with pytest.raises(InternalError, match="f32 has no elements"):
        with_parts(b, b.argument(X), {})
