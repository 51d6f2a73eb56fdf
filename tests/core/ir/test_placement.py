"""Places as they are printed."""

from __future__ import annotations

import pytest

from nnkit.core.ir.placement import NOT_PLACED, Placement, arena, output, register


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (NOT_PLACED, ""),
        (Placement((output(0), register(2))), "into output 0, register 2"),
        (
            Placement((output(0),), (arena(64), arena(128))),
            "into output 0 scratch arena 64, arena 128",
        ),
        (Placement(frame=640), "frame 640"),
        (Placement((arena(0),), frame=64), "into arena 0 frame 64"),
    ],
)
def test_a_placement_in_words(placement: Placement, text: str) -> None:
    assert str(placement) == text
