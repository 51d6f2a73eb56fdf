"""The public names: found when they are first used, and otherwise like those of any module."""

from __future__ import annotations

import builtins
import inspect
import pickle
import pkgutil
import pydoc
import subprocess
import sys
from typing import Any

import pytest

import nnkit
from nnkit.core import errors

HOMES = nnkit._HOMES  # type: ignore[attr-defined]  # the stub has what users may see
NEVER_MET = {"FuelError"}
"""Errors that no user of the public names can meet: there is no fuel to be given."""


def printed(code: str) -> str:
    """What a new Python process prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not run.stderr
    return run.stdout.strip()


def test_an_import_loads_nothing() -> None:
    held = "{n for n in sys.modules if n.split('.')[0] in ('nnkit', 'numpy')}"
    assert printed(f"import sys, nnkit; print({held})") == "{'nnkit'}"
    loaded = "{'nnkit', 'nnkit.core', 'nnkit.core.errors'}"
    assert printed(f"import sys, nnkit; nnkit.ShapeError; print({held} == {loaded})") == "True"


def test_all_names_load_no_compiler() -> None:
    compiler = (
        "llvmlite",
        "nnkit.jit",
        "nnkit.native_code",
        "nnkit.core.passes",
        "nnkit.core.autodiff",
    )
    code = f"import sys; from nnkit import *; print([m for m in {compiler} if m in sys.modules])"
    assert printed(code) == "[]"


def test_any_name_may_be_the_first() -> None:
    code = f"""
import sys, numpy
for name in {[names.split()[0] for names in HOMES.values()]}:
    for module in [each for each in sys.modules if each.split(".")[0] == "nnkit"]:
        del sys.modules[module]
    getattr(__import__("nnkit"), name)
print("found")
"""
    assert printed(code) == "found"


def test_a_star_import_has_every_name_and_no_other() -> None:
    held: dict[str, Any] = {}
    exec("from nnkit import *", held)
    assert held.keys() - {"__builtins__"} == set(nnkit.__all__)  # type: ignore[attr-defined]  # not in the stub
    assert held.keys() - {"__builtins__"} <= set(dir(nnkit))
    assert not held.keys() & vars(builtins).keys() - {"__builtins__", "__doc__"}
    assert {"abs", "print", "round", "zip"} <= set(dir(nnkit))  # there they are
    assert all(held[name] is getattr(nnkit, name) for name in dir(nnkit) if name in held)


def test_the_names_are_no_modules() -> None:
    """Whose import would bind the module in the place of what users mean."""
    modules = {each.name for each in pkgutil.iter_modules(nnkit.__path__)}
    assert modules & set(dir(nnkit)) >= {"linalg", "nn", "random", "tree", "optim"}
    assert modules & {name for names in HOMES.values() for name in names.split()} == {
        "linalg",
        "nn",
        "random",
        "tree",
        "optim",
    }


def test_what_is_no_name_is_said_to_be_none() -> None:
    with pytest.raises(AttributeError, match="module 'nnkit' has no attribute 'sofmax'"):
        nnkit.sofmax  # type: ignore[attr-defined]  # noqa: B018  # what is tested
    with pytest.raises(ImportError, match="cannot import name 'sofmax' from 'nnkit'"):
        exec("from nnkit import sofmax")


def test_classes_and_functions_are_pickled_by_name() -> None:
    for name in dir(nnkit):
        value = getattr(nnkit, name)
        if name[0] != "_" and (inspect.isclass(value) or inspect.isfunction(value)):
            assert pickle.loads(pickle.dumps(value)) is value, name


def test_help_has_every_name() -> None:
    shown = pydoc.plain(pydoc.render_doc(nnkit))
    missing = [name for names in HOMES.values() for name in names.split() if name not in shown]
    assert not missing


def test_every_error_that_users_meet_has_a_public_name() -> None:
    ours = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, nnkit.NNKitError)
    }
    assert ours - set(HOMES["core.errors"].split()) == NEVER_MET
    assert all(getattr(nnkit, name) is getattr(errors, name) for name in ours - NEVER_MET)
