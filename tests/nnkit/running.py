"""Runs a staged function twice: as native code, and as raw IR in the evaluator; both must agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkit import Struct
from nnkit.callables import StagedFunction
from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify


def run(function: StagedFunction, *arguments: Any) -> Any:
    """The result as nested lists and numbers."""
    specialization = function._specialization(function._values(arguments))
    module, entry = specialization.module("raw")
    verify(module)
    text = print_module(module)
    read = parse_module(text)
    assert print_module(read) == text
    expected = plain(evaluate(read, entry.name, *map(data, arguments)))
    found = plain(function(*arguments))
    _compare(found, expected)
    return found


def data(value: Any) -> Any:
    """A concrete argument as the evaluator takes it."""
    if isinstance(value, Struct):
        value = value._fields
    if isinstance(value, tuple):
        return tuple(map(data, value))
    return np.asarray(value)


def plain(value: Any) -> Any:
    """A result as lists, tuples and numbers."""
    if isinstance(value, Struct):
        value = value._fields
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return np.asarray(value).tolist()


def _compare(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _compare(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
