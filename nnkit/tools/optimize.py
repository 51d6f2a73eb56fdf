"""Passes and stages, as `dlopt` is asked for them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import InternalError, VerifyError
from ..core.ir import Module, Stage
from ..core.passes import ALL, Pass, PassRun, Pipeline, run_pipeline
from ..core.schedule.target import Target
from ..core.text import print_module
from ..core.verify import verify
from ..lowering import STAGES, Differentiate, pipeline_to
from .command import InputError, UsageError, load, print_error
from .dlopt import LEVELS
from .modules import roots

PASSES = {a_pass.name: a_pass for a_pass in (*(each() for each in ALL), Differentiate())}
"""Every pass by name, with its options as they are by default."""

_TENSOR_STAGES = (Stage.RAW, Stage.OPTIMIZABLE)


@dataclass(frozen=True)
class Plan:
    """Passes to run first, and the stage to go to then; `optimized` says that a level is among the passes."""

    passes: Pipeline
    stage: str | None
    level: int
    optimized: bool


def plan_of(steps: Sequence[tuple[str, str]], stage: str | None) -> Plan:
    """What options like `("-p", "cse,dce")` and `("-O", "2")` ask for, in their order.

    Raises: UsageError when there is no such pass or level.
    """
    passes: list[Pass] = []
    level = None
    for option, text in steps:
        if option == "-p":
            passes.extend(map(_pass_named, text.split(",")))
        elif text in LEVELS:
            level = int(text)
            passes.extend(pipeline_to("optimizable", (), level=level))
        else:
            raise UsageError(f"there is no level -O{text}: the levels are -O0 to -O3")
    return Plan(tuple(passes), stage, 2 if level is None else level, level is not None)


def transform(
    module: Module,
    plan: Plan,
    *,
    verify_each: bool = False,
    verify_result: bool = True,
    print_changed: bool = False,
    time_passes: bool = False,
) -> None:
    """Run the plan on `module`.

    Raises: InputError when the module is beyond the stage or the passes that are asked for.
    """
    pipeline = _pipeline(module, plan)
    runs: list[PassRun] = []
    for a_pass in pipeline:
        runs += run_pipeline(module, [a_pass], verifier=verify, verify=verify_each or None)
        if print_changed and runs[-1].changed:
            print_error(f"// after pass '{a_pass.name}'\n{print_module(module)}\n")
    if time_passes:
        print_error(table_of(runs))
    if verify_result and pipeline:
        try:
            verify(module)
        except VerifyError as error:
            names = ", ".join(a_pass.name for a_pass in pipeline)
            raise InternalError(f"after the passes {names}: {error}") from error


def table_of(runs: Sequence[PassRun]) -> str:
    """What each pass took."""
    total = sum(run.seconds for run in runs)
    width = max([len(run.name) for run in runs] + [len("total")])
    lines = [f"{'pass':<{width}}  {'ms':>10}  {'%':>5}  changed"]
    for run in runs:
        share = 100 * run.seconds / total if total else 0.0
        changed = "yes" if run.changed else "no"
        lines.append(f"{run.name:<{width}}  {1e3 * run.seconds:>10.3f}  {share:>5.1f}  {changed}")
    lines.append(f"{'total':<{width}}  {1e3 * total:>10.3f}  100.0")
    return "\n".join(lines) + "\n"


def _pass_named(name: str) -> Pass:
    if name in PASSES:
        return PASSES[name]
    near = difflib.get_close_matches(name, PASSES, n=2)
    meant = f", did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UsageError(f"there is no pass {name!r}{meant}\nthe passes are {', '.join(PASSES)}")


def _pipeline(module: Module, plan: Plan) -> Pipeline:
    """All passes of the plan for this module: the steps of the stages lie between its own and the one wanted."""
    if plan.passes and module.stage not in _TENSOR_STAGES:
        raise InputError(
            f"the module is in stage {module.stage.value}: passes run in the stages raw and optimizable"
        )
    pipeline = list(plan.passes)
    if plan.stage is None:
        return pipeline
    here = module.stage.value
    if plan.optimized or any(isinstance(a_pass, Differentiate) for a_pass in plan.passes):
        here = "optimizable"
    if STAGES.index(plan.stage) < STAGES.index(here):
        raise InputError(f"the module is in stage {here} and cannot go back to {plan.stage}")
    first = STAGES.index(here) + 1
    if here == "optimizable" and not plan.optimized:
        first -= 1  # a text of this stage may still have declarations without bodies
    entries = roots(module)
    target = _host() if plan.stage == "schedule" else None
    for step in STAGES[first : STAGES.index(plan.stage) + 1]:
        pipeline += pipeline_to(step, entries, level=plan.level, target=target)
    return pipeline


def _host() -> Target:
    target: Target = load("native").host()
    return target
