"""The stages of a compilation, in order.

A text says its stage; `f.ir(stage=…)`, `dlopt --stage` and `dlc --emit` take one.  `core/verify` checks what each
promises, and `core/driver/stages.py` lists the passes that bring a module from one to the next.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias


class Stage(enum.Enum):
    """How far a module has come."""

    RAW = "raw"
    """What staging or a text gives: blocks may branch, derivatives be declared, builtins be names."""
    OPTIMIZABLE = "optimizable"
    """One block per function, derivatives have bodies, all is written out in ops with nests; calls are still calls."""
    OPTIMIZED = "optimized"
    """One function of tensors per entry: calls inlined, structs and tuples taken apart, bodies closed."""
    COMPUTE = "compute"
    """Loop nests and library calls."""
    SCHEDULE = "schedule"
    """Loops, vectors and memory decided for a machine: what is emitted."""

    def steps_to(self, last: Stage) -> tuple[Stage, ...]:
        """The stages after this one up to `last`; none if this one is as far."""
        stages = tuple(Stage)
        return stages[stages.index(self) + 1 : stages.index(last) + 1]

    def has_reached(self, other: Stage) -> bool:
        """Whether this stage is `other` or a later one."""
        return not self.steps_to(other)


Stages: TypeAlias = frozenset[Stage]

LATE: Final = frozenset({Stage.COMPUTE, Stage.SCHEDULE})
"""The stages near the machine, whose ops are few."""

EARLY: Final = frozenset(Stage) - LATE
"""The stages on which differentiation and optimization work."""
