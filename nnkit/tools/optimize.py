"""Passes and stages, as `dlopt` is asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.analysis import Analyses
from ..core.analysis.call_graph import roots
from ..core.driver.stages import advance, passes_to
from ..core.errors import InternalError, VerifyError
from ..core.ir import Module
from ..core.ir.surgery import clone_module
from ..core.passes import PassRun, Pipeline, run_pipeline
from ..core.stage import Stage
from ..core.text import print_function, print_module
from ..core.types import written
from ..core.verify import verify
from .command import InputError, level_of, load, print_error
from .modules import refuse_return
from .passes import PASSES, passes_of
from .statistics import comparison, measure

__all__ = ["PASSES", "PassPlan", "Reports", "plan_of", "timing_table", "transform"]


@dataclass(frozen=True)
class PassPlan:
    """What to run, in order: passes by name, and the passes of levels by their numbers; then the stage to go to."""

    steps: tuple[Pipeline | int, ...]
    stage: Stage | None

    @property
    def levels(self) -> list[int]:
        return [step for step in self.steps if isinstance(step, int)]


def plan_of(steps: Sequence[tuple[str, str]], stage: str | None) -> PassPlan:
    """What options like `("-p", "cse,dce")` and `("-O", "2")` ask for, in their order.

    Raises: UsageError when there is no such pass or level.
    """
    found: list[Pipeline | int] = []
    for option, text in steps:
        found.append(passes_of(text) if option == "-p" else level_of(text))
    return PassPlan(tuple(found), None if stage is None else Stage(stage))


@dataclass(frozen=True)
class Reports:
    """What to say on stderr about passes; `verbose` statistics have every function."""

    changes: bool = False
    times: bool = False
    statistics: bool = False
    verbose: bool = False


def transform(
    module: Module,
    plan: PassPlan,
    *,
    verified: bool = True,
    verify_each: bool = False,
    reports: Reports = Reports(),
) -> None:
    """Run the plan on `module`; `verified` says that it keeps the rules, and asks whether it still does.

    Raises: InputError when the module is beyond the stage or the passes that are asked for, VerifyError when a
        pass fails on a module that breaks a rule and was not verified.
    """
    if plan.stage is not None:
        refuse_return(Stage.OPTIMIZABLE if plan.levels else module.stage, plan.stage)
    entries = roots(module) if plan.stage else ()
    before = measure(module) if reports.statistics else None
    texts: Mapping[str, str] = _texts(module) if reports.changes else {}
    analyses = Analyses(module)
    runs: list[PassRun] = []

    def run(module: Module, pipeline: Pipeline) -> None:
        nonlocal texts
        for a_pass in pipeline:
            runs.extend(
                run_pipeline(
                    module,
                    [a_pass],
                    verifier=verify,
                    verify=verify_each or None,
                    is_valid=verified,
                    analyses=analyses,
                )
            )
            if reports.changes:
                old, texts = texts, _texts(module)
                print_error(_differences(a_pass.name, old, texts))

    for step in plan.steps:
        if isinstance(step, int):
            _refuse_late(module)
            run(module, passes_to(Stage.OPTIMIZABLE, level=step))
            module.stage = Stage.OPTIMIZABLE
        else:
            for a_pass in step:
                _refuse_late(module)
                run(module, [a_pass])
    if plan.stage is not None:
        kept = [name for name in entries if name in module.functions]
        target = load("native").host_target() if plan.stage is Stage.SCHEDULE else None
        level = plan.levels[-1] if plan.levels else 2
        advance(module, plan.stage, *kept, level=level, target=target, run=run)
    if reports.times:
        print_error(timing_table(runs))
    if before is not None:
        after = measure(module, before.entries)
        print_error(comparison(before, after, by_function=reports.verbose))
    if verified and runs:
        _verify_after(runs, module)


def _verify_after(runs: Sequence[PassRun], module: Module) -> None:
    try:
        verify(module)
    except VerifyError as error:
        names = ", ".join(run.name for run in runs)
        raise InternalError(f"after the passes {names}: {error}") from error


def _texts(module: Module) -> Mapping[str, str]:
    """The text of each function, by its name, and that of everything else, by none."""
    head = clone_module(Module(module.name, module.stage, module.structs, {}, module.enums))
    head.aliases, head.variables = dict(module.aliases), dict(module.variables)
    texts = {name: print_function(function) for name, function in module.functions.items()}
    return {"": print_module(head), **texts}


def _differences(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """What a pass changed: the new text of each function, and of what stands before them."""
    title = f"// after pass '{name}'"
    changed = [text for key, text in new.items() if old.get(key) != text]
    gone = [written("@", key) for key in old if key not in new]
    parts = [f"{title}\n{text}\n" for text in changed]
    return "".join([*parts, *([f"{title}: {', '.join(gone)} removed\n\n"] if gone else [])])


def timing_table(runs: Sequence[PassRun]) -> str:
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


def _refuse_late(module: Module) -> None:
    """Raises: InputError where bodies are closed, which passes would open again: `isolate` may be one before."""
    if module.stage.has_reached(Stage.OPTIMIZED):
        raise InputError(
            f"the module is in stage {module.stage.value}: passes run in the stages raw and optimizable"
        )
