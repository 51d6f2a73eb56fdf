"""Where a NaN comes from, in programs of the IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import NonFiniteError
from nnkit.core.evaluate import evaluate
from nnkit.core.evaluate.non_finite import NonFiniteOrigins, summary
from nnkit.core.text import parse_module


def run(body: str, *arguments: Any, results: str = "f64") -> None:
    parameters = ", ".join(f"%a{k}: f64" for k in range(len(arguments)))
    types = ", ".join(["f64"] * len(arguments))
    text = f'module "m"\nstage raw\nfunc @f: ({types}) -> {results} {{\n\'entry({parameters}):\n{body}\n}}'
    origins = NonFiniteOrigins()
    found = evaluate(parse_module(text), "f", *arguments, observe=origins.observe)
    origins.check(found if isinstance(found, tuple) else [found])


def test_the_first_of_several() -> None:
    body = """
    %x = log %a0: f64
    %y = sqrt %a0: f64
    %z = add %y: f64, %x: f64
    return %z: f64"""
    with pytest.raises(NonFiniteError, match="log makes nan from finite values"):
        run(body, -1.0)
    run(body, 1.0)


def test_arguments_are_not_blamed() -> None:
    body = """
    %x = multiply %a0: f64, %a1: f64
    %y = subtract %x: f64, %x: f64
    return %y: f64"""
    run(body, np.inf, 1.0)
    with pytest.raises(NonFiniteError, match="multiply makes inf"):
        run(body, 1e200, 1e200)


def test_what_goes_through_an_enum_is_of_the_first_origin() -> None:
    text = """module "m"
stage raw
enum $Box { ?full(f64) }
func @f: (f64) -> f64 {
'entry(%a: f64):
    %x = log %a: f64
    %box = literal ?full(%x: f64): $Box
    %y = payload ?full 0 of %box: $Box
    return %y: f64
}"""
    origins = NonFiniteOrigins()
    found = evaluate(parse_module(text), "f", -1.0, observe=origins.observe)
    with pytest.raises(NonFiniteError, match="log makes nan"):
        origins.check([found])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.float64(2.5), " 2.5"),
        (np.array([1.0, 3.0]), " from 1.0 to 3.0"),
        (np.array([[np.nan], [2.0]]), " from 2.0 to 2.0, 1 of 2 elements nan, the first at [0, 0]"),
        (np.array([np.inf, np.nan]), " 1 of 2 elements nan, the first at [1], 1 of 2 elements inf, the first at [0]"),
        (np.zeros(0), ""),
        (np.asarray(3), " 3"),
        (np.arange(3), ""),
    ],
)  # fmt: skip
def test_summaries(data: Any, words: str) -> None:
    assert summary(np.asarray(data)) == words
