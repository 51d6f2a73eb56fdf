"""The tables of errors in `docs/semantics.md` have every function of floats, and nothing above what is promised."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.accuracy import FUNCTIONS
from tests.rows import each

PAGE = Path(__file__).parent.parent / "docs" / "semantics.md"
TYPES = {"f32": np.float32, "f64": np.float64}


def tables() -> dict[str, dict[str, list[str]]]:
    """The cells behind each name, by element type."""
    part = PAGE.read_text().split("<!-- errors: written by")[1].split("<!-- end of errors")[0]
    found: dict[str, dict[str, list[str]]] = {}
    for table in re.split(r"\n\n+", part.split("-->", 1)[1].strip()):
        head, _, *lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
        found[head[0]] = {name: cells for name, *cells in lines}
    return found


@pytest.mark.parametrize("type", TYPES)
def test_the_tables_have_every_function_and_type(type: str) -> None:
    assert list(tables()[type]) == list(FUNCTIONS), "run python docs/generate_accuracy.py"


@each("type", TYPES)
@each("name", FUNCTIONS)
def test_what_was_found_is_within_what_is_promised(name: str, type: str) -> None:
    bound, fma, _, baseline, _, *evaluator = tables()[type][name]
    assert float(bound) == FUNCTIONS[name].bound(TYPES[type])
    assert max(float(fma), float(baseline)) <= float(bound)
    limit = float(bound) if type == "f32" else 3
    assert not evaluator or float(evaluator[0].strip("| ") or 0) <= limit
