"""The list of stages, each with the passes that bring a module to it, and the driver that runs them.

`core/stage.py` says what IR of each stage is, `core/verify/stage.py` what the verifier asks of it.

A pass that is run twice changes nothing the second time, but a list may: a branch that becomes known late
brings a store and a load next to each other, of which `redundant-loads` earlier in the list has not heard; what
`licm` takes out of a loop may now be computed from literals.  No order is right for all.  To go on is possible
and ends, since no pass undoes what another has done: once blocks are structured and calls inlined, nothing adds
to memory accesses, to what `simplify` calls the measure, or to the loops around an instruction, and each change
takes from one of them.  It hardly ever pays: a second run finds something in one random program out of fifty,
a third in none that was seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..errors import InternalError, VerifyError
from ..garbage import garbage_left
from ..ir import Module
from ..passes.base import Pass
from ..passes.canonicalize import Canonicalize
from ..passes.constant_propagation import ConstantPropagation
from ..passes.dce import DeadCode
from ..passes.dead_functions import DeadFunctions
from ..passes.distribute_loops import DistributeLoops
from ..passes.expand import Expand
from ..passes.flatten import Flatten
from ..passes.inline import Inline
from ..passes.inline_chains import InlineChains
from ..passes.integer_ranges import IntegerRanges
from ..passes.interleave_stacks import InterleaveStacks
from ..passes.isolate import Isolate
from ..passes.licm import LoopInvariants
from ..passes.pipeline import Pipeline, run_pipeline
from ..passes.redundant_loads import RedundantLoads
from ..passes.scalarize import Scalarize
from ..passes.simplify_cfg import SimplifyCFG
from ..passes.stack_promotion import StackPromotion
from ..passes.structurize import Structurize
from ..passes.value_promotion import ValuePromotion
from ..schedule.switches import is_enabled
from ..schedule.target import Target
from ..stage import Stage
from ..verify import verify
from .differentiate import Differentiate

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
    # checks that always pass are not moved around, nor differentiated
    IntegerRanges(),
    # what is simplified now is not differentiated; calls stay, so that derivatives are shared
    Canonicalize(),
    # the derivative of what is done once is done once
    LoopInvariants(),
    # the derivative of a product of all rows is one of all rows
    DistributeLoops(),
    DeadCode(),
)

DERIVATIVES: Pipeline = (
    # derivatives are of tensors; last before them, as what is simplified is not taken apart
    Flatten(),
    Differentiate(),
)

AFTER_DIFFERENTIATION: Pipeline = (
    # seeds of one, sums over one element and broadcasts of derivatives disappear here
    Canonicalize(),
    # after laws, which leave less to move
    LoopInvariants(),
    # removes the primal values that no derivative needs
    DeadCode(),
)

OPTIMIZABLE: Mapping[int, Pipeline] = {
    # the program as it was written, but for its shape
    0: (*DIFFERENTIABLE, Flatten(), Differentiate(laws=False), DeadCode()),
    # nothing that only helps the derivative
    1: (*DIFFERENTIABLE, *DERIVATIVES, *AFTER_DIFFERENTIATION),
    2: (*DIFFERENTIABLE, *IMPROVED, *DERIVATIVES, *AFTER_DIFFERENTIATION),
    # the derivative of the whole program at once: larger code, fewer repetitions
    3: (*STRUCTURED, Inline(), *MEMORY, *IMPROVED, *DERIVATIVES, *AFTER_DIFFERENTIATION),
}
"""By the number after -O; 2 is the default."""


def passes_to(
    stage: Stage, *entries: str, level: int = 2, target: Target | None = None
) -> Pipeline:
    """What brings a module from the stage before to `stage`.

    `entries` are the functions that stay, by name; `level` is the number after -O; `target` is the machine to
    schedule for.
    """
    found = _all_passes_to(stage, *entries, level=level, target=target)
    disabled = tuple(kind for kind, switch in _SWITCHES.items() if not is_enabled(switch))
    return tuple(x for x in found if not isinstance(x, disabled))


_SWITCHES: Mapping[type[Pass], str] = {
    LoopInvariants: "hoist",
    DistributeLoops: "hoist",
    InterleaveStacks: "interleave",
}
"""What `NNKIT_DISABLE` calls passes that only make programs faster."""


def _all_passes_to(stage: Stage, *entries: str, level: int, target: Target | None) -> Pipeline:
    """The same where nothing is disabled."""
    match stage:
        case Stage.RAW:
            return ()
        case Stage.OPTIMIZABLE:
            return OPTIMIZABLE[level]
        case Stage.OPTIMIZED:
            # calls had hidden loads of the same, and what is invariant
            improved = (
                *MEMORY,
                IntegerRanges(),
                Canonicalize(final=True),
                LoopInvariants(),
                DistributeLoops(),
            )
            return (
                # callees are part of their callers now, unless they are recursive, extern or a value, or it
                # would be too much
                Inline(entries=entries),
                DeadFunctions(entries),
                # before CSE, which then sees through what functions that are values have returned
                Scalarize(),
                *(improved if level else ()),
                DeadCode(),
                # when only what is needed is still stacked, and is read as it will be
                *((InterleaveStacks(),) if level else ()),
                # last, as the passes before see through bodies that know what is around them
                Isolate(),
                # literals that bodies now have copies of
                DeadCode(),
            )
        case Stage.COMPUTE:
            from . import lowering  # noqa: PLC0415  # the generators of code, when they are needed

            nests = (lowering.LowerMemory(entries), lowering.GenerateCompute())
            return (*nests, lowering.Fuse()) if level else nests
        case Stage.SCHEDULE:
            from . import lowering  # noqa: PLC0415

            return (lowering.Schedule(target or Target()),)


Runner: TypeAlias = Callable[[Module, Pipeline], object]


def run_verified(
    module: Module, pipeline: Pipeline, *, before: Callable[[str], None] | None = None
) -> None:
    """Run the passes on a valid module, with the verifier as `run_pipeline` says.

    `before` is told the name of each pass before it runs.
    """
    run_pipeline(module, pipeline, verifier=verify, is_valid=True, before=before)


def advance(
    module: Module,
    stage: Stage,
    *entries: str,
    level: int = 2,
    target: Target | None = None,
    run: Runner = run_verified,
) -> None:
    """Bring `module` from its stage to `stage`, through those between; what `passes_to` asks for is the rest.

    Under NNKIT_VERIFY=1 it is verified at each, too.
    Raises: InternalError when it is beyond that stage, or does not verify.
    """
    if not stage.has_reached(module.stage):
        raise InternalError(
            f"a module in stage {module.stage.value} cannot go back to {stage.value}"
        )
    for step in module.stage.steps_to(stage):
        with garbage_left():
            run(module, passes_to(step, *entries, level=level, target=target))
        module.stage = step
        if os.environ.get("NNKIT_VERIFY") == "1":
            try:
                verify(module)
            except VerifyError as error:
                raise InternalError(f"after stage {step.value!r}: {error}") from error
