"""Reductions of nothing, computed of tensors so large that threads would share the work if there were any.

A nest over no points that reads a large tensor is no work; its totals are those of nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, Tensor3D, f32, i64
from nnkit.core.types import Array
from tests.values import flat

MANY = 120_000
"""Elements of f32 that take 15 µs to go through, from which a loop is shared."""

TYPES = {1: Tensor1D[f32], 2: Tensor2D[f32], 3: Tensor3D[f32]}
Operand: TypeAlias = Any

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((0, MANY), (MANY,)), ((0, MANY), (1, MANY)), ((MANY, 0), (MANY, 1)), ((0, 1), (MANY,)),
    ((3, 0, MANY // 4), (MANY // 4,)), ((0, MANY // 4, 4), (MANY // 4, 4)), ((MANY // 8, 0, 8), (MANY // 8, 1, 8)),
    ((0, 7), (7,)),
]  # fmt: skip

COMBINED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda x, y: x + y, lambda x, y: x + y),
    "product of functions": (lambda x, y: np.tanh(x) * np.exp(y), lambda x, y: nk.tanh(x) * nk.exp(y)),
    "choice": (lambda x, y: np.where(x > y, x * y, y), lambda x, y: nk.select(x > y, x * y, y)),
    "of both and one": (lambda x, y: (x + y) * y - x, lambda x, y: (x + y) * y - x),
}  # fmt: skip
"""Of an empty and a large tensor, in NumPy and in the language."""

REDUCED: dict[str, Callable[[Array, int | None], Any]] = {
    "sum": lambda x, axis: x.sum(axis),
    "prod": lambda x, axis: x.prod(axis),
    "max": lambda x, axis: x.max(axis, initial=-np.inf),
    "min": lambda x, axis: x.min(axis, initial=np.inf),
}


@settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=max(40, settings().max_examples),
)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from([*COMBINED]),
    st.sampled_from([*REDUCED]),
    st.integers(-1, 2),
)
def test_reductions_are_those_of_nothing(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], combined: str, reduced: str, axis: int
) -> None:
    """Along one axis or all of them, with what follows, and the gradient."""
    numpy, staged = COMBINED[combined]
    along = axis if 0 <= axis < len(shapes[0]) else None
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    def value(x: Operand, y: Operand) -> Any:
        return getattr(staged(x, y), reduced)(along)

    def loss(x: Operand, y: Operand) -> Any:
        return nk.tanh(value(x, y)).sum() + nk.square(y).sum()

    types = [TYPES[array.ndim] for array in arrays]
    expected = REDUCED[reduced](numpy(*arrays), along)
    np.testing.assert_array_equal(np.asarray(nk.fn(*types)(value)(*arrays)), expected)
    slopes = nk.gradient(of=nk.fn(*types)(loss), wrt=(0, 1))(*arrays)
    for found, wanted in zip(flat(slopes), (0 * arrays[0], 2 * arrays[1]), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_what_is_looked_up_nowhere_and_layers_of_no_rows() -> None:
    """Rows at no indices, columns from 3 to 3, and a network for no examples, whose weights are parts of one vector."""
    table = np.ones((20_000, 64), np.float32)

    @nk.staged
    def looked_up(table: Rep[Tensor2D[f32]], at: Rep[Tensor1D[i64]]) -> Any:
        return (nk.take(table, at, axis=0) * 2.0).sum()

    @nk.staged
    def cut(x: Rep[Tensor2D[f32]]) -> Any:
        return (x[3:3] * x[0]).sum(), nk.exp(x[:, :0] * x[:, 0].expand_dims(1)).sum()

    @nk.staged
    def layers(x: Rep[Tensor2D[f32]], p: Rep[Tensor1D[f32]]) -> Any:
        h = x
        for _ in range(3):
            h = nk.tanh(h @ p[:90_000].reshape(300, 300) + p[90_000:90_300])
        return (h * h).sum(), nk.logsumexp(h, axis=1).sum()

    assert float(looked_up(table, np.zeros(0, np.int64))) == 0
    assert [float(one) for one in flat(cut(table))] == [0, 0]
    p = np.ones(90_300, np.float32)
    assert [float(one) for one in flat(layers(np.zeros((0, 300), np.float32), p))] == [0, 0]


def test_the_logarithm_of_a_sum_of_nothing_is_minus_infinity() -> None:
    for n in (7, MANY):
        given = np.zeros((0, n), np.float32), np.ones(n, np.float32)
        f = nk.fn(Tensor2D[f32], Tensor1D[f32])(lambda x, y: nk.logsumexp(x + y))
        assert float(f(*given)) == -np.inf
