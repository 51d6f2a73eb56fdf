"""Runs a function of a module: by the evaluator, as compiled code, or both to compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.analysis.call_graph import reachable
from ..core.driver.differentiate import Differentiate
from ..core.driver.stages import DIFFERENTIABLE
from ..core.errors import NNKitError, UnsupportedError
from ..core.evaluate import evaluate
from ..core.ir import Extern, Function, Module
from ..core.ir.surgery import clone_module
from ..core.lazy_dataclass import dataclass
from ..core.location import located
from ..core.passes.dead_functions import DeadFunctions
from ..core.passes.flatten import Flatten
from ..core.passes.pipeline import run_pipeline
from ..core.stage import Stage
from ..core.types import written
from ..core.verify import verify
from .agreement import Gap, largest_gap
from .arguments import ParsedCall, parse_call
from .command import load
from .modules import refuse_huge
from .results import print_value


class Difference(NNKitError):
    """The evaluator and compiled code give different results."""


@dataclass(frozen=True)
class CallReport:
    """What a call returned, as a literal, and how far both runs of it were apart."""

    text: str
    gap: Gap | None


def run_call(
    module: Module,
    text: str,
    runner: str,
    *,
    tolerance: float | None = None,
    verified: bool = True,
) -> CallReport:
    """What a call returns; `runner` is `evaluator`, `jit` or `both`.

    Only what the call needs is looked at.  Derivatives among it get their bodies in a copy of the module, where
    blocks and memory are brought into the form that can be differentiated.
    Nothing runs unverified, as code made of invalid IR could do anything: what is not `verified` is now.
    Raises: ParseError when the call is written wrongly, VerifyError, Difference when both are asked for and differ by
        more than `tolerance` (see `agreement`).
    """
    call = parse_call(module, text)
    module = _needed(module, call, verified=verified)
    name, type = call.function.name, call.function.type
    result = type.result
    found: dict[str, Any] = {}
    if runner != "jit":
        found["evaluator"] = evaluate(module, name, *call.arguments, type=type)
    if runner != "evaluator":
        run = load("native").run
        found["jit"] = run(clone_module(module), name, type, call.arguments)
    gap = None
    if len(found) == 2:
        gap = largest_gap(result, found["evaluator"], found["jit"], tolerance)
        if gap is not None and not gap.is_allowed:
            lines = [f"  {name}: {print_value(result, value)}" for name, value in found.items()]
            head = f"{text}: the evaluator and compiled code differ: {gap}"
            raise Difference("\n".join([head, *lines]))
    return CallReport(print_value(result, next(iter(found.values()))), gap)


def drop_unneeded_derivatives(module: Module, texts: Iterable[str]) -> None:
    """Remove declared derivatives that none of the calls needs, and the functions that need such a derivative.

    Before passes: one that cannot be made is no obstacle to the calls.  Other functions stay, as options of
    passes may name them.
    Raises: ParseError when a call is written wrongly.
    """
    if module.stage is not Stage.RAW:
        return
    needed: set[str] = set()
    for text in texts:
        call = parse_call(module, text)
        needed |= reachable(module, (call.function.name, *call.functions))
    unneeded = [name for name in module.functions if name not in needed]
    derivatives = {name for name in unneeded if module.functions[name].primal is not None}
    dropped = [name for name in unneeded if not derivatives.isdisjoint(reachable(module, (name,)))]
    for name in dropped:
        del module.functions[name]


def _needed(module: Module, call: ParsedCall, *, verified: bool) -> Module:
    """The module with what the call needs, derivatives with bodies; verified in the end."""
    roots = (call.function.name, *call.functions)
    names = reachable(module, roots)
    functions = [function for name, function in module.functions.items() if name in names]
    _refuse_extern(functions)
    refuse_huge(functions)
    is_early = not module.stage.has_reached(Stage.OPTIMIZED)
    if is_early:
        module = clone_module(module)
        run_pipeline(module, (DeadFunctions(roots=roots),))
    if not verified:
        verify(module)
    if is_early and any(function.primal is not None for function in functions):
        run_pipeline(module, (*DIFFERENTIABLE, Flatten(), Differentiate(laws=False)))
        refuse_huge(module.functions.values())
    return module


def _refuse_extern(functions: Iterable[Function]) -> None:
    """Raises: UnsupportedError for a function defined elsewhere: what this process has under its name is another."""
    for function in functions:
        if isinstance(function.declaration, Extern):
            raise located(
                UnsupportedError(
                    f"{written('@', function.name)} is defined elsewhere, and the call needs it: link it with "
                    "what dlc makes of the module, or pass it to nnkit.core.evaluate from Python"
                ),
                function.location,
            )
