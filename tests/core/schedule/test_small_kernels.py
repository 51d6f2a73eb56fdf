"""Small kernels that follow each other are one: how many there are, and what they still load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f64, staged

Vector = Rep[Tensor1D[f64]]
Matrix = Rep[Tensor2D[f64]]


def products(a: Matrix, y: Vector) -> Vector:
    return nk.tanh(a @ nk.tanh(a @ nk.tanh(a @ y)))


def with_a_scalar(a: Matrix, y: Vector) -> Vector:
    return nk.tanh(a @ y) * y.sum() + nk.tanh(y).sum()


ROWS: list[tuple[Callable[..., Any], int, int]] = [
    (products, 3, 1),
    (products, 40, 3),  # as many rows as a product has, each with the function behind it
    (with_a_scalar, 3, 1),
]


def schedule_of(function: Callable[..., Any], size: int) -> str:
    text: str = staged(function).ir(np.eye(size), np.ones(size), stage="schedule")
    return text


@pytest.mark.parametrize(("function", "size", "kernels"), ROWS)
def test_how_many_kernels_there_are(function: Callable[..., Any], size: int, kernels: int) -> None:
    assert schedule_of(function, size).count("kernel of") == kernels


def test_what_is_between_them_is_not_loaded() -> None:
    """Of three vectors one is read, and the matrix once; nothing but the result is stored."""
    text = schedule_of(products, 3)
    assert text.count("loadAt") == 3 + 3
    assert text.count("storeAt") == 1
