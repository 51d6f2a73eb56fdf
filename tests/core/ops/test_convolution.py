"""Convolution: samples for the laws, then a naive loop as the judge of every combination of attributes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import Convolve
from nnkit.core.types import Array

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f32, f64, i32


def naive(op: Convolve, x: Array, kernel: Array) -> Array:
    """The definition, one product at a time."""
    axes = x.ndim - 2
    ones = (1,) * axes
    strides, left = op.strides or ones, op.left_dilation or ones
    right, padding = op.right_dilation or ones, op.padding or ((0, 0),) * axes
    places = []
    for axis in range(axes):
        extent, window = x.shape[2 + axis], kernel.shape[2 + axis]
        spread = (extent - 1) * left[axis] + 1 if extent else 0
        room = sum(padding[axis]) + spread - ((window - 1) * right[axis] + 1)
        places.append(room // strides[axis] + 1 if room >= 0 else 0)
    result = np.zeros((x.shape[0], kernel.shape[0], *places), x.dtype)
    inside, made = kernel.shape[1], max(kernel.shape[0] // op.groups, 1)
    for n, o, *p in np.ndindex(*result.shape):
        for c, *k in np.ndindex(inside, *kernel.shape[2:]):
            where = [p[a] * strides[a] + k[a] * right[a] - padding[a][0] for a in range(axes)]
            found = [w // left[a] for a, w in enumerate(where) if w % left[a] == 0]
            if len(found) == axes and all(0 <= f < x.shape[2 + a] for a, f in enumerate(found)):
                result[(n, o, *p)] += x[(n, o // made * inside + c, *found)] * kernel[(o, c, *k)]
    return result


def sample(op: Convolve, x: tuple[int, ...], kernel: tuple[int, ...]) -> Sample:
    return Sample(op, (f64(*x), f64(*kernel)), numpy=lambda *xs: naive(op, *xs))


SAMPLES = [
    sample(Convolve(), (1, 1, 5), (1, 1, 3)),
    sample(Convolve(), (2, 3, 6), (4, 3, 2)),
    sample(Convolve((2,), ((1, 1),)), (1, 2, 7), (3, 2, 3)),
    sample(Convolve((3,), ((0, 2),)), (1, 1, 8), (1, 1, 2)),
    sample(Convolve(left_dilation=(2,)), (1, 2, 4), (1, 2, 3)),
    sample(Convolve(right_dilation=(2,)), (1, 1, 7), (2, 1, 3)),
    sample(Convolve((2,), ((2, 1),), (3,), (2,)), (2, 2, 4), (2, 2, 3)),
    sample(Convolve(padding=((-1, -2),)), (1, 1, 8), (1, 1, 2)),
    sample(Convolve(padding=((-1, 3),), left_dilation=(2,)), (1, 1, 4), (1, 1, 2)),
    sample(Convolve(padding=((4, 0),)), (1, 1, 2), (1, 1, 2)),
    sample(Convolve(groups=2), (1, 4, 5), (6, 2, 2)),
    sample(Convolve((2,), ((1, 1),), groups=3), (2, 3, 5), (3, 1, 3)),
    sample(Convolve(padding=((1, 1), (1, 1))), (2, 2, 4, 3), (3, 2, 3, 3)),
    sample(Convolve((2, 1), ((0, 1), (2, 0)), (1, 2), (2, 1), 2), (1, 4, 5, 3), (2, 2, 2, 3)),
    sample(Convolve((1, 2, 1), ((1, 0), (0, 1), (0, 0))), (1, 2, 2, 3, 2), (2, 2, 2, 2, 1)),
    sample(Convolve(), (1, 1, 2), (1, 1, 3)),
    sample(Convolve(padding=((2, 2),)), (1, 1, 0), (1, 1, 2)),
    sample(Convolve(), (0, 2, 4), (3, 2, 2)),
    sample(Convolve(), (2, 0, 4), (3, 0, 2)),
    sample(Convolve(), (2, 2, 4), (0, 2, 2)),
    Sample(Convolve((2,)), (i32(1, 2, 5), i32(2, 2, 3)), numpy=lambda x, k: naive(Convolve((2,)), x, k)),
]  # fmt: skip
ERRORS = [
    ErrorSample(Convolve(), (f64(1, 1), f64(1, 1)), "of the same rank, at least 3, not f64[1, 1]", RankError),
    ErrorSample(Convolve(), (f64(1, 1, 2), f64(1, 1, 2, 2)), "of the same rank", RankError),
    ErrorSample(Convolve(), (f64(1, 1, 2), f32(1, 1, 2)), "element types f64 and f32 differ", DTypeError),
    ErrorSample(Convolve(), (boolean(1, 1, 2), boolean(1, 1, 2)), "takes float or integer", DTypeError),
    ErrorSample(Convolve((1, 1)), (f64(1, 1, 2), f64(1, 1, 2)), "strides has 2 entries for 1 spatial axes", RankError),
    ErrorSample(Convolve(padding=((0, 0),) * 3), (f64(1, 1, 2), f64(1, 1, 2)), "padding has 3 entries", RankError),
    ErrorSample(Convolve((0,)), (f64(1, 1, 2), f64(1, 1, 2)), "a stride is 0, not at least 1"),
    ErrorSample(Convolve(left_dilation=(0,)), (f64(1, 1, 2), f64(1, 1, 2)), "a leftDilation is 0"),
    ErrorSample(Convolve(right_dilation=(-1,)), (f64(1, 1, 2), f64(1, 1, 2)), "a rightDilation is -1"),
    ErrorSample(Convolve(groups=0), (f64(1, 1, 2), f64(1, 1, 2)), "groups is 0, not at least 1"),
    ErrorSample(Convolve(groups=8), (f64(1, 10, 2), f64(8, 1, 2)), "10 input channels cannot be split into 8 groups"),
    ErrorSample(Convolve(groups=2), (f64(1, 4, 2), f64(3, 2, 2)), "3 output channels cannot be split into 2 groups"),
    ErrorSample(Convolve(), (f64(1, 3, 2), f64(1, 2, 2)), "takes 2 channels, but f64[1, 3, 2] has 3"),
    ErrorSample(Convolve(groups=2), (f64(1, 4, 2), f64(2, 4, 2)), "but f64[1, 4, 2] has 2 in each group"),
    ErrorSample(Convolve(), (f64(1, 1, 2), f64(1, 1, 0)), "a spatial axis of the kernel f64[1, 1, 0] is empty"),
    ErrorSample(Convolve(padding=((1 << 60, 0),)), (f64(1, 1, 2), f64(1, 1, 1)), "leave the address space"),
    ErrorSample(Convolve(padding=((1 << 46, 0),)), (f64(1, 1, 2), f64(1, 1, 1)), "is larger than the address space"),
]  # fmt: skip


@st.composite
def convolutions(draw: Any) -> Sample:
    """Any attributes on one or two spatial axes."""
    axes, groups = draw(st.integers(1, 2)), draw(st.integers(1, 3))

    def numbers(low: int, high: int, count: int = axes) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    x = (*numbers(0, 2, 1), groups * draw(st.integers(0, 2)), *numbers(0, 5))
    kernel = (groups * draw(st.integers(0, 2)), x[1] // groups, *numbers(1, 3))
    op = Convolve(
        numbers(1, 3) if draw(st.booleans()) else (),
        tuple(zip(numbers(-2, 3), numbers(-2, 3), strict=True)) if draw(st.booleans()) else (),
        numbers(1, 3) if draw(st.booleans()) else (),
        numbers(1, 3) if draw(st.booleans()) else (),
        groups,
    )
    return sample(op, x, kernel)


@given(convolutions())
def test_any_convolution_is_the_naive_one_and_so_are_its_cotangents(drawn: Sample) -> None:
    program = Tangents(drawn)
    operands = drawn.operands()
    assert isinstance(drawn.op, Convolve)
    (y,) = program.values([program.y], [program.y])
    np.testing.assert_allclose(y, naive(drawn.op, *operands), rtol=1e-12, atol=1e-12)
    cotangents = program.values(program.reverse(), program.active)
    ct = program.given[program.ct]
    for position, found in enumerate(cotangents):
        expected = np.zeros_like(found)
        for place in np.ndindex(*expected.shape):
            one = np.zeros_like(found)
            one[place] = 1.0
            moved = [one if k == position else x for k, x in enumerate(operands)]
            expected[place] = np.vdot(ct, naive(drawn.op, *moved))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_derivatives_are_convolutions() -> None:
    program = Tangents(SAMPLES[6])
    for ct in program.reverse():
        assert ct is not None
    made = [i.op.name for i in program.b.block.instructions]
    assert made.count("convolve") == 3
    assert set(made) <= {"convolve", "reverse", "transpose", "shapeCast"}


def test_the_kernel_is_not_turned_around() -> None:
    x, kernel = np.arange(4.0).reshape(1, 1, 4), np.array([1.0, 10.0]).reshape(1, 1, 2)
    assert Convolve().evaluate(x, kernel).ravel().tolist() == [10.0, 21.0, 32.0]


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_any_number_of_spatial_axes(axes: int) -> None:
    shape = tuple(itertools.islice(itertools.cycle((3, 2)), axes))
    op = Convolve(padding=((1, 0),) * axes)
    row = sample(op, (1, 2, *shape), (2, 2, *(2,) * axes))
    operands = row.operands()
    np.testing.assert_allclose(op.evaluate(*operands), naive(op, *operands), rtol=1e-13)
