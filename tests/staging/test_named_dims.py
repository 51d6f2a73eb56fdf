"""Named dimensions: one size each in a call, of whatever kind the call is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, ShapeError, Struct, Tensor1D, Tensor2D, f64


class Batch(Dim): ...


class Pixel(Dim): ...


class Unit(Dim): ...


I, O = TypeVar("I", bound=Dim), TypeVar("O", bound=Dim)
Images, Labels = Tensor2D[f64, Batch, Pixel], Tensor1D[f64, Batch]


class Params(Struct):
    w: Field[Tensor2D[f64, Pixel, Unit]]
    b: Field[Tensor1D[f64, Unit]]


class Layer(Struct, Generic[I, O]):
    w: Field[Tensor2D[f64, I, O]]


@nk.staged
def loss(images: Rep[Images], labels: Rep[Labels]) -> Rep[Scalar[f64]]:
    return (images * images).sum() * (labels * labels).sum()


@nk.staged
def outer(a: Rep[Tensor2D[f64]], b: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
    return nk.cond(a.sum() > 0.0, lambda: loss(a, b), lambda: a.sum())


@nk.staged
def model(p: Rep[Params], images: Rep[Images]) -> Rep[Scalar[f64]]:
    return p[Params.w].sum() + p[Params.b].sum() + images.sum()


@nk.staged
def layers(one: Rep[Layer[Pixel, Unit]], two: Rep[Layer[Unit, Batch]]) -> Rep[Scalar[f64]]:
    return one[Layer.w].sum() + two[Layer.w].sum()


@nk.staged
def pair(both: tuple[Rep[Labels], Rep[Images]]) -> Rep[Scalar[f64]]:
    return both[0].sum() + both[1].sum()


@nk.staged
def half(x: Rep[Labels]) -> Rep[Labels]:
    return x[:2]


@nk.staged
def results(x: Rep[Labels]) -> tuple[Rep[Tensor1D[f64, Unit]], Rep[Tensor1D[f64, Unit]]]:
    return x, x[:2]


@nk.staged
def square(x: Rep[Tensor2D[f64, Batch, Batch]]) -> Rep[Scalar[f64]]:
    return x.sum()


@nk.staged
def applied(
    f: Rep[Callable[[Images], Images]], images: Rep[Images], labels: Rep[Labels]
) -> Rep[Images]:
    return f(images)


one_of_each = nk.fn(Images, Labels)(lambda images, labels: images.sum() + labels.sum())
same = nk.fn(Images)(lambda x: x)


def ones(*shape: int) -> Any:
    return np.ones(shape)


def params(pixels: int, units: int, others: int) -> Params:
    return Params(Tensor2D(ones(pixels, units)), Tensor1D(ones(others)))


def layer(rows: int, columns: int) -> Layer[Any, Any]:
    return Layer(Tensor2D(ones(rows, columns)))


M, V = ones(4, 3), ones(2)
TWICE = "Batch is 4 in images and 2 in labels of loss: a named dimension has one size in a call"
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "call": (lambda: loss(M, V), TWICE),
    "item": (lambda: loss[M, V], TWICE),
    "out": (lambda: loss(M, V, out=np.zeros(())), TWICE),
    "ir": (lambda: loss.ir(M, V), TWICE),
    "compile": (lambda: loss.compile(M, V), TWICE),
    "inner": (lambda: outer(M, V), TWICE),
    "gradient": (lambda: nk.gradient(of=loss, wrt=0)(M, V), TWICE),
    "gradient of the caller": (lambda: nk.gradient(of=outer, wrt=(0, 1))(M, V), TWICE),
    "second": (lambda: nk.hvp(loss)(M, V, M), TWICE),
    "jvp": (lambda: nk.jvp(loss)(M, V, M, V), TWICE),
    "vjp": (lambda: nk.vjp(loss)(M, V, 1.0), TWICE),
    "jacobian": (lambda: nk.jacobian(of=loss, wrt=1)(M, V), TWICE),
    "checkpoint": (lambda: nk.checkpoint(loss)(M, V), TWICE),
    "split": (lambda: nk.split(loss).forward(M, V), TWICE),
    "vmap": (lambda: nk.vmap(loss, in_axes=0)(ones(5, 4, 3), ones(5, 2)), TWICE),
    "field": (lambda: model(params(3, 2, 2), ones(5, 4)), "Pixel is 3 in p.w and 4 in images of model"),
    "fields": (lambda: model(params(3, 2, 1), ones(5, 3)), "Unit is 2 in p.w and 1 in p.b of model"),
    "generic": (lambda: layers(layer(3, 2), layer(1, 4)), "Unit is 2 in one.w and 1 in two.w of layers"),
    "element": (lambda: pair((V, M)), "Batch is 2 in both[0] and 4 in both[1] of pair"),
    "result": (lambda: half(ones(4)), "Batch is 4 in x and 2 in the result of half"),
    "results": (lambda: results(ones(4)), "Unit is 4 in the result[0] and 2 in the result[1] of results"),
    "one tensor": (lambda: square(M), "Batch is 4 and 3 in x of square"),
    "function": (lambda: applied(same, M, V), "Batch is 4 in images and 2 in labels of applied"),
    "lambda": (lambda: one_of_each(M, V), "Batch is 4 in images and 2 in labels of <lambda>"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_another_size_is_an_error_that_names_both_places(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(ShapeError) as caught:
        call()
    assert message in str(caught.value)
    assert "test_named_dims.py:" in str(caught.value)
    assert "is defined here" in "".join(getattr(caught.value, "__notes__", []))


def test_an_inner_call_is_shown_at_its_line() -> None:
    with pytest.raises(ShapeError) as caught:
        outer(M, V)
    assert "lambda: loss(a, b)" in str(caught.value)


def test_sizes_are_those_of_one_call() -> None:
    assert float(loss(ones(2, 3), V)) == 12.0 and float(loss(ones(4, 3), ones(4))) == 48.0
    assert float(outer(ones(2, 3), V)) == 12.0
    assert half(V).shape == (2,)
    assert float(layers(layer(3, 2), layer(2, 4))) == 14.0
    assert float(model(params(3, 2, 2), ones(5, 3))) == 23.0
    vmapped = nk.vmap(loss, in_axes=(0, 0))(ones(5, 2, 3), ones(5, 2))
    assert vmapped.shape == (5,)
    assert applied(same, M, ones(4)).shape == (4, 3)

    @nk.staged
    def halves(x: Rep[Labels]) -> Rep[Scalar[f64]]:
        return x.sum() + total(x[:2])

    @nk.staged
    def total(x: Rep[Labels]) -> Rep[Scalar[f64]]:
        return x.sum()

    assert float(halves(ones(4))) == 6.0
