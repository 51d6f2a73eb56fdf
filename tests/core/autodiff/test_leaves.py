"""Tuples and structs as their tensors."""

from __future__ import annotations

from nnkit.core.autodiff.leaves import join, leaf_count, leaves_of, mask_of, members, split
from nnkit.core.ir import Builder
from nnkit.core.types import F32, I32, VOID, StructType, TupleType, Type, scalar

PARAMS = StructType("Params", (("w", scalar(F32)), ("inner", TupleType((scalar(I32), VOID)))))
NESTED = TupleType((PARAMS, scalar(F32), PARAMS))


def test_leaves_are_counted_left_to_right() -> None:
    paths = [leaf.path for leaf in leaves_of(NESTED)]
    assert paths == [(0, "w"), (0, "inner", 0), (1,), (2, "w"), (2, "inner", 0)]
    assert leaf_count([NESTED, VOID, scalar(F32)]) == 6


def test_a_path_reads_as_the_keys_are_written() -> None:
    assert str(leaves_of(NESTED)[1]) == "0.#inner.0"


def test_joining_what_was_split_gives_the_type_back() -> None:
    b = Builder()
    given = b.argument(NESTED)
    assert join(b, NESTED, split(b, given)).type == NESTED


def test_a_tensor_is_its_own_leaf() -> None:
    b = Builder()
    given = b.argument(scalar(F32))
    assert split(b, given) == (given,)
    assert join(b, given.type, [given]) is given
    assert not b.block.instructions


def test_types_nested_beyond_the_stack_of_python() -> None:
    type: Type = scalar(F32)
    for _ in range(5_000):
        type = TupleType((type,))
    assert len(leaves_of(type)) == 1


def test_masks_are_sets_of_positions() -> None:
    assert list(members(mask_of([5, 0, 64, 5]))) == [0, 5, 64]
    assert mask_of([]) == 0
