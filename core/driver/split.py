"""Splits the gradient of a function into its halves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..analysis.derivatives import derivative_type
from ..ir import Function, GradientOf, Module, SavePolicy
from ..ir.surgery import clone_module
from ..passes.flatten import Flatten
from ..stage import Stage
from ..text import print_module
from .halves import GradientHalves
from .stages import (
    AFTER_DIFFERENTIATION,
    DERIVATIVES,
    DIFFERENTIABLE,
    IMPROVED,
    run_verified,
)


def split(
    module: Module, name: str, sources: Sequence[int], wrt: Sequence[int], save: SavePolicy
) -> GradientHalves:
    """The halves of the gradient of `@name`, of and by leaves of its results and parameters.

    `module` is in stage raw before, and in stage optimizable then.  The gradient is declared when functions are flat,
    and before anything is differentiated: with that go the rules of functions and what stops gradients.
    Raises: DifferentiationError and UnsupportedError as differentiation does.
    """
    run_verified(module, (*DIFFERENTIABLE, *IMPROVED, Flatten()))
    primal = module.functions[name]
    ruled = clone_module(module) if any(f.rules for f in module.functions.values()) else None
    kept = tuple(range(len(primal.type.results)))
    declaration = GradientOf(name, tuple(sources), tuple(wrt), kept, True, save)
    type = derivative_type(primal.type, declaration)
    function = Function(module.fresh_name(f"{name}_grad"), type, declaration=declaration)
    module.add(function)
    run_verified(module, (*DERIVATIVES, *AFTER_DIFFERENTIATION))
    module.stage = Stage.OPTIMIZABLE
    _name_by_content(module)
    return GradientHalves(module, function, len(primal.type.parameters), len(wrt), ruled)


def _name_by_content(module: Module) -> None:
    """Give the tapes of `module` names that no other has for another type: the halves are linked into other modules."""
    digest = hashlib.sha256(print_module(module).encode()).hexdigest() if module.enums else ""
    for name, enum in list(module.enums.items()):
        del module.enums[name]
        object.__setattr__(enum, "name", f"{name}_{digest}")
        module.enums[enum.name] = enum
