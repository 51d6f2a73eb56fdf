"""Which passes run when: the lists, and what runs them.

`run_pipeline` can call a verifier after every pass; a failure then names the pass, since it is a bug in it.

A pass that is run twice changes nothing the second time, but a pipeline may: a branch that becomes known late
brings a store and a load next to each other, of which `redundant-loads` earlier in the list has not heard; what
`licm` takes out of a loop may now be computed from literals.  No order is right for all.  To go on is possible
and ends, since no pass undoes what another has done: once blocks are structured and calls inlined, nothing adds
to memory accesses, to what `simplify` calls the measure, or to the loops around an instruction, and each change
takes from one of them.  It hardly ever pays: a second run finds something in one random program out of fifty,
a third in none that was seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ..analysis import Analyses
from ..errors import (
    DifferentiationError,
    InternalError,
    NNKitError,
    UnsupportedError,
    VerifyError,
)
from ..ir import Module
from ..signal_handlers import pass_on
from .base import Pass, apply_pass
from .canonicalize import Canonicalize
from .constant_propagation import ConstantPropagation
from .dce import DeadCode
from .dead_functions import DeadFunctions
from .expand import Expand
from .inline import Inline
from .inline_chains import InlineChains
from .isolate import Isolate
from .licm import LoopInvariants
from .linear_algebra_fusion import LinearAlgebraFusion
from .matrix_chain import MatrixChain
from .redundant_loads import RedundantLoads
from .scalarize import Scalarize
from .simplify_cfg import SimplifyCFG
from .stack_promotion import StackPromotion
from .structurize import Structurize
from .value_promotion import ValuePromotion

Pipeline: TypeAlias = Sequence[Pass]

Verifier: TypeAlias = Callable[[Module], None]
"""Raises VerifyError for a module that breaks a rule of the language."""

STRUCTURED: Pipeline = (
    # what can be said of blocks is said before they are gone; less is left to structure
    SimplifyCFG(),
    # derivatives, most passes and code generation want one block per function
    Structurize(),
    # what calls functions while it computes becomes loops, which are differentiated as any others
    Expand(),
)

MEMORY: Pipeline = (
    # memory of the heap can only become values if it is memory of the stack first
    StackPromotion(),
    # derivatives do not pass through memory, and no other pass sees through it
    ValuePromotion(),
    # what has to stay in memory is at least read once
    RedundantLoads(),
)

DIFFERENTIABLE: Pipeline = (
    *STRUCTURED,
    # once bodies are single blocks; before memory, which may lie in several functions of a chain
    InlineChains(),
    *MEMORY,
)
"""Before derivatives are taken at any level: which there are must not depend on it."""

IMPROVED: Pipeline = (
    # sees that a value stays the same around a loop, which laws of single instructions cannot
    ConstantPropagation(),
    # what is simplified now is not differentiated; calls stay, so that derivatives are shared
    Canonicalize(),
    # the derivative of what is done once is done once
    LoopInvariants(),
    DeadCode(),
)

BEFORE_DIFFERENTIATION: Pipeline = (*DIFFERENTIABLE, *IMPROVED)

AFTER_DIFFERENTIATION: Pipeline = (
    # seeds of one, sums over one element and broadcasts of derivatives disappear here
    Canonicalize(),
    # after laws, which leave less to move
    LoopInvariants(),
    # removes the primal values that no derivative needs
    DeadCode(),
)


class Level(NamedTuple):
    """What an optimisation level runs before and after differentiation."""

    before_differentiation: Pipeline
    after_differentiation: Pipeline


PIPELINES: Mapping[int, Level] = {
    # the program as it was written, but for its shape
    0: Level(DIFFERENTIABLE, (DeadCode(),)),
    # nothing that only helps the derivative
    1: Level(DIFFERENTIABLE, AFTER_DIFFERENTIATION),
    2: Level(BEFORE_DIFFERENTIATION, AFTER_DIFFERENTIATION),
    # the derivative of the whole program at once: larger code, fewer repetitions
    3: Level((*STRUCTURED, Inline(), *MEMORY, *IMPROVED), AFTER_DIFFERENTIATION),
}
"""By the number after -O; 2 is the default."""


def code_generation(*entries: str, level: int = 2, fast_math: bool = False) -> Pipeline:
    """Brings `entries` into the form that loop nests are generated from: flat signatures, closed bodies.

    Calls are left of recursive, extern and very large functions, and of functions that are values.

    `level` 0 improves nothing on the way; `fast_math` allows the laws of real numbers.
    """
    improved: Pipeline = (
        # calls had hidden loads of the same, and what is invariant
        *MEMORY,
        Canonicalize(fast_math=fast_math, final=True),
        LoopInvariants(),
    )
    # both need products that stand in one block, and round differently
    regrouped: Pipeline = (MatrixChain(fast_math=True), LinearAlgebraFusion(fast_math=True))
    return (
        # callees are part of their callers now, unless they are recursive or it would be too much
        Inline(entries=entries),
        DeadFunctions(entries),
        # before CSE, which then sees through what were parameters and tuples
        Scalarize(flatten=True, entries=entries),
        *(improved if level else ()),
        *(regrouped if level and fast_math else ()),
        DeadCode(),
        # last, as the passes before see through bodies that know what is around them
        Isolate(),
        # literals that bodies now have copies of
        DeadCode(),
    )


class PassRun(NamedTuple):
    """One pass, as it went."""

    name: str
    seconds: float
    changed: bool


def run_pipeline(
    module: Module,
    pipeline: Pipeline,
    *,
    verifier: Verifier | None = None,
    verify: bool | None = None,
    analyses: Analyses | None = None,
) -> list[PassRun]:
    """Run the passes on `module` in order; what each took and whether it changed anything.

    What one finds out about the module the next ones know too; `analyses` are what is known beforehand.
    The verifier runs after each pass if `verify` says so, and without it if NNKIT_VERIFY=1; then the analyses
    that a pass says it preserves are compared with new ones.
    Raises: VerifyError for a module that is invalid to begin with, as found by a pass that fails if not before;
        InternalError naming a pass that fails, or after which the verifier finds fault or an analysis does not hold.
    """
    if verify is None:
        verify = os.environ.get("NNKIT_VERIFY") == "1"
    analyses = Analyses(module) if analyses is None else analyses
    runs: list[PassRun] = []
    if verify and verifier is not None:
        verifier(module)  # what is wrong before is no fault of a pass
    for a_pass in pipeline:
        start = time.perf_counter()
        changed = _apply(a_pass, module, analyses, verifier)
        runs.append(PassRun(a_pass.name, time.perf_counter() - start, changed))
        if verify and verifier is not None:
            _verify_after(a_pass, module, verifier)
        if verify:
            analyses.check(a_pass.name)
    return runs


def _apply(a_pass: Pass, module: Module, analyses: Analyses, verifier: Verifier | None) -> bool:
    """Run one pass; where it fails, say whether that may be the fault of what it was given."""
    try:
        return apply_pass(a_pass, module, analyses)
    except (UnsupportedError, VerifyError, DifferentiationError, MemoryError):
        raise
    except Exception as error:
        pass_on(error)
        if verifier is not None:
            try:
                verifier(module)
            except VerifyError as invalid:
                raise VerifyError(
                    f"pass '{a_pass.name}' cannot work on IR that is not valid: {invalid}"
                ) from error
        if isinstance(error, NNKitError):
            raise
        problem = f"{type(error).__name__}: {error}"
        raise InternalError(f"pass '{a_pass.name}' failed: {problem}") from error


def _verify_after(a_pass: Pass, module: Module, verifier: Verifier) -> None:
    try:
        verifier(module)
    except VerifyError as error:
        raise InternalError(f"after pass '{a_pass.name}': {error}") from error
