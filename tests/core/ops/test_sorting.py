"""Sorting: samples for the laws, then what is stable."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core.errors import RankError
from nnkit.core.ops import ArgSort

from .samples import SPECIAL, ErrorSample, Sample, boolean, f64, i32, i64

SAMPLES = [
    Sample(ArgSort(0), (f64(7),), numpy=lambda x: np.argsort(x, 0, kind="stable")),
    Sample(ArgSort(0, descending=True), (f64(7),), numpy=lambda x: np.argsort(-x, 0, kind="stable")),
    *(
        Sample(ArgSort(axis), (f64(3, 4, 2),), numpy=lambda x, axis=axis: np.argsort(x, axis, kind="stable"))
        for axis in range(3)
    ),
    Sample(ArgSort(1, descending=True), (i32(2, 9),), numpy=lambda x: np.argsort(-x, 1, kind="stable")),
    Sample(ArgSort(0), (i64(5),), ([0, -(2**63), 2**63 - 1, -1, 0],)),
    *(Sample(ArgSort(0, way), (boolean(6),)) for way in (False, True)),
    *(Sample(ArgSort(0, way), (f64(14),), (SPECIAL + SPECIAL[::-1],)) for way in (False, True)),
    *(Sample(ArgSort(0), type) for type in ((f64(1),), (f64(0),), (f64(0, 2),), (f64(1, 3),))),
    Sample(ArgSort(0), (f64(3, 0),)),
    Sample(ArgSort(0), (i32(200),)),
]  # fmt: skip
ERRORS = [
    ErrorSample(ArgSort(1), (f64(3),), "axis 1 is out of range for f64[3]", RankError),
    ErrorSample(ArgSort(0), (f64(),), "axis 0 is out of range for f64[]", RankError),
]


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_stay_in_order(descending: bool) -> None:
    x = np.array([math.nan, 0.0, 1.0, -0.0, -math.nan, 0.0])
    found = ArgSort(0, descending).evaluate(x).tolist()
    assert found == ([0, 4, 2, 1, 3, 5] if descending else [1, 3, 5, 2, 0, 4])
