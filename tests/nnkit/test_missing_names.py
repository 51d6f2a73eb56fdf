"""What is said of names that do not exist: what to write instead, which exists."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, f32
from nnkit import equivalent_methods as methods  # type: ignore[attr-defined]  # not in the stub
from nnkit import equivalents as tables  # type: ignore[attr-defined]  # not in the stub
from nnkit.missing_names import rows


class Params(Struct):
    w: Field[Tensor1D[f32]]


@nk.staged
def double(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return x + x


DATA = Tensor1D(np.ones(3, np.float32))
PARAMS = Params(DATA)
TABLES = (tables.OF_PACKAGE, tables.OF_RANDOM, methods.OF_REP, methods.OF_TENSOR, methods.OF_FUNCTION)  # fmt: skip
OWNERS: dict[str, Any] = {"nk": nk, "x": Rep, "xs": Rep, "t": Tensor1D, "f": type(double)}
"""What the first part of a dotted name stands for in the tables."""


def test_what_the_tables_say_exists() -> None:
    missing: set[str] = set()
    for table in TABLES:
        for ours, why in rows(table).values():
            assert ours and why and not why.endswith(".")
            for dotted in re.findall(r"(?<![\w.])(?:nk|x|xs|t|f)(?:\.[A-Za-z_]\w*)+", ours):
                owner, *parts = dotted.split(".")
                value = OWNERS[owner]
                for part in parts:
                    if not hasattr(value, part):
                        missing.add(dotted)
                        break
                    value = getattr(value, part)
    assert not missing
    assert sum(len(rows(table)) for table in TABLES) > 600


def asked(function: Callable[..., Any], *types: Any) -> Callable[[], Any]:
    """A staged function that asks a Rep for something."""
    given = {Tensor1D[f32]: DATA, Params: PARAMS}
    return lambda: nk.fn(*types)(function)(*(given[each] for each in types))


V = Tensor1D[f32]
NK: Any = nk
MISSING: dict[str, tuple[Callable[[], Any], str]] = {
    "jax": (lambda: NK.jit, "module 'nnkit' has no attribute 'jit'\n  help: `@nk.staged`: "),
    "autograd": (lambda: NK.grad, "`nk.gradient(of=f, wrt=0)`"),
    "layers": (lambda: NK.Linear, "`nk.nn.linear(p[P.layer], x)`: P.layer is a Field[nn.Linear]"),
    "layer by another name": (lambda: NK.nn.Dense, "`nk.nn.linear(p[P.layer], x)`"),
    "no tape": (lambda: NK.no_grad, "`nk.stop_gradient(x)`: nothing is recorded at run time"),
    "comparison": (lambda: NK.less, "`x > y`: an operator"),
    "numbers": (lambda: NK.pi, "`math.pi`: a number of Python's"),
    "elements": (lambda: NK.float32, "`nk.f32`"),
    "tensor": (lambda: NK.tensor([1.0]), "`nk.Tensor2D(array)`"),
    "composition": (lambda: NK.addmm, "`x @ y + z`: an expression"),
    "spelling": (lambda: NK.sofmax, "did you mean `nk.softmax`?"),
    "capitals": (lambda: NK.logSoftmax, "did you mean `nk.log_softmax`?"),
    "method": (lambda: NK.set, "`x.set(...)`: a method of staged values"),
    "nothing": (lambda: NK.zzz, "module 'nnkit' has no attribute 'zzz'"),
    "private": (lambda: NK._sofmax, "module 'nnkit' has no attribute '_sofmax'"),
    "in a module": (lambda: NK.cholesky, "`nk.linalg.cholesky`: in nk.linalg"),
    "module's spelling": (lambda: NK.linalg.slove, "did you mean `nk.linalg.solve`?"),
    "module's name elsewhere": (lambda: NK.tree.tanh, "`nk.tanh`: in nnkit itself"),
    "random": (lambda: NK.random.PRNGKey(0), "`nk.random.key(0)`: a key is made of a seed"),
    "not random": (lambda: NK.random.tanh, "`nk.tanh`: in nnkit itself"),
    "random spelling": (lambda: NK.random.norml, "did you mean `nk.random.normal`?"),
    "view": (asked(lambda x: x.view(3), V), "a Rep has no 'view'\n  help: `x.reshape(2, -1)`"),
    "backward": (asked(lambda x: x.backward(), V), "`nk.gradient(of=f, wrt=0)`"),
    "detach": (asked(lambda x: x.detach(), V), "`nk.stop_gradient(x)`"),
    "function": (asked(lambda x: x.tanh(), V), "`nk.tanh(x)`: a function"),
    "method spelling": (asked(lambda x: x.reshap(3), V), "did you mean `x.reshape`?"),
    "field": (asked(lambda p: p.w, Params), "`p[Params.w]` for p.w"),
    "tensor's tape": (lambda: DATA.backward(), "`nk.gradient(of=f, wrt=0)`"),  # type: ignore[attr-defined]
    "tensor's layout": (lambda: DATA.strides, "`t.numpy()`: the array has it"),  # type: ignore[attr-defined]
    "tensor's transpose": (lambda: DATA.T, "`nk.Tensor2D(t.numpy().T)`"),  # type: ignore[attr-defined]
    "tensor's sum": (lambda: DATA.sum(), "`t.numpy().sum()`, or `x.sum()`"),  # type: ignore[attr-defined]
    "function of a tensor": (lambda: DATA.softmax(), "`nk.softmax(t)`: a function"),  # type: ignore[attr-defined]
    "tensor's spelling": (lambda: DATA.shap, "did you mean `t.shape`?"),  # type: ignore[attr-defined]
    "lowered": (lambda: double.lower(DATA), "`f.ir(x)`: it prints the program"),  # type: ignore[attr-defined]
    "function's spelling": (lambda: double.irr(DATA), "did you mean `f.ir`?"),  # type: ignore[attr-defined]
}


def test_a_missing_name_has_a_remedy() -> None:
    double(DATA)  # the compiler is loaded, and is no attribute
    for what, (ask, words) in MISSING.items():
        with pytest.raises(AttributeError) as raised:
            ask()
        assert words in str(raised.value), what


def test_dir_has_what_users_need() -> None:
    assert {"staged", "max", "f32", "nn"} <= {*dir(nk)} and not {"losses", "sys"} & {*dir(nk)}
    for module in (nk.linalg, nk.nn, nk.optim, nk.random, nk.tree):
        assert sorted(dir(module)) == sorted(getattr(module, "__all__"))  # noqa: B009  # not in the stub


def test_a_private_name_is_not_looked_up() -> None:
    for value in (DATA, double, nk.const(DATA), nk):
        with pytest.raises(AttributeError) as raised:
            getattr(value, "_shap")  # noqa: B009  # what is tested
        assert "help" not in str(raised.value)


def test_an_import_of_a_missing_name_has_the_remedy_too() -> None:
    words = "cannot import name 'grad' from 'nnkit'\n  help: `nk.gradient(of=f, wrt=0)`"
    with pytest.raises(ImportError, match=re.escape(words)):
        exec("from nnkit import grad")


IMPORTS = """
import importlib, sys
def wanted():
    try:
        from nnkit import jit
    except ImportError as error:
        return "staged" in str(error)
before = wanted(), "nnkit.jit" in sys.modules
import nnkit, numpy
nnkit.staged(lambda x: x * 2.0)(numpy.ones(2))
import nnkit.jit as package
import nnkit.jit.llvm as inside
from nnkit.jit import llvm
print(before, wanted(), hasattr(nnkit, "jit"), package is importlib.import_module("nnkit.jit"), inside is llvm)
"""


def test_the_subpackage_called_jit_is_no_public_name() -> None:
    """Before and after it has been imported, which Python binds names for."""
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert run.stdout == "(True, False) True False True True\n", run.stderr
