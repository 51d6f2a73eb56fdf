"""Structs: declaration, construction with checks, lenses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, Generic, TypeVar, get_args

import numpy as np
import pytest

from nnkit import (
    Binding,
    Dim,
    DTypeError,
    Field,
    Lens,
    RankError,
    Scalar,
    ShapeError,
    StagingError,
    Struct,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    f32,
    f64,
    fields,
    i32,
    structs,
)

W = np.ones((2, 3), np.float32)
B = np.zeros(3, np.float32)


class In(Dim): ...


class Out(Dim): ...


class Params(Struct):
    """A dense layer."""

    names: ClassVar[str] = "not a field"
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]


class Scaled(Params):
    scale: Field[Scalar[f32]]


class Network(Struct):
    first: Field[Params]
    second: Field[Params]


class Counter(Struct):
    steps: Field[Scalar[i32]]


class Both(Counter, Scaled): ...


D = TypeVar("D")


class Layer(Struct, Generic[D]):
    w: Field[Tensor1D[f32, D]]


class Holder(Struct):
    layer: Field[Layer[In]]


def names(cls: type[Struct]) -> list[str]:
    return [lens.name for lens in fields(cls)]


def test_positional_and_named_values() -> None:
    p = Params(W, b=B)
    assert isinstance(p.w, Tensor2D) and not np.shares_memory(p.w.numpy(), W)
    assert p._fields == (p.w, p.b)
    assert Params(p.w, p.b) == p


def test_the_class_gives_lenses() -> None:
    lens = Params.w
    assert (lens.owner, lens.name, lens.index) == (Params, "w", 0)
    assert get_args(lens.type) == (f32, In, Out)
    assert fields(Params) == (Params.w, Params.b)
    assert repr(lens) == "Params.w"
    binding = lens << "value"
    assert isinstance(binding, Binding)
    assert binding.lens is lens and binding.value == "value"


def test_inherited_fields_come_first() -> None:
    assert names(Scaled) == ["w", "b", "scale"]
    assert Scaled.w == Lens(Scaled, "w", 0, Params.w.type)
    assert float(Scaled(W, B, 2.0).scale) == 2.0
    assert names(Both) == ["w", "b", "scale", "steps"]
    both = Both(W, B, 2.0, 7)
    assert int(both.steps) == 7 and Both.steps.index == 3 and Counter.steps.index == 0


def test_structs_nest() -> None:
    p = Params(W, B)
    network = Network(p, Params(W, B))
    assert network.first is p and Network.second.type is Params
    with pytest.raises(DTypeError, match=r"Network\.second must be a Params, got a Tensor2D"):
        Network(p, p.w)
    with pytest.raises(DTypeError, match=r"Network\.first must be a Params, got a Scaled"):
        Network(Scaled(W, B, 1.0), p)
    assert Holder.layer.type == Layer[In]
    assert Holder(Layer[In]([1.0])).layer.w.shape == (1,)


def test_classes_inside_functions() -> None:
    class Hidden(Dim): ...

    class Local(Struct):
        v: Field[Tensor1D[f64, Hidden]]
        inner: Field[Params]

    assert get_args(Local.v.type) == (f64, Hidden)
    assert Local([1.0], Params(W, B)).v.dtype is f64


@pytest.mark.parametrize(
    ("w", "error", "message"),
    [
        (B, RankError, r"Params\.w: cannot make a Tensor2D of an array of shape \[3\]"),
        (W.astype(np.float64), DTypeError, r"Params\.w: .* of float64"),
        (Tensor1D(B), RankError, r"Params\.w must be a Tensor2D\[f32\], got a Tensor1D\[f32\]"),
        (Tensor2D([[1]], i32), DTypeError, r"got a Tensor2D\[i32\] of shape \[1, 1\]"),
        ([[1.0], [1.0, 2.0]], ShapeError, r"Params\.w: .* ragged"),
        ("text", DTypeError, r"Params\.w must be a Tensor2D\[f32\], got a str"),
        (object(), DTypeError, r"build\(Params, Params\.w << \.\.\.\)"),
    ],
)
def test_values_are_checked(w: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Params(w, B)


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((W,), {}, "Params got no value for field b"),
        ((W, B, B), {}, "Params has 2 fields, got 3 values"),
        ((W, B), {"w": W}, "two values for field 'w'"),
        ((W, B), {"c": W}, "no field 'c': it has w, b"),
    ],
)
def test_calls_are_checked(values: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Params(*values, **named)


def test_structs_are_immutable() -> None:
    p: Any = Params(W, B)
    for name in ("w", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(p, name, W)
        with pytest.raises(FrozenInstanceError):
            delattr(p, name)


def test_replace() -> None:
    p = Params(W, B)
    q = p.replace(b=np.ones(3, np.float32))
    assert q.w is p.w and q.b is not p.b and type(q) is Params
    with pytest.raises(RankError, match=r"Params\.b"):
        p.replace(b=W)


def test_equality_printing_copies() -> None:
    p = Params(W, B)
    assert p == Params(W, B) and p == p.replace() and hash(p) == hash(p.replace())
    assert p != Scaled(W, B, 1.0) and p != 1 and p != Params(W + 1, B) and p != Params(W[:1], B)
    assert Params(W, 0.0 * B) == Params(W, -0.0 * B)
    assert hash(Params(W, 0.0 * B)) == hash(Params(W, -0.0 * B))
    assert Params(W, np.nan * B) != Params(W, np.nan * B)
    assert repr(Counter(3)) == "Counter(steps=Tensor0D(3, i32))"
    assert repr(Params(np.ones((20, 30), np.float32), B)) == (
        "Params(w=f32[20, 30], b=Tensor1D([0., 0., 0.], f32))"
    )
    assert copy.copy(p) == p
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(p)).w, W)
    assert structs.assemble(Params, (p.w, p.b)) == p


def declare(annotation: object, **namespace: object) -> None:
    type("Bad", (Struct,), {"__annotations__": {"x": annotation}, **namespace})


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Tensor2D[f32], r"Bad\.x is not declared as a field"),
        (int, "not declared as a field"),
        (Field, "not declared as a field"),
        (Field[Tensor2D], "must hold a tensor with rank and element type"),
        (Field[int], "must hold a tensor"),
        (Field[Tensor2D[Any]], "must hold a tensor"),
        ("Field[Missing]", r"Bad\.x: the annotation Field\[Missing\] names Missing"),
    ],
)
def test_what_is_no_field(annotation: object, message: str) -> None:
    with pytest.raises(StagingError, match=message):
        declare(annotation)


def test_fields_have_neither_defaults_nor_names_of_methods() -> None:
    with pytest.raises(StagingError, match="no default"):
        declare(Field[Tensor0D[f32]], x=f32(1.0))
    with pytest.raises(StagingError, match="no method's name"):
        type("Bad", (Struct,), {"__annotations__": {"replace": Field[Tensor0D[f32]]}})
