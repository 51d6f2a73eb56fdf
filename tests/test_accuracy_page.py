"""`docs/vector-math.md` is what `docs/generate_accuracy.py` writes now, of every function, within its bounds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.accuracy import FUNCTIONS
from tests.accuracy_of_composed import COMPOSED

DOCS = Path(__file__).parent.parent / "docs"
FOUND = json.loads((DOCS / "accuracy.json").read_text())
TYPES = {"f32": np.float32, "f64": np.float64}

sys.path.insert(0, str(DOCS))
from generate_accuracy import PAGE, write_page  # noqa: E402

sys.path.remove(str(DOCS))


def test_the_page_is_what_the_script_writes() -> None:
    assert write_page(FOUND) == PAGE.read_text(), "run python docs/generate_accuracy.py"


@pytest.mark.parametrize("type", TYPES)
def test_what_was_found_is_within_what_is_promised(type: str) -> None:
    for name, row in FUNCTIONS.items():
        bound = row.bound(TYPES[type])
        sampled = FOUND["samples"][type][name]
        of_all = FOUND["floats"].get(name, sampled) if type == "f32" else sampled
        for way in ("fma", "baseline"):
            assert max(sampled[way][0], of_all[way][0]) <= bound, f"{name} {way}"
        limit = bound if type == "f32" else 3
        assert sampled.get("evaluator", [0])[0] <= limit, f"{name} of the evaluator"
    for name, composed in COMPOSED.items():
        assert FOUND["composed"][type][name][0] <= composed.bound(TYPES[type]), name
