"""Laws of calls."""

from __future__ import annotations

import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.passes import DeadCode, Simplify, apply_pass
from nnkit.core.verify import verify
from tests.core.passes.laws import opcodes, parsed

FUNCTIONS = """
func @twice: (i64) -> i64 {
'entry(%x: i64):
    %y = add %x: i64, %x: i64
    return %y: i64
}
func @main: (i64, bool) -> i64 {
'entry(%x: i64, %c: bool):
    %f = literal @twice: (i64) -> i64
    %g = BETWEEN
    %y = apply %g(%x): (i64) -> i64
    return %y: i64
}
func @same: ((i64) -> i64) -> (i64) -> i64 {
'entry(%f: (i64) -> i64):
    return %f: (i64) -> i64
}
"""


@pytest.mark.parametrize(
    ("between", "becomes"),
    [
        ("literal @twice: (i64) -> i64", "apply"),
        # what another function gives back is any function
        ("apply @same(%f): ((i64) -> i64) -> (i64) -> i64", "reference apply apply"),
    ],
)
def test_the_value_of_a_function_is_called_by_its_name(between: str, becomes: str) -> None:
    module = parsed(FUNCTIONS.replace("BETWEEN", between))
    verify(module)
    assert apply_pass(Simplify(), module) == (becomes == "apply")
    apply_pass(DeadCode(), module)
    verify(module)
    assert opcodes(module.functions["main"]).replace("applyValue", "apply") == becomes
    assert evaluate(module, "main", 21, True) == 42
