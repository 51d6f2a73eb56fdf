"""Programs whose nests run side by side row by row, with reshapes between them, against the evaluator.

A row that is still needed must not be overwritten by a member of the group that is a row behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit.compile import Specialization
from nnkit.core.evaluate import evaluate

ROWS = np.random.default_rng(0)


def normalized_rows(p: Any, w: Any, b: Any, i: Any) -> Any:
    rows = nk.layer_norm(nk.broadcast_to(p, (17, 33)).expand_dims(1), w, b, epsilon=0.1)
    return nk.sin(nk.take(rows, i, 1)).mean()


def padded_sums(p: Any, w: Any, b: Any, i: Any) -> Any:
    padded = nk.layer_norm(nk.pad(p, [(2, 0), (2, 1), (0, 3)], constant_values=2), epsilon=0.1)
    sums = nk.logsumexp(padded, axis=(1, 2), keepdims=True)
    return nk.sin(nk.atan(nk.pad(w * sums, [(0, 0), (0, 0), (3, 3)]))).mean()


def compiled_and_evaluated(function: Any, arguments: list[Any]) -> tuple[Any, Any]:
    specialization: Specialization = function._specialization(
        function._values(tuple(arguments), specs=True)
    )
    module, entry = specialization.module("optimizable")
    return function(*arguments), evaluate(module, entry.name, *arguments)


@pytest.mark.parametrize(
    ("program", "shapes", "order"),
    [
        (normalized_rows, [(1,), (33,), (33,)], 1),
        (padded_sums, [(16, 8, 8), (1, 1, 1), ()], 2),
    ],
)
def test_groups_with_reshapes_inside(
    program: Callable[..., Any], shapes: list[tuple[int, ...]], order: int
) -> None:
    arguments: list[Any] = [ROWS.normal(size=shape) for shape in shapes]
    arguments.append(ROWS.integers(-1, 1, 17))
    types = [nk.Tensor0D, nk.Tensor1D, nk.Tensor2D, nk.Tensor3D]
    declared = [types[array.ndim][nk.f64] for array in arguments[:-1]]
    function = nk.fn(*declared, nk.Tensor1D[nk.i64])(program)
    made: Any = nk.value_and_gradient(of=function, wrt=(0, 1))
    if order == 2:
        first: Any = nk.gradient(of=function, wrt=1)
        inner = nk.fn(*declared, nk.Tensor1D[nk.i64])(
            lambda p, w, b, i: (first(p, w, b, i) * 1.5).sum()
        )
        made = nk.gradient(of=inner, wrt=(0, 1))
    found, expected = compiled_and_evaluated(made, arguments)
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(25, 1000, 10), (1000, 20, 16), (1, 32_000, 10)])
def test_long_sums_in_memory_are_finished_before_they_are_read(shape: tuple[int, int, int]) -> None:
    """As in the gradient of a mixture of Gaussians by its means."""

    @nk.staged
    def weighted(
        x: nk.Rep[nk.Tensor3D[nk.f64]], q: nk.Rep[nk.Tensor3D[nk.f64]]
    ) -> nk.Rep[nk.Tensor3D[nk.f64]]:
        weights = nk.exp(nk.square(x).sum(axis=2)).expand_dims(2)
        return q @ (weights * x).sum(axis=1).expand_dims(2)

    rows, _, width = shape
    arguments = [ROWS.normal(size=shape) * 0.1, ROWS.normal(size=(rows, width, width))]
    compiled, evaluated = compiled_and_evaluated(weighted, arguments)
    np.testing.assert_allclose(compiled, evaluated, rtol=1e-10, atol=1e-10)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]
