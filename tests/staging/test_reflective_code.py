"""Functions that read by computed names: right, and told of where they have much looked at."""

from __future__ import annotations

import linecache
import subprocess
import sys
import types
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from weakref import WeakSet

import numpy as np
import pytest

import nnkit as nk
from nnkit import Tensor1D
from nnkit.staging import reflective_code
from nnkit.staging.reflective_code import MOST_WATCHED

X = Tensor1D(np.ones(2))
FILE = "<reflective>"
TEXT = """\
import operator, sys
from nnkit import staged
class Config: pass
config, names = Config(), ["rate"]
config.rate, config.many = 3.0, [object() for _ in range(COUNT)]
get = operator.attrgetter("rate")
def helper(a, name):
    return (a
        * getattr(config, name))  # in a helper
by_helper = staged(lambda a: helper(a, names[0]))
by_helper_again = staged(lambda a: helper(a, "rate") * 1.0)
in_lambda = staged(lambda a: (lambda: a * vars(config)[names[0]])())  # inside
by_object = staged(lambda a: a * get(config))  # no name
by_computed_module = staged(lambda a: a * vars(sys.modules[names[0] + "s"])["config"].rate)  # modules
def matched(a):
    match config:
        case Config(rate=rate):  # pattern
            return a * rate
by_pattern = staged(matched)
by_name = staged(lambda a: a * config.rate)
by_all = staged(lambda a: a * config.rate * float(len(config.many) > 0))
"""
TOLD = {
    "by_helper": ("`getattr`", "# in a helper"),
    "in_lambda": ("`vars`", "# inside"),
    "by_object": ("an object as of `operator.attrgetter`", "# no name"),
    "by_computed_module": ("`vars`", "# modules"),
    "by_pattern": ("`match`", "# pattern"),
}
"""What is told of, and at the end of which line."""


@contextmanager
def reflective_scope() -> Generator[dict[str, Any]]:
    """The functions of `TEXT`, where fifty values are much."""
    module = types.ModuleType("settings")
    made: dict[str, Any] = {"__name__": "__main__", "COUNT": 60}
    sys.modules["settings"] = sys.modules["rates"] = module
    linecache.cache[FILE] = len(TEXT), None, [*map(str, TEXT.splitlines(keepends=True))], FILE
    with mock.patch.multiple(reflective_code, MOST_WATCHED=50, _WARNED=WeakSet()):
        exec(compile(TEXT, FILE, "exec"), made)
        vars(module)["config"] = made["config"]
        yield made
    del sys.modules["settings"], sys.modules["rates"], linecache.cache[FILE]


@pytest.fixture
def scope() -> Iterator[dict[str, Any]]:
    with reflective_scope() as made:
        yield made


def told(call: Any) -> list[tuple[str, int]]:
    """The warnings of a call, and the lines that they are of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(one.category, nk.PerformanceWarning) for one in found)
    return [(str(one.message), one.lineno) for one in found]


def test_what_looks_at_many_values_by_computed_names_says_so_once() -> None:
    """In a process of its own: some ways look at all modules, and those of other tests are many."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.staging.test_reflective_code"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stdout + done.stderr


def check_what_is_told(scope: dict[str, Any]) -> None:
    """Function and line are named, once; what is read is watched as before."""
    lines = TEXT.splitlines()
    for name, (what, at) in TOLD.items():
        ((message, line),) = told(lambda name=name: scope[name](X))
        assert lines[line - 1].endswith(at) and f"  {FILE}:{line}  " in message
        shown = "matched" if name == "by_pattern" else "<lambda>"
        assert message.startswith(f"before each call of {shown}, ")
        assert (
            f" values are looked at: {what} may read any of them" in message and "help: " in message
        )
    scope["config"].rate = 4.0
    for name in (*TOLD, "by_helper_again"):
        assert told(lambda name=name: scope[name](X)) == []
        assert scope[name](X).numpy()[0] == 4.0


def test_what_is_named_or_little_is_not_told_of(scope: dict[str, Any]) -> None:
    """However much it is, if it is named; however it is read, if it is little."""
    assert told(lambda: (scope["by_name"](X), scope["by_all"](X))) == []
    scope["config"].many.clear()
    assert told(lambda: [scope[name](X) for name in ("by_helper", "in_lambda", "by_object")]) == []
    assert MOST_WATCHED == 2000


def test_as_an_error_it_is_one_of_the_call(scope: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(nk.PerformanceWarning, match="`vars` may read any of them"):
            scope["in_lambda"](X)
        assert scope["in_lambda"](X).numpy()[0] == 3.0


if __name__ == "__main__":
    with reflective_scope() as made:
        check_what_is_told(made)
    print("told")
