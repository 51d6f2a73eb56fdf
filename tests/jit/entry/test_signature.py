"""Trees of arguments and results."""

import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode

from .programs import Layer, Tensor, Tensor2D

A, B, C = ArrayNode("f32", (2,)), ArrayNode("i64", ()), ArrayNode("bf16", (0, 3))


def test_leaves_go_from_left_to_right() -> None:
    tree = TupleNode((A, RecordNode(Layer, (B, TupleNode((C, A)))), TupleNode(()), B))
    signature = Signature((B, tree), tree)
    assert signature.inputs == (B, A, B, C, A, B)
    assert signature.outputs == (A, B, C, A, B)


def test_sizes() -> None:
    assert [leaf.bytes for leaf in (A, B, C)] == [8, 8, 0]
    assert C.storage.name == "uint16"


def test_signatures_are_values() -> None:
    assert Signature((A,), B) == Signature((ArrayNode("f32", (2,)),), B)
    assert len({Signature((A,), B), Signature((A,), B), Signature((A,), C)}) == 2


def test_unknown_dtypes_and_impossible_shapes() -> None:
    with pytest.raises(ValueError, match="unknown dtype 'complex64'"):
        ArrayNode("complex64", ())
    for shape in ((-1,), (1,) * 65):
        with pytest.raises(ValueError, match="no array has the shape"):
            ArrayNode("f32", shape)


def test_classes_without_the_slots() -> None:
    with pytest.raises(TypeError, match="int has no slot '_array'"):
        Signature((ArrayNode("f32", (), int),), A)
    with pytest.raises(TypeError, match="Tensor2D has no slot '_fields'"):
        Signature((A,), RecordNode(Tensor2D, (A,)))


def test_slots_may_have_other_names() -> None:
    with pytest.raises(TypeError, match="Tensor has no slot '_data'"):
        Signature((ArrayNode("f32", (), Tensor),), A, array_slot="_data")
