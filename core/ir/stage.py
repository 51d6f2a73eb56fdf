"""The stages that a module goes through on its way to code."""

from __future__ import annotations

import enum
from typing import Final, TypeAlias


class Stage(enum.Enum):
    """How far a module has come; see the package's text for what each stage allows."""

    RAW = "raw"
    OPTIMIZABLE = "optimizable"
    COMPUTE = "compute"
    SCHEDULE = "schedule"


Stages: TypeAlias = frozenset[Stage]

LATE: Final = frozenset({Stage.COMPUTE, Stage.SCHEDULE})
"""The stages near the machine, whose ops are few."""

EARLY: Final = frozenset(Stage) - LATE
"""The stages on which differentiation and optimization work."""
