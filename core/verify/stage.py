"""Rules 22 and 32: which ops stand in functions, and in bodies of structured ops, of which stage; and their form."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import LATE, NOT_PLACED, Function, Instruction, Stage
from ..ops import Extract, Insert
from ..types import TensorType


def stage_violations(instruction: Instruction, stage: Stage) -> Iterator[str]:
    """Whether `stage` has the op; what stands in the body of a nest has a rule of its own."""
    op = instruction.op
    is_left = stage is not Stage.RAW and _leads_into_a_tensor(instruction)
    stages = frozenset({Stage.RAW}) if is_left else op.stages
    if stage in LATE and not is_left and stage not in stages and stages != frozenset({Stage.RAW}):
        yield f"{op.name} has no place in stage {stage.value}"
    elif stage not in stages:
        home = next(other for other in Stage if other in stages)
        yield f"{op.name} stands in stage {stage.value}; it belongs to stage {home.value}"
    if instruction.placement != NOT_PLACED and stage is not Stage.SCHEDULE:
        yield f"places are said in stage schedule, not in {stage.value}"


def _leads_into_a_tensor(instruction: Instruction) -> bool:
    """Whether this is an `extract` or `insert` of what has loops of its own, which `expand` writes out."""
    if not isinstance(instruction.op, Extract | Insert):
        return False
    x = instruction.operands[-1]
    return isinstance(Extract(instruction.op.keys[:-1]).infer(x.type), TensorType)


def form_violations(function: Function, stage: Stage) -> Iterator[str]:
    """Whether a function of `stage` has its body, and one of a single block."""
    if stage is Stage.RAW:
        return
    if function.primal is not None:
        yield f"is declared as a derivative in stage {stage.value}; only in stage raw it has no body"
    if function.body is not None and len(function.body.blocks) > 1:
        yield f"has {len(function.body.blocks)} blocks in stage {stage.value}; only in stage raw they branch"


def needs_closed_bodies(stage: Stage) -> bool:
    """Whether bodies use nothing from around them in `stage`: code is generated for each by itself."""
    return stage.has_reached(Stage.OPTIMIZED)
