"""Data given to functions of Reps where nothing is staged: which function the error says to decorate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, StagingError, Struct, Tensor1D, f32

NK: Any = nk
T = Tensor1D([1.0, 2.0], f32)


class Pair(Struct):
    a: Field[Tensor1D[f32]]


def forgot(x: Any) -> Any:
    return NK.tanh(x) * 2


def of_what_is_computed(x: Any, scale: float = 2.0) -> Any:
    y = x * scale
    return next(NK.softmax(each) for each in [y])


def by_name(*, weights: Any) -> Any:
    return NK.linalg.norm(weights.w if isinstance(weights, Pair) else weights)


def of_a_struct(p: Any) -> Any:
    return NK.maximum(p.a, 0.0)


def in_another() -> Any:
    data = T
    return inner(data)


def inner(x: Any) -> Any:
    return NK.concat([x, x])


CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "tensor": (lambda: forgot(T), "tanh takes Reps, and is given a Tensor1D: forgot, whose parameter x is", "forgot"),
    "array": (lambda: forgot(np.ones(3)), "forgot, whose parameter x is a ndarray, is not staged", "forgot"),
    "computed": (lambda: of_what_is_computed(T), "softmax takes Reps", "of_what_is_computed"),
    "name": (lambda: by_name(weights=T), "by_name, whose parameter weights is a Tensor1D", "by_name"),
    "struct": (lambda: of_a_struct(Pair(T)), "of_a_struct, whose parameter p is a Pair", "of_a_struct"),
    "nearest": (in_another, "inner, whose parameter x is a Tensor1D, is not staged", "inner"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_function_to_decorate_is_named_with_its_line(name: str) -> None:
    call, message, function = CASES[name]
    with pytest.raises(StagingError) as caught:
        call()
    notes = "".join(caught.value.__notes__)
    assert message in str(caught.value)
    assert f"def {function}(" in notes and f"decorate {function} with @nk.staged" in notes


def test_a_lambda_and_no_function_at_all() -> None:
    with pytest.raises(
        StagingError, match="this lambda, whose parameter x is a Tensor1D"
    ) as caught:
        (lambda x: NK.exp(x))(T)
    assert "nk.staged(lambda" in "".join(caught.value.__notes__)
    with pytest.raises(
        StagingError, match="exp takes Reps, and is given a Tensor1D: it is for"
    ) as caught:
        NK.exp(T)
    assert "exp(nk.const(x)).eval()" in "".join(caught.value.__notes__)


def test_what_is_staged_takes_data_as_constants() -> None:
    @nk.staged
    def f(x: Rep[Tensor1D[f32]]) -> Any:
        return NK.tanh(T) + forgot(x)

    assert f(T).shape == (2,)
    assert nk.tanh(nk.const(T)).eval().shape == (2,)
    assert nk.random.normal(nk.random.key(0), (3,)).shape == (3,)
