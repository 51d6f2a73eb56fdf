"""Differentiation as a pass: what it says that it changed."""

from __future__ import annotations

from nnkit.core.driver.differentiate import Differentiate
from nnkit.core.driver.stages import DIFFERENTIABLE
from nnkit.core.passes import run_pipeline
from tests.core.driver.programs import IN_MEMORY
from tests.core.passes.laws import parsed


def test_differentiation_says_what_it_changed() -> None:
    module = parsed("""func @f: (f64) -> f64 {
    'entry(%x: f64):
        %y = stopGradient %x: f64
        return %y: f64
    }""")
    changed = [run_pipeline(module, [Differentiate()])[0].changed for _ in range(2)]
    assert changed == [True, False]
    raw = parsed(IN_MEMORY)
    changed = [run.changed for run in run_pipeline(raw, [*DIFFERENTIABLE, *[Differentiate()] * 2])]
    assert changed[-2:] == [True, False]
