"""Random programs of matrices: what lies in the place of something else changes no bit of any result.

Products, rows that are reduced, running sums, sorts, transposes, loops and derivatives of four matrices of one shape,
any of which may be donated, with results in any order.  Many of these fit into each other's places, and what a program
reads late is often what an earlier result has been written over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor2D, f32
from nnkit.callables import StagedFunction
from nnkit.core.types import Array

Matrix: TypeAlias = Rep[Tensor2D[f32]]

COUNT = 4
"""Of the matrices that a program takes."""
EXTENTS = (7, 16, 33, 48, 64)
"""Of both axes: no, one and several vectors, with and without a rest; tiles of products, whole and not."""
DONATED = ((0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (0, 3), (1, 2, 3), (0, 1, 2, 3))


def softmax(x: Matrix) -> Matrix:
    e = nk.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def normalized(x: Matrix) -> Matrix:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / nk.sqrt(nk.square(centred).mean(axis=1, keepdims=True) + 1e-3)


UNARY: Sequence[Callable[[Matrix], Matrix]] = (
    softmax, normalized, nk.tanh, lambda x: nk.maximum(x, 0.0), lambda x: x.T,
    lambda x: nk.cumsum(x, 0), lambda x: nk.cumsum(x, 1), lambda x: nk.sort(x, axis=1),
    lambda x: nk.flip(x, 0), lambda x: nk.flip(x, 1), lambda x: nk.roll(x, 3, axis=1),
    lambda x: x.at[1].add(1.0), lambda x: x.at[:, 2].set(0.5),
)  # fmt: skip
BINARY: Sequence[Callable[[Matrix, Matrix], Matrix]] = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, nk.minimum,
    lambda x, y: x @ y, lambda x, y: x @ y.T, lambda x, y: x.T @ y, lambda x, y: nk.tanh(x @ y + x),
    lambda x, y: x + y[0],
)  # fmt: skip


def looped(r: random.Random, x: Matrix, y: Matrix) -> Matrix:
    """What a loop carries, or what it stacks."""
    unary, binary = r.choice(UNARY), r.choice(BINARY)
    if r.random() < 0.5:
        return nk.fori(0, 3, lambda _, carried: nk.tanh(binary(unary(carried), y)), x)
    last, rows = x.scan(y[0], lambda row, other: (nk.tanh(row + other), row * other))
    return rows.tensor() + last


def results(r: random.Random, given: Sequence[Matrix], length: int) -> list[Matrix]:
    """Up to three of what is computed of the matrices, in any order."""
    values = list(given)
    for _ in range(length):
        kind = r.random()
        if kind < 0.4:
            values.append(r.choice(UNARY)(r.choice(values)))
        elif kind < 0.9:
            values.append(r.choice(BINARY)(r.choice(values), r.choice(values)))
        else:
            values.append(looped(r, r.choice(values), r.choice(values)))
    made = values[len(given) :]
    return r.sample(made, min(3, len(made)))


def program(seed: int) -> StagedFunction:
    """The values, derivatives in either mode, or both."""
    r = random.Random(seed)
    kind, inner, length = (
        r.choice(["values", "gradient", "jvp", "both"]),
        r.random(),
        r.randint(3, 8),
    )

    def values(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Any:
        return nk.tup(*results(random.Random(inner), (a, b, c, d), length))

    def loss_of(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Rep[Scalar[f32]]:
        first, *others = results(random.Random(inner), (a, b, c, d), length)
        total = nk.tanh(first).mean()
        for other in others:
            total = total + nk.tanh(other).mean()
        return total

    types = [Tensor2D[f32]] * COUNT
    loss = nk.fn(*types)(loss_of)

    def step(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Any:
        """Two of the matrices are updated, as a training step does."""
        slopes = nk.gradient(of=loss, wrt=(0, 2))(a, b, c, d).unpack()
        return nk.tup(a - 0.1 * slopes[0], slopes[1] * b, c - slopes[1])

    def tangent(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Any:
        pushed = nk.jvp(nk.fn(*types)(values), wrt=(0, 1))(a, b, c, d, d, a)
        return nk.tup(*pushed[1].unpack(), a + b)

    def both(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Any:
        slope = nk.gradient(of=loss, wrt=1)(a, b, c, d)
        return nk.tup(d - slope, *values(a, b, c, d).unpack())

    bodies = {"values": values, "gradient": step, "jvp": tangent, "both": both}
    return nk.fn(*types)(bodies[kind])


def arguments(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    extent = int(rng.choice(EXTENTS))
    return [
        (rng.normal(size=(extent, extent)) / np.sqrt(extent)).astype(np.float32)
        for _ in range(COUNT)
    ]


def computed(f: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    return [np.asarray(one) for one in f(*(Tensor2D(array.copy()) for array in arrays))]


LAW = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=max(100, settings().max_examples),
)


@LAW
@given(
    st.integers(0, 1 << 30), st.lists(st.sampled_from(DONATED), min_size=3, max_size=3, unique=True)
)
def test_donated_or_not_results_are_the_same(seed: int, donated: Sequence[tuple[int, ...]]) -> None:
    f, arrays = program(seed), arguments(seed)
    expected = computed(f, arrays)
    for numbers in donated:
        found = computed(nk.donate(f, *numbers), arrays)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"donated {numbers}")


@LAW
@given(st.integers(0, 1 << 30))
def test_temporaries_in_each_others_places_change_nothing(seed: int) -> None:
    """Not by bits: which kernels become one depends on places, and what is added up in which order on these."""
    f, arrays = program(seed), arguments(seed)
    expected = computed(f, arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NNKIT_DISABLE", "in-place,moves,idle-outputs")
        found = computed(program(seed), arrays)
    for one, other in zip(found, expected, strict=True):
        size = max(1.0, float(np.max(np.abs(other), initial=0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * size)
