"""What combines: every combinator in every form, and scans along several axes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import ParseError
from nnkit.core.evaluate import evaluate
from nnkit.core.ops import ORDERED, Combinator
from nnkit.core.ops.builtin import BUILTINS
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F64, TensorType
from nnkit.core.verify import verify

FUNCTION = """
func @mixed: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    %a = multiply %total: f64, 0.5: f64
    %b = subtract %a: f64, %x: f64
    return %b: f64
}
"""
MEANINGS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    'builtin "min"': np.minimum,
    'builtin "max"': np.maximum,
    "subtract": np.subtract,
    "divide": np.divide,
    "truncateDivide": lambda u, v: np.trunc(u / v),
    "floorDivide": lambda u, v: np.floor(u / v),
    "modulo": np.mod,
    "power": np.power,
    "@mixed": lambda u, v: u * 0.5 - v,
}
"""What combines numbers, and how it is done in NumPy."""


def run(line: str, result: TensorType, x: np.ndarray[Any, Any]) -> Any:
    """What the line makes of %x, printed and read back first."""
    text = f"""module "m"
{FUNCTION}
func @main: ({TensorType(x.shape, F64)}) -> {result} {{
'entry(%x: {TensorType(x.shape, F64)}):
    %y = {line}
    return %y: {result}
}}
"""
    module = parse_module(text)
    verify(module)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    return evaluate(parse_module(printed), "main", x)


def test_every_operation_is_here() -> None:
    numeric = {str(combinator) for combinator in Combinator if not combinator.is_logical}
    binary = {f'builtin "{name}"' for name, b in BUILTINS.items() if 2 in b.counts}
    assert set(MEANINGS) == {*numeric, *ORDERED, *binary, "@mixed"}


@pytest.mark.parametrize("init", ["", " init 1.5: f64"], ids=["", "init"])
@pytest.mark.parametrize("by", MEANINGS)
def test_elements_are_combined_in_order(by: str, init: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3))
    elements = [*([np.float64(1.5)] if init else []), *x.ravel()]
    running = [*itertools.accumulate(elements, MEANINGS[by])]
    wanted = np.reshape(running[-x.size :], x.shape)
    type = TensorType(x.shape, F64)
    scalar = type.with_shape(())
    for axes in ("0, 1", "(1, 0)"):
        found = run(f"reduce %x: {type} by {by}{init} along {axes}", scalar, x)
        np.testing.assert_allclose(found, running[-1], rtol=1e-14)
        found = run(f"scan %x: {type} by {by}{init} along {axes}", type, x)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    if init:
        line = f"reduceWindow %x: {type} by {by}{init} dims 2, 3"
        found = run(line, TensorType((1, 1), F64), x)
        np.testing.assert_allclose(found, [[running[-1]]], rtol=1e-14)


@given(st.data())
def test_a_scan_ends_with_the_reduction(data: st.DataObject) -> None:
    """In reverse it begins with it; an exclusive scan is one element behind."""
    shape = tuple(data.draw(st.lists(st.integers(1, 3), max_size=4)))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    by = data.draw(st.sampled_from([*MEANINGS]))
    x = np.random.default_rng(len(shape)).uniform(0.5, 2, shape)
    type = TensorType(shape, F64)
    kept = type.with_shape(n for axis, n in enumerate(shape) if axis not in axes)
    along = f"by {by} init 2: f64 along ({', '.join(map(str, axes))})"
    order = (*axes, *(axis for axis in range(len(shape)) if axis not in axes))

    def rows(scanned: Any) -> Any:
        return np.transpose(scanned, order).reshape(-1, *kept.shape)

    whole = rows(run(f"scan %x: {type} {along}", type, x))
    np.testing.assert_allclose(whole[-1], run(f"reduce %x: {type} {along}", kept, x), rtol=1e-14)
    before = rows(run(f"scan %x: {type} {along} exclusive true", type, x))
    np.testing.assert_allclose(before[1:], whole[:-1], rtol=1e-14)
    flipped = np.flip(x, axes)
    backwards = run(f"scan %x: {type} {along} reverse true", type, flipped)
    np.testing.assert_allclose(rows(np.flip(backwards, axes)), whole, rtol=1e-14)


@pytest.mark.parametrize(
    "line",
    [
        "reduce %x: <2 x 3 x f64> by {} init 2: f64 along 1",
        "scan %x: <2 x 3 x f64> by {} init 2: f64 along 1 reverse true exclusive true",
        "reduceWindow %x: <2 x 3 x f64> by {} init 2: f64 dims 1, 2 strides 1, 2 padding (0, 0), (0, 1)",
    ],
    ids=lambda line: line.split()[0],
)
@pytest.mark.parametrize("by", ["add", "divide", "@mixed"])
def test_clauses_come_in_any_order(line: str, by: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3))
    head, *clauses = re.split(r" (?=init|along|reverse|exclusive|dims|strides|padding)", line)
    type = TensorType({"reduce": (2,), "scan": (2, 3)}.get(line.split()[0], (2, 2)), F64)
    found = [
        run(" ".join((head, *order)).format(by), type, x)
        for order in (clauses, clauses[::-1], [*clauses[1:], clauses[0]])
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


ERRORS = [
    ("reduce %x: <2 x 3 x f64> by negate along 0", "was expected, not 'negate': operations are add, multiply,"),
    ('reduce %x: <2 x 3 x f64> by builtin "sum" along 0', 'no operation to combine with is called \'"sum"\''),
    ("scan %x: <2 x 3 x f64> by add along 0, 2", "scan: axis 2 is out of range for <2 x 3 x f64>, which has rank 2"),
    ("scan %x: <2 x 3 x f64> by subtract along 1, 1", "scan: an axis is named twice in [1, 1]"),
    ("scan %x: <2 x 3 x f64> by subtract along 1 exclusive true", "an exclusive scan by subtract needs an init"),
    ("reduceWindow %x: <2 x 3 x f64> by divide dims 1, 1", "reduceWindow by divide needs an init"),
    ("reduceWindow %x: <2 x 3 x f64> by max init 1: f64", "'dims' was expected, not 'return'"),
    ("scan %x: <2 x 3 x f64> by max init 1: f64 reverse true", "'along' was expected, not 'return'"),
    ("reduce %x: <2 x 3 x f64> by max along 0 along 1", "there is no instruction 'along'"),
    ("scan %t: (f32, f32) by @mixed along 0, 1", "scan takes a tensor, not a (f32, f32)"),
    ("reduce %x: <2 x 3 x f64> by divide init 1: f32 along 0", "reduce of <2 x 3 x f64> starts from a f64, not a f32"),
    ("scan %e: <0 x bool> by power along 0", "power takes float or integer elements, not bool"),
    ("scan %t: (f32, f32) by add along 0, 1", "scan takes tensors; %t is a (f32, f32)"),
    ("reduce %e: <0 x bool> by @mixed along 0", "combines by a (bool, bool) -> bool, not a (f64, f64) -> f64"),
    ("reduce %n: <0 x f64> by subtract along 0", "reduce of no elements of <0 x f64> by subtract needs an init"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), ERRORS)
def test_misuse_is_explained(line: str, message: str) -> None:
    text = f"""module "m"
{FUNCTION}
func @main: (<2 x 3 x f64>, <0 x bool>, (f32, f32), <0 x f64>) -> void {{
'entry(%x: <2 x 3 x f64>, %e: <0 x bool>, %t: (f32, f32), %n: <0 x f64>):
    %y = {line}
    return
}}
"""
    with pytest.raises(ParseError) as failed:
        parse_module(text)
    assert message in str(failed.value)
    assert line in str(failed.value) or "was expected, not 'return'" in message
