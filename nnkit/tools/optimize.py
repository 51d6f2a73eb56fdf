"""Passes and stages, as `dlopt` is asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.analysis import Analyses
from ..core.errors import InternalError, VerifyError
from ..core.ir import Module, Stage
from ..core.ir.surgery import clone_module
from ..core.passes import Pass, PassRun, Pipeline, run_pipeline
from ..core.text import print_function, print_module
from ..core.types import written
from ..core.verify import verify
from ..optimization import optimizing
from .command import LEVELS, InputError, UsageError, load, print_error
from .passes import PASSES, passes_of
from .statistics import comparison, measure

__all__ = ["PASSES", "Plan", "Reports", "plan_of", "table_of", "transform"]

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
            passes.extend(passes_of(text))
        elif text in LEVELS:
            level = int(text)
            passes.extend(optimizing(level))
        else:
            raise UsageError(f"there is no level -O{text}: the levels are -O0 to -O3")
    return Plan(tuple(passes), stage, 2 if level is None else level, level is not None)


@dataclass(frozen=True)
class Reports:
    """What to say on stderr about passes; `verbose` statistics have every function."""

    changes: bool = False
    times: bool = False
    statistics: bool = False
    verbose: bool = False


def transform(
    module: Module,
    plan: Plan,
    *,
    verified: bool = True,
    verify_each: bool = False,
    reports: Reports = Reports(),
) -> None:
    """Run the plan on `module`; `verified` says that it keeps the rules, and asks whether it still does.

    Raises: InputError when the module is beyond the stage or the passes that are asked for, VerifyError when a
        pass fails on a module that breaks a rule and was not verified.
    """
    pipeline = _pipeline(module, plan)
    before = measure(module) if reports.statistics else None
    texts: Mapping[str, str] = _texts(module) if reports.changes else {}
    analyses = Analyses(module)
    runs: list[PassRun] = []
    for a_pass in pipeline:
        runs += _run(module, a_pass, analyses, verified=verified, verify_each=verify_each)
        if reports.changes:
            old, texts = texts, _texts(module)
            print_error(_differences(a_pass.name, old, texts))
    if reports.times:
        print_error(table_of(runs))
    if before is not None:
        after = measure(module, before.entries)
        print_error(comparison(before, after, by_function=reports.verbose))
    if verified and pipeline:
        try:
            verify(module)
        except VerifyError as error:
            names = ", ".join(a_pass.name for a_pass in pipeline)
            raise InternalError(f"after the passes {names}: {error}") from error


def _run(
    module: Module, a_pass: Pass, analyses: Analyses, *, verified: bool, verify_each: bool
) -> list[PassRun]:
    """Run one pass; if it fails on what nobody verified, that is looked at first."""
    given = None if verified else clone_module(module)
    try:
        return run_pipeline(
            module, [a_pass], verifier=verify, verify=verify_each or None, analyses=analyses
        )
    except Exception as error:
        if given is not None:
            _blame(given, a_pass, error)
        raise


def _blame(given: Module, a_pass: Pass, failure: Exception) -> None:
    try:
        verify(given)
    except VerifyError as error:
        raise VerifyError(f"pass '{a_pass.name}' was given invalid IR: {error}") from failure


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


def _pipeline(module: Module, plan: Plan) -> Pipeline:
    """All passes of the plan for this module: the steps of the stages lie between its own and the one wanted."""
    if plan.passes and module.stage not in _TENSOR_STAGES:
        raise InputError(
            f"the module is in stage {module.stage.value}: passes run in the stages raw and optimizable"
        )
    if plan.stage is None:
        return plan.passes
    return (*plan.passes, *load("stages").steps_to(plan.stage, module, plan))
