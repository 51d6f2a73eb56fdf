"""Tracebacks of NNKit's errors end at the user's line, wherever the error leaves the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import KernelManager

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, f64, i64, staged
from nnkit.staging import tracebacks

V = Tensor1D[f64]
X = Tensor1D(np.ones(3))
REP: Any = nk.const(X)


class P(Struct):
    w: Field[Tensor1D[f64]]


PARAMS = P(X)


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


@staged
def indexed(x: Rep[V], i: Rep[Scalar[i64]]) -> Rep[Scalar[f64]]:
    return x[i]


def plain(x: Any) -> Any:
    return x


def sets() -> None:
    setattr(X, "name", 1)  # noqa: B010  # a checker refuses the statement


def imports() -> None:
    exec("from nnkit import grad", globals())


def asserts(x: Any) -> Any:
    assert x.shape[0] == 1


def declares() -> None:
    type("Q", (Struct,), {"__annotations__": {"a": int}})


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
    "operator of tensors": lambda: X @ np.ones((2, 2)),
    "array and tensor": lambda: np.ones(4) + X,
    "item of a tensor": lambda: X[10],
    "truth of a tensor": lambda: bool(X),
    "tensor of an element type": lambda: Tensor1D[f32](np.ones(3)),
    "scalar": lambda: f32("a"),  # type: ignore[arg-type]  # no number
    "dtype of NumPy": lambda: np.zeros(3, dtype=nk.bf16),  # type: ignore[call-overload]  # NumPy has none
    "no fields": lambda: ANY.fields(3),
    "operator of structs": lambda: PARAMS + X,  # type: ignore[operator]  # not a scalar
    "replace": lambda: PARAMS.replace(v=1),
    "reduction": lambda: REP.sum(axis=5),
    "operator of Reps": lambda: REP + nk.const(np.ones(3, np.float32)),
    "property": lambda: REP.T,
    "part": lambda: REP.at[0].set("a"),
    "halves": lambda: nk.split(good).forward(np.ones((2, 2))),
    "linearization": lambda: nk.linearize(good)(X)[1](np.ones(4)),
    "index": lambda: indexed(X, np.int64(7)),
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


OF_PYTHON: dict[str, Callable[[], Any]] = {
    "arguments": lambda: ANY.tanh(),
    "keyword": lambda: ANY.softmax(REP, axes=2),
    "transform": lambda: ANY.gradient(of=good),
    "attribute of a tensor": lambda: ANY.const(X).nope,
    "attribute of a Rep": lambda: REP.nope,
    "attribute of a function": lambda: good.nope,  # type: ignore[attr-defined]  # there is none
    "name": lambda: nk.jit,  # type: ignore[attr-defined]  # there is none
    "name of a module": lambda: ANY.linalg.nope,
    "import": imports,
    "assignment": sets,
    "limit": lambda: nk.set_cache_limit(0),
    "inside": lambda: staged(lambda x: x.nope)(X),
    "call inside": lambda: staged(lambda _: ANY.tanh())(X),
    "of NumPy": lambda: staged(lambda x: np.ones(3)[np.ones(2)])(X),
    "assertion": lambda: staged(asserts)(X),
}
"""What is an error of Python's."""


@pytest.mark.parametrize("name", OF_PYTHON)
def test_errors_of_python_end_there_too(name: str) -> None:
    with pytest.raises(
        (TypeError, AttributeError, ImportError, ValueError, IndexError, AssertionError)
    ) as caught:
        OF_PYTHON[name]()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    own = [
        file for file in files if f"{os.sep}nnkit{os.sep}" in file or file == tracebacks.__file__
    ]
    assert own == [] and files[0] == __file__
    assert files[-1] in (__file__, "<string>")


def test_mistakes_of_nnkit_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of Python's that nobody raised on purpose, and an assertion, are for a report."""
    for broken in (lambda *_: [][0], _fails):
        monkeypatch.setattr("nnkit.structs._is_struct_class", broken)
        broken.__code__ = broken.__code__.replace(co_filename=tracebacks.__file__)
        with pytest.raises((IndexError, AssertionError)) as caught:
            nk.fields(P)
        assert frames(caught.value)[-2:] == ["fields", broken.__name__]


def _fails(_: object) -> None:
    assert False, "a mistake"  # noqa: B011  # what is tested


def test_a_class_that_cannot_be_a_struct() -> None:
    with pytest.raises(nk.StagingError) as caught:
        declares()
    assert frames(caught.value)[-1] == "declares"


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


CELLS = """
import numpy as np, nnkit as nk
from nnkit import Rep, Tensor1D, f64
@nk.staged
def wrong(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    total = x.sum()
    return nk.concat([x, total])
---
wrong(np.ones(3))
---
wrong(np.ones((3, 3)))
---
Tensor1D(np.ones(2)) @ np.ones(3)
---
Tensor1D(np.ones(2))
"""
SHOWN = [
    ("RankError", [(2, 1), (1, 6)], "Cell In[1]:6"),
    ("RankError", [(3, 1)], "Cell In[3]:1"),
    ("ShapeError", [(4, 1)], "Cell In[4]:1"),
]
"""What each cell raises, its frames as cell and line, and where the message says that it is."""


def without_colors(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_ipython(capsys: pytest.CaptureFixture[str]) -> None:
    shell = InteractiveShell.instance()
    try:
        for cell in CELLS.split("---"):
            shell.run_cell(cell.strip(), store_history=True)
    finally:
        InteractiveShell.clear_instance()
    said = without_colors(capsys.readouterr().out)
    assert said.count("Cell In[") == 8 and "nnkit/" not in said
    assert all(place in said for *_, place in SHOWN)


def test_a_notebook() -> None:
    """Its cells run in a process of their own, which says what a notebook is to show."""
    said: list[dict[str, Any]] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("error", "execute_result"):
            said.append(message["content"])

    kernel = KernelManager(transport="ipc")  # not over the network
    kernel.start_kernel(stderr=subprocess.DEVNULL)
    client = kernel.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        for cell in CELLS.split("---"):
            client.execute_interactive(cell.strip(), timeout=60, output_hook=hear)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    *errors, tensor = said
    for error, (kind, frames, place) in zip(errors, SHOWN, strict=True):
        shown = without_colors("\n".join(error["traceback"]))
        found = re.findall(r"In\[(\d+)\], line (\d+)", shown)
        assert error["ename"] == kind and place in error["evalue"]
        assert [(int(cell), int(line)) for cell, line in found] == frames and "nnkit/" not in shown
    assert "<table>" in tensor["data"]["text/html"]
