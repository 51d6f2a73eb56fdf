"""Derivatives of what lies in memory: both modes, in both orders, of random programs; and what is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.driver.stages import advance
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

from .memory_programs import memory_programs
from .test_reverse_control_flow import compiled

LEVELS = (0, 1, 2, 3)

FIRST = """
[gradient @main wrt 0, 1]
func @reverse: (f64, f64, i64) -> (f64, f64)
[tangent @main wrt 0, 1]
func @forward: (f64, f64, i64, f64, f64) -> f64
"""

SECOND = """
[gradient @reverse from 0 wrt 0, 1]
func @reverse_of_reverse: (f64, f64, i64) -> (f64, f64)
[tangent @reverse from 0 wrt 0, 1]
func @forward_of_reverse: (f64, f64, i64, f64, f64) -> f64
[gradient @forward wrt 0, 1]
func @reverse_of_forward: (f64, f64, i64, f64, f64) -> (f64, f64)
"""

relaxed = settings(suppress_health_check=[HealthCheck.too_slow])


def differentiated(text: str, level: int = 2) -> Module:
    module = parse_module(text)
    advance(module, Stage.OPTIMIZABLE, level=level)
    verify(module)
    return module


def difference(module: Module, name: str, x: float, y: float, k: int) -> list[float]:
    """The slopes of the first result by x and y."""
    step = 1e-5

    def value(x: float, y: float) -> float:
        found = evaluate(module, name, x, y, k)
        return float(found[0] if isinstance(found, tuple) else found)

    return [
        (value(x + step, y) - value(x - step, y)) / (2 * step),
        (value(x, y + step) - value(x, y - step)) / (2 * step),
    ]


def close(found: object, expected: object, tolerance: float = 1e-9) -> None:
    size = 1 + np.max(np.abs(np.asarray(expected)))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=0, atol=tolerance * size)


@settings(relaxed, max_examples=settings().max_examples)
@given(memory_programs(), st.sampled_from(LEVELS), st.integers(0, 2))
def test_forward_is_reverse_is_the_difference(text: str, level: int, k: int) -> None:
    module = differentiated(text + FIRST, level)
    at = (0.7, -0.4, k)
    gradient = np.asarray(evaluate(module, "reverse", *at))
    close(gradient, difference(module, "main", *at), 1e-5)
    tangents = [evaluate(module, "forward", *at, *unit) for unit in ((1.0, 0.0), (0.0, 1.0))]
    close(gradient, tangents)


@settings(relaxed, max_examples=settings().max_examples // 2)
@given(memory_programs(), st.integers(0, 2))
def test_second_derivatives(text: str, k: int) -> None:
    module = differentiated(text + FIRST + SECOND)
    at = (0.7, -0.4, k)
    units = ((1.0, 0.0), (0.0, 1.0))
    row = evaluate(module, "reverse_of_reverse", *at)
    close(row, difference(module, "reverse", *at), 1e-4)
    close(row, [evaluate(module, "forward_of_reverse", *at, *unit) for unit in units])
    close(row, evaluate(module, "reverse_of_forward", *at, 1.0, 0.0))
