"""Cotangents of slices: put together where they do not overlap, added where they do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64
from nnkit.core.autodiff.slice_adjoints import add_slices
from nnkit.core.ir import Module, finish_function, start_function
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Add, Concatenate, Pad, Return
from nnkit.core.ops.slicing import PaddedPart
from nnkit.core.text import parse_module
from nnkit.core.types import F64, TensorType
from tests.core.compute.building import results

Matrix = Tensor2D[f64]
Number = Scalar[f64]
Box = tuple[tuple[int, ...], tuple[int, ...]]


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Box]]:
    """A shape, and boxes inside of it: first indices and extents."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    found: list[Box] = []
    for _ in range(draw(st.integers(1, 9))):
        low = tuple(draw(st.integers(0, n - 1)) for n in shape)
        size = tuple(draw(st.integers(1, n - a)) for a, n in zip(low, shape, strict=True))
        found.append((low, size))
    return shape, found


@given(boxes())
def test_the_sum_of_parts(given_boxes: tuple[tuple[int, ...], list[Box]]) -> None:
    shape, found = given_boxes
    b = start_function([TensorType(size, F64) for _, size in found])
    parts = zip(found, list(b.block.arguments), strict=True)
    total = add_slices(b, [PaddedPart(low, x) for (low, _), x in parts], shape)
    assert total.tensor.shape == shape
    b.emit_many(Return(), [total])
    module = Module()
    module.add(finish_function("main", b, total.type))
    expected = np.zeros(shape)
    arguments = [np.random.default_rng(n).random(size) for n, (_, size) in enumerate(found)]
    for (low, size), x in zip(found, arguments, strict=True):
        expected[tuple(slice(a, a + n) for a, n in zip(low, size, strict=True))] += x
    np.testing.assert_allclose(results(module, arguments)[0], expected, rtol=1e-14)


@pytest.mark.parametrize(("rows", "columns"), [(4, 1), (1, 5), (3, 4), (10, 10)])
def test_elements_of_a_grid_need_no_addition(rows: int, columns: int) -> None:
    places = list(itertools.product(range(rows), range(columns)))
    b = start_function([TensorType((1, 1), F64) for _ in places])
    parts = zip(places, list(b.block.arguments), strict=True)
    add_slices(b, [PaddedPart(place, x) for place, x in parts], (rows, columns))
    ops = [type(i.op) for i in b.block.instructions]
    assert Add not in ops and Pad not in ops and ops.count(Concatenate) <= rows + 1


def test_rows_of_a_matrix_are_differentiated_without_sums_of_matrices() -> None:
    @nk.staged
    def f(m: Rep[Matrix]) -> Rep[Number]:
        total = nk.sin(m[0]) * m[7]
        for k in range(1, 7):
            total = total + m[k] * m[k - 1] * float(k)
        return total.sum() + m[2, 1] * m[2, 3]

    x = np.random.default_rng(0).random((9, 5))
    gradient = nk.gradient(of=f, wrt=0)
    nk.check_gradients(f, x, order=2)
    module = parse_module(str(gradient.ir(x, stage="optimized")))
    body = module.functions["f_grad"].body
    assert body is not None
    sums = [i for i in walk(body) if isinstance(i.op, Add) and i.result.tensor.shape == x.shape]
    assert not sums


def test_slices_that_overlap_are_added() -> None:
    @nk.staged
    def f(x: Rep[Tensor1D[f64]]) -> Rep[Number]:
        return (x[1:] * x[:-1]).sum() + x[2] * x[0] + x[2]

    x = np.random.default_rng(0).random(6)
    expected = np.zeros(6)
    expected[1:] += x[:-1]
    expected[:-1] += x[1:]
    expected[[2, 0]] += x[[0, 2]]
    expected[2] += 1
    np.testing.assert_allclose(nk.gradient(of=f, wrt=0)(x).numpy(), expected)
    nk.check_gradients(f, x, order=2)
