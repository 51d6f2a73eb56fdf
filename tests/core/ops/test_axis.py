"""What combines the elements of a batch, before there is one."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.driver.stages import advance
from nnkit.core.errors import UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ops import Combinator
from nnkit.core.ops.axis import AxisReduce
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module

from .program_samples import ROWS, N, Refused, S, Typed
from .samples import boolean

SAMPLES = [
    Typed(AxisReduce(Combinator.ADD, "rows"), (ROWS,), (ROWS,)),
    Typed(AxisReduce(Combinator.MAX, "a name"), (S,), (S,)),
    Typed(AxisReduce(Combinator.MIN, ""), (N,), (N,)),
]
ERRORS = [
    Refused(
        AxisReduce(Combinator.MULTIPLY, "rows"),
        (S,),
        "axisReduce is by add, min, max, not by multiply",
    ),
    Refused(
        AxisReduce(Combinator.ADD, "rows"), (boolean(),), "sum takes float or integer elements"
    ),
]

PROGRAM = """module "m"
stage raw
func @f: (f64) -> f64 {
'entry(%x: f64):
    %y = axisReduce %x: f64 by max over "rows"
    return %y: f64
}
[batch @f along 0 named "rows"]
func @g: (<3 x f64>) -> <3 x f64>
"""


def test_it_means_nothing_outside_of_a_batch() -> None:
    with pytest.raises(UnsupportedError, match='axisReduce over "rows" is run in a batch only'):
        evaluate(parse_module(PROGRAM), "f", 1.0)
    module = parse_module(PROGRAM)
    advance(module, Stage.OPTIMIZABLE)
    np.testing.assert_array_equal(evaluate(module, "g", np.arange(3.0)), [2, 2, 2])
