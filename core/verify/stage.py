"""Rule 22: ops stand in functions, and in the bodies of structured ops, of the stages that they name."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import LATE, NOT_PLACED, Instruction, Stage


def stage_violations(instruction: Instruction, stage: Stage) -> Iterator[str]:
    """Whether `stage` has the op; what stands in the body of a nest has a rule of its own."""
    op = instruction.op
    if stage not in op.stages:
        if stage in LATE:
            yield f"{op.name} has no place in stage {stage.value}"
        else:
            home = next(later for later in Stage if later in op.stages)
            yield f"{op.name} stands in stage {stage.value}; it belongs to stage {home.value}"
    if instruction.placement != NOT_PLACED and stage is not Stage.SCHEDULE:
        yield f"places are said in stage schedule, not in {stage.value}"


def needs_closed_bodies(stage: Stage) -> bool:
    """Whether bodies use nothing from around them in `stage`: code is generated for each by itself."""
    return stage in LATE
