"""From the stage of a module to the one that `--stage` asks for."""

from __future__ import annotations

from ..core.ir import Module
from ..core.passes import Pass
from ..core.schedule.target import Target
from ..lowering import STAGES, pipeline_to
from ..optimization import Differentiate
from .command import InputError, load
from .modules import roots
from .optimize import Plan


def steps_to(stage: str, module: Module, plan: Plan) -> list[Pass]:
    """What has to run after the passes of the plan.

    Raises: InputError when the module is beyond the stage.
    """
    here = module.stage.value
    if plan.optimized or any(isinstance(a_pass, Differentiate) for a_pass in plan.passes):
        here = "optimizable"
    if STAGES.index(stage) < STAGES.index(here):
        raise InputError(f"the module is in stage {here} and cannot go back to {stage}")
    first = STAGES.index(here) + 1
    if here == "optimizable" and not plan.optimized:
        first -= 1  # a text of this stage may still have declarations without bodies
    entries = roots(module)
    target = _host() if stage == "schedule" else None
    steps: list[Pass] = []
    for step in STAGES[first : STAGES.index(stage) + 1]:
        steps += pipeline_to(step, entries, level=plan.level, target=target)
    return steps


def _host() -> Target:
    target: Target = load("native").host()
    return target
