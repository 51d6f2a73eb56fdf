"""Elements written out: every key of every shape of aggregate, against the evaluator's own reading of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.expand import Expand
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from tests.core.autodiff.building import differentiate

X = (
    np.arange(24.0).reshape(2, 3, 4),
    (np.float64(7.0), np.arange(3.0)),
    (np.arange(2.0), np.arange(2.0, 4.0)),
)
HEAD = """module "m"
stage raw
struct $S { #a: <2 x 3 x 4 x f64>, #b: (f64, <3 x f64>), #c: [2 x <2 x f64>] }
"""
ROWS = [
    ("#a", "<2 x 3 x 4 x f64>"), ("#a, 1", "<3 x 4 x f64>"), ("#a, 0, 2", "<4 x f64>"),
    ("#a, 1, 0, 3", "f64"), ("#b, 0", "f64"), ("#b, 1", "<3 x f64>"), ("#b, 1, 2", "f64"),
    ("#c, 1", "<2 x f64>"), ("#c, 0, 1", "f64"), ("#b", "(f64, <3 x f64>)"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "type"), ROWS)
def test_elements_written_out_are_the_same(keys: str, type: str) -> None:
    text = f"""{HEAD}
    func @get: ($S) -> {type} {{
    'entry(%x: $S):
        %y = extract {keys} from %x: $S
        return %y: {type}
    }}
    func @put: ($S, {type}) -> $S {{
    'entry(%x: $S, %e: {type}):
        %y = insert %e: {type} to %x: $S at {keys}
        return %y: $S
    }}"""
    before, after = parse_module(text), parse_module(text)
    apply_pass(Expand(), after)
    verify(after)
    assert not apply_pass(Expand(), after)
    ops = [i.op.name for f in after.functions.values() for i in walk(f.body)]  # type: ignore[arg-type]
    assert "insert" not in ops
    element = scaled(evaluate(before, "get", X))
    assert same(evaluate(after, "get", X), evaluate(before, "get", X))
    assert same(evaluate(after, "put", X, element), evaluate(before, "put", X, element))


def scaled(data: Any) -> Any:
    return tuple(map(scaled, data)) if isinstance(data, tuple) else data * -2.0


def same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple):
        return all(same(*pair) for pair in zip(left, right, strict=True))
    return bool(np.array_equal(left, right)) and np.shape(left) == np.shape(right)


def test_rows_have_derivatives() -> None:
    module = parse_module("""module "m"
    stage raw
    func @f: (<3 x f64>) -> f64 {
    'entry(%x: <3 x f64>):
        %a = extract 1 from %x: <3 x f64>
        %s = square %a: f64
        %y = insert %s: f64 to %x: <3 x f64> at 0
        %r = reduce %y: <3 x f64> by multiply along 0
        return %r: f64
    }
    [gradient @f]
    func @df: (<3 x f64>) -> <3 x f64>
    """)
    apply_pass(Expand(), module)
    differentiate(module)
    # y = x1²·x1·x2
    found = evaluate(module, "df", np.array([5.0, 2.0, 3.0]))
    np.testing.assert_array_equal(found, [0.0, 36.0, 8.0])
