"""Staging-time types: how they read, and that a type of types costs no more than its parts."""

from __future__ import annotations

import time

from nnkit.core.types import BOOL, F32
from nnkit.staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, as_tuple, leaves
from tests.patience import PATIENCE

VECTOR, MASK = TensorSpec(1, F32), TensorSpec(0, BOOL)


class Named: ...


def test_types_read_as_the_user_writes_them() -> None:
    assert VECTOR.words == "Tensor1D[f32]" and MASK.words == "Tensor0D[boolean]"
    assert TupleSpec((VECTOR, MASK)).words == "tuple[Tensor1D[f32], Tensor0D[boolean]]"
    struct = StructSpec(Named, (("a", VECTOR), ("b", MASK)))
    assert struct.words == "Named" and struct.find("b") == MASK and struct.find("c") is None


def test_equal_types_are_one_key() -> None:
    nested = TupleSpec((TupleSpec((VECTOR,)), StructSpec(Named, (("a", MASK),))))
    again = TupleSpec((TupleSpec((VECTOR,)), StructSpec(Named, (("a", MASK),))))
    assert nested == again and hash(nested) == hash(again) and len({nested, again, VECTOR}) == 2
    assert leaves(nested) == [VECTOR, MASK]


def test_a_type_that_mentions_a_part_exponentially_often_is_hashed_at_once() -> None:
    start = time.perf_counter()
    spec: Spec = VECTOR
    for _ in range(100):
        spec = TupleSpec((spec, spec))
    assert {spec: 1}[spec] == 1
    assert time.perf_counter() - start < 1 * PATIENCE


def test_as_tuple() -> None:
    assert as_tuple(3) == (3,) and as_tuple([1, 2]) == (1, 2) and as_tuple((1,)) == (1,)
