"""Structs with type variables: one class for all element types, checked where a field or a parameter says which."""

from __future__ import annotations

import pickle
from typing import Any, Generic

import numpy as np
import pytest
from typing_extensions import TypeVar

import nnkit as nk
from nnkit import DTypeError, Field, Float, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, f64

D = TypeVar("D", bound=Float, default=f32)
In = TypeVar("In", bound=int, default=Any)


class Layer(Struct, Generic[D, In]):
    w: Field[Tensor2D[D, In]]
    b: Field[Tensor1D[D]]


class Layers(Struct, Generic[D]):
    several: Field[list[Layer[D]]]


class Model(Struct):
    single: Field[Layer]
    double: Field[Layer[f64]]
    doubles: Field[Layers[f64]]


class Doubles(Layer[f64]):
    scale: Field[Scalar[f64]]


def layer(dtype: Any) -> Any:
    return Layer(
        Tensor2D(np.ones((2, 3)).astype(dtype), dtype), Tensor1D(np.ones(3).astype(dtype), dtype)
    )


SINGLE, DOUBLE = layer(f32), layer(f64)
MODEL = Model(SINGLE, DOUBLE, Layers([DOUBLE, DOUBLE]))


@nk.staged
def double(p: Rep[Layer[f64]]) -> Rep[Layer[f64]]:
    return p * 2


def test_element_types_go_through_structs_and_staged_functions() -> None:
    @nk.staged
    def total(p: Rep[Model]) -> Rep[Scalar[f64]]:
        one: Any = p[Model.single]
        sums = [one[field].cast(f64).sum() for field in nk.fields(Layer)]
        made: Rep[Scalar[f64]] = sums[0] * sums[1] + nk.tree.leaves(p[Model.doubles])[0].sum()
        return made

    assert float(total(MODEL)) == 24
    slope = nk.gradient(of=total, wrt=0)(MODEL)
    assert slope.single.w.dtype is f32 and slope.doubles.several[0].w.dtype is f64
    assert (slope.single.b.numpy() == 6).all() and not slope.double.w.numpy().any()
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL and Layer[f32](*SINGLE._fields) == SINGLE
    assert double(DOUBLE) == DOUBLE + DOUBLE
    assert Doubles(DOUBLE.w, DOUBLE.b, f64(1.0)).w.dtype is f64


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Model(DOUBLE, DOUBLE, MODEL.doubles), r"Model.single.w must be a Tensor2D\[f32\]"),
        (
            lambda: Model(SINGLE, DOUBLE, Layers([SINGLE])),
            r"doubles.several\[0\].w must be a .*f64",
        ),
        (lambda: Layers([SINGLE, DOUBLE]), "D is one element type in a struct, .* f32 and f64"),
        (lambda: Layer(SINGLE.w, DOUBLE.b), "D is one element type in a struct, .* f32 and f64"),
        (lambda: Doubles(SINGLE.w, SINGLE.b, f64(1.0)), r"Doubles.w must be a Tensor2D\[f64\]"),
        (lambda: double(SINGLE), r"is a Layer whose w is a Tensor2D\[f32\], not a Tensor2D\[f64\]"),
    ],
)
def test_another_element_type_is_an_error(make: Any, words: str) -> None:
    with pytest.raises(DTypeError, match=words):
        make()
