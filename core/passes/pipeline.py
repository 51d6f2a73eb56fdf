"""What runs a list of passes; which run when, `core/driver/stages.py` says.

`run_pipeline` can call a verifier after every pass; a failure then names the pass, since it is a bug in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
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

Pipeline: TypeAlias = Sequence[Pass]

Verifier: TypeAlias = Callable[[Module], None]
"""Raises VerifyError for a module that breaks a rule of the language."""


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
    is_valid: bool = False,
    analyses: Analyses | None = None,
    before: Callable[[str], None] | None = None,
) -> list[PassRun]:
    """Run the passes on `module` in order; what each took and whether it changed anything.

    What one finds out about the module the next ones know too; `analyses` are what is known beforehand.
    `before` is told the name of each pass before it runs.
    `is_valid` says that the module is known to break no rule, so that a pass that fails is to blame.
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
        is_valid = True
    for a_pass in pipeline:
        if before is not None:
            before(a_pass.name)
        start = time.perf_counter()
        changed = _apply(a_pass, module, analyses, None if is_valid else verifier)
        runs.append(PassRun(a_pass.name, time.perf_counter() - start, changed))
        if verify and verifier is not None:
            _verify_after(a_pass, module, verifier)
        if verify:
            analyses.check(a_pass.name)
    return runs


def _apply(a_pass: Pass, module: Module, analyses: Analyses, verifier: Verifier | None) -> bool:
    """Run one pass; where it fails, ask the verifier, if there is one, whether it was given what is not valid.

    A pass that fails half-way leaves what is not valid either: of what was valid before, the verifier is not asked.
    """
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
