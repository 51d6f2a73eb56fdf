"""Rules 22 and 30: which ops stand in functions, and in bodies of structured ops, of which stage; and their form."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import NOT_PLACED, Function, Instruction, Stage, Stages
from ..ops.flows import Role, flows_in

_RAW: Stages = frozenset({Stage.RAW})
_CLOSED: Stages = frozenset(stage for stage in Stage if stage.has_reached(Stage.OPTIMIZED))
"""Code is generated for each body by itself; before, values have one name."""


def stage_violations(instruction: Instruction, stage: Stage) -> Iterator[str]:
    """Whether `stage` has the op so; what stands in the body of a nest has a rule of its own."""
    op = instruction.op
    yield from _misplaced(op.name, op.stages_of(instruction), stage)
    if flows_in(instruction, Role.INPUT):
        yield from _misplaced("a body that is given values", _CLOSED, stage)
    if instruction.placement != NOT_PLACED:
        yield from _misplaced("a place", frozenset({Stage.SCHEDULE}), stage)


def form_violations(function: Function, stage: Stage) -> Iterator[str]:
    """Whether a function of `stage` has its body, and one of a single block."""
    if function.primal is not None:
        yield from _misplaced("a declared derivative", _RAW, stage)
    if function.rules:
        yield from _misplaced("a function with rules of its derivatives", _RAW, stage)
    if function.body is not None and len(function.body.blocks) > 1:
        yield from _misplaced(f"a function of {len(function.body.blocks)} blocks", _RAW, stage)


def needs_closed_bodies(stage: Stage) -> bool:
    """Whether bodies use nothing from around them in `stage`."""
    return stage in _CLOSED


def _misplaced(what: str, stages: Stages, stage: Stage) -> Iterator[str]:
    """The one form of what is wrong with a stage."""
    if stage not in stages:
        names = " or ".join(other.value for other in Stage if other in stages)
        yield f"{what} stands in stage {stage.value}; it belongs to stage {names}"
