"""First and second derivatives of an elementwise function in every mode, as evaluated and as compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from nnkit import staged
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.driver.stages import advance
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, GradientOf, Module, TangentOf
from nnkit.core.stage import Stage
from nnkit.core.types import Array
from nnkit.jit.executable import host_target
from nnkit.native_code import module_at
from tests.jit.emit.running import run

FIRST: Final = ("r", "f")
SECOND: Final = ("rr", "rf", "fr", "ff")
"""Reverse or forward; the last letter is the inner derivative."""


def declared(
    function: Callable[..., Any], arguments: Sequence[Array], modes: Sequence[str]
) -> Module:
    """The raw module of `function`, with its derivatives by the first argument declared under their modes."""
    made = staged(function)
    specialization = made._specialization(made._values(tuple(arguments)))
    module, entry = module_at(specialization, "raw")
    suffixes = {name[k:] for name in modes for k in range(len(name))}
    for mode in sorted(suffixes, key=len):
        primal = mode[1:] or entry.name
        declaration: GradientOf | TangentOf
        if mode[0] == "r":
            declaration = GradientOf(primal, wrt=(0,))
            type = derivative_type(module.functions[primal].type, declaration)
        else:
            declaration = TangentOf(primal, wrt=(0,))
            type = derivative_type(module.functions[primal].type, declaration)
        module.add(Function(mode, type, declaration=declaration))
    return module


def derivatives(
    function: Callable[..., Any],
    *arguments: Array,
    modes: Sequence[str] = (*FIRST, *SECOND),
    native: bool = True,
) -> dict[str, Array]:
    """By mode: derivatives by the first argument, of the sum in reverse and along ones in forward mode.

    Compiled ones are named `native r` and so on.
    """
    module = declared(function, arguments, modes)
    ones = np.ones_like(arguments[0])
    given = {mode: [*arguments, *(ones for kind in mode if kind == "f")] for mode in modes}
    advance(module, Stage.OPTIMIZABLE)
    with np.errstate(all="ignore"):
        found = {mode: np.asarray(evaluate(module, mode, *given[mode])) for mode in modes}
    if native:
        advance(module, Stage.SCHEDULE, *modes, target=host_target())
        for mode in modes:
            (result,) = run(module.functions[mode], given[mode], module.functions)
            found[f"native {mode}"] = result
    return found
