"""The order of stages."""

from __future__ import annotations

from nnkit.core.stage import Stage


def test_stages_are_in_order() -> None:
    stages = list(Stage)
    for number, stage in enumerate(stages):
        for other_number, other in enumerate(stages):
            assert stage.steps_to(other) == tuple(stages[number + 1 : other_number + 1])
            assert stage.has_reached(other) == (number >= other_number)
