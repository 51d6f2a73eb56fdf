"""Trees of arguments and results."""

import pytest

from nnkit.jit.entry import Leaf, Record, Several, Signature

from .programs import Layer, Tensor, Tensor2D

A, B, C = Leaf("f32", (2,)), Leaf("i64", ()), Leaf("bf16", (0, 3))


def test_leaves_go_from_left_to_right() -> None:
    tree = Several((A, Record(Layer, (B, Several((C, A)))), Several(()), B))
    signature = Signature((B, tree), tree)
    assert signature.inputs == (B, A, B, C, A, B)
    assert signature.outputs == (A, B, C, A, B)


def test_sizes() -> None:
    assert [leaf.bytes for leaf in (A, B, C)] == [8, 8, 0]
    assert C.storage.name == "uint16"


def test_signatures_are_values() -> None:
    assert Signature((A,), B) == Signature((Leaf("f32", (2,)),), B)
    assert len({Signature((A,), B), Signature((A,), B), Signature((A,), C)}) == 2


def test_unknown_dtypes_and_impossible_shapes() -> None:
    with pytest.raises(ValueError, match="unknown dtype 'complex64'"):
        Leaf("complex64", ())
    for shape in ((-1,), (1,) * 65):
        with pytest.raises(ValueError, match="no array has the shape"):
            Leaf("f32", shape)


def test_classes_without_the_slots() -> None:
    with pytest.raises(TypeError, match="int has no slot '_array'"):
        Signature((Leaf("f32", (), int),), A)
    with pytest.raises(TypeError, match="Tensor2D has no slot '_fields'"):
        Signature((A,), Record(Tensor2D, (A,)))


def test_slots_may_have_other_names() -> None:
    with pytest.raises(TypeError, match="Tensor has no slot '_data'"):
        Signature((Leaf("f32", (), Tensor),), A, array_slot="_data")
