"""`docs/schedule.md` is what `docs/generate_schedule.py` writes now, and every rewrite in it is explained."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "schedule.md"
sys.path.insert(0, str(ROOT / "docs"))

from generate_schedule import SAYS, recorded, render  # noqa: E402


def test_the_page_is_up_to_date_and_ends_with_vectors_in_registers() -> None:
    assert render() == PAGE.read_text(), "run python docs/generate_schedule.py"
    _, steps, scheduled = recorded()
    names = [name for name, _ in steps]
    assert names[0] == "build_product" and names[-1] == "shorten_live_ranges"
    assert {"split", "vectorise", "unroll_and_jam"} <= {*names} <= SAYS.keys()
    text = steps[-1][1]
    assert text.count("fma") > steps[0][1].count("fma") == 1
    assert "carrying" in text and "<8 x f32>" in text and "tanh" in text
    assert " loops " not in scheduled
