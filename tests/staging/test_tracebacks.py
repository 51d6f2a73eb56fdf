"""Tracebacks of NNKit's errors end at the user's line, wherever the error leaves the package."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, f32, f64, staged

V = Tensor1D[f64]
X = Tensor1D(np.ones(3))


class P(Struct):
    w: Field[Tensor1D[f64]]


@staged
def good(x: Rep[V]) -> Rep[V]:
    return x * 2.0


@staged
def wrong(x: Rep[V]) -> Rep[V]:
    return helper(x)


def helper(x: Any) -> Any:
    return inner(x) + nk.concat([x, x.sum()])


@staged
def inner(x: Rep[V]) -> Rep[V]:
    return x


@staged
def checked(x: Rep[V]) -> Rep[V]:
    nk.check(x.sum() < 0.0, "negative")
    return x


@staged
def shapes(x: Rep[V], y: Rep[V]) -> Rep[V]:
    return inner(x) * y


def plain(x: Any) -> Any:
    return x


ANY: Any = nk
HERE: dict[str, Callable[[], Any]] = {
    "rank": lambda: good(np.ones((2, 2))),
    "item": lambda: good[np.ones((2, 2))],
    "arity": lambda: good(X, X),
    "second call": lambda: (good(X), good(X.numpy().astype(np.float32))),
    "keyword": lambda: good(x=X),
    "out": lambda: good(X, out=np.zeros(4)),
    "shapes": lambda: shapes(X, np.ones(4)),
    "check": lambda: checked(X),
    "gradient of data": lambda: nk.gradient(of=good, wrt=0)(np.ones(3, int)),
    "gradient": lambda: nk.gradient(of=good, wrt=3),
    "plain": lambda: ANY.gradient(of=plain, wrt=0),
    "vmap": lambda: ANY.vmap(plain),
    "function": lambda: nk.tanh(ANY.concat([1, 2])),
    "struct": lambda: P(np.ones((2, 2))),  # type: ignore[arg-type]  # of another rank
    "tensor": lambda: Tensor2D(np.ones(3)),
    "staged": lambda: staged(lambda *xs: xs),
    "fix": lambda: ANY.fix(lambda: 1),
    "fn": lambda: nk.fn(V)(lambda x, y: x),
    "ir": lambda: good.ir(np.ones((2, 2))),
    "compile": lambda: good.compile(nk.spec((2, 2), f32)),
    "partial": lambda: good.partial(n=1),
    "linalg": lambda: ANY.linalg.inv(np.ones(3)),
    "matrix functions": lambda: ANY.linalg.norm(np.ones(3), ord="no such norm"),
    "optim": lambda: ANY.optim.adam(-1.0),
    "random": lambda: ANY.random.bernoulli(nk.random.key(0), 2.0, (2,)),
    "tree": lambda: ANY.tree.map(plain, (X, X), X),
}


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("name", HERE)
def test_the_last_line_is_that_of_the_call(name: str) -> None:
    with pytest.raises(nk.NNKitError) as caught:
        HERE[name]()
    shown = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in shown} == {__file__}, shown
    assert shown[-1].name in ("<lambda>", "shapes")
    assert "<string>" not in str(caught.value)  # nor is it in code that `dataclass` generates


def test_lines_of_the_user_between_stay() -> None:
    """What is raised where a function is staged has all of the user's lines, and none of ours between them."""
    with pytest.raises(nk.RankError) as caught:
        wrong(X)
    assert frames(caught.value)[1:] == ["wrong", "helper"]
    with pytest.raises(nk.RankError) as caught:
        nk.gradient(of=wrong, wrt=0)(X)
    assert frames(caught.value)[1:] == ["wrong", "helper"]


def test_all_that_show_tracebacks_see_the_same() -> None:
    """IPython and `sys.excepthook` take the traceback of `sys.exc_info`, others that of the error."""
    try:
        good(X, X)
    except nk.NNKitError as error:
        kind, value, shown = sys.exc_info()
        assert kind is nk.StagingError and value is error and shown is error.__traceback__
        assert traceback.format_tb(shown) == traceback.format_tb(error.__traceback__)
        assert "nnkit/" not in "".join(traceback.format_tb(shown)).replace(__file__, "")
        text = "".join(traceback.format_exception(error))
        assert "During handling" not in text and "direct cause" not in text


def test_all_frames_are_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_TRACEBACK", "full")
    for call in (HERE["arity"], HERE["gradient"], HERE["tensor"]):
        with pytest.raises(nk.NNKitError) as caught:
            call()
        assert len(frames(caught.value)) > 3


def test_errors_of_the_user_are_left_alone() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        staged(fails)(X)
    assert frames(caught.value)[-1] == "fails" and caught.value.args == ("mine",)
