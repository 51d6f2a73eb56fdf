"""From a staged function and shapes to native code: the stages, in order.

    raw          what staging gives
    optimizable  gradients have bodies, everything is simplified; calls are still calls
    optimized    one function of tensors: calls inlined, structs and tuples taken apart
    compute      loop nests
    schedule     loops, vectors and memory decided: what is emitted

This is the one file that sees `jit`, and it imports it on first use, so that `import nnkit` does not load
LLVM.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core.autodiff import differentiate, gradient_type
from .core.compute import fuse, generate_compute
from .core.errors import IndexOutOfRangeError, InternalError, StagingError
from .core.ir import Function, Module
from .core.passes.pipeline import (
    AFTER_DIFFERENTIATION,
    BEFORE_DIFFERENTIATION,
    code_generation,
    run_pipeline,
)
from .core.schedule.plan import schedule
from .core.types import TensorType, Type, elements_of
from .core.verify import verify
from .staging.expression import Callee, at
from .staging.primitive import located
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec
from .staging.specialize import Specializer
from .tensors import RANKED

STAGES = ("raw", "optimizable", "optimized", "compute", "schedule")


@dataclass(frozen=True)
class Specialization:
    """A callee for arguments of given shapes."""

    callee: Callee
    specs: tuple[Spec, ...]
    shapes: tuple[tuple[int, ...], ...]

    def module(self, stage: str) -> tuple[Module, Function]:
        """The module as it is at the end of `stage`, and its entry function.

        Raises: StagingError when there is no such stage.
        """
        if stage not in STAGES:
            raise located(
                StagingError(f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}")
            )
        specializer = Specializer(gradient_type, Module(self.callee.name))
        shapes = list(self.shapes)
        types = tuple(specializer.type_of(spec, shapes) for spec in self.specs)
        entry = specializer.specialize(self.callee, types)
        module = specializer.module
        for step in STAGES[1 : STAGES.index(stage) + 1]:
            _advance(module, entry.name, step)
            check(module, step)
        return module, module.functions[entry.name]


def _advance(module: Module, entry: str, stage: str) -> None:
    match stage:
        case "optimizable":
            run_pipeline(module, BEFORE_DIFFERENTIATION, verifier=verify)
            differentiate(module)
            check(module, "differentiation")
            run_pipeline(module, AFTER_DIFFERENTIATION, verifier=verify)
        case "optimized":
            run_pipeline(module, code_generation(entry), verifier=verify)
        case "compute":
            generate_compute(module)
            fuse(module)
        case _:
            schedule(module, _jit().host())


def check(module: Module, stage: str) -> None:
    """Verify under NNKIT_VERIFY=1: a failure is a bug of ours."""
    if os.environ.get("NNKIT_VERIFY") == "1":
        try:
            verify(module)
        except Exception as error:
            raise InternalError(f"after stage {stage!r}: {error}") from error


def compiled(
    specialization: Specialization, fallback: Callable[..., Any], name: str
) -> Callable[..., Any]:
    """Native code that takes and returns concrete values; `fallback` sees to arguments that do not fit."""
    _, function = specialization.module("schedule")
    jit = _jit()
    shapes = list(specialization.shapes)
    arguments = tuple(_node(spec, shapes) for spec in specialization.specs)
    result_shapes = _result_shapes(function.type.result)
    result = _node(specialization.callee.result, result_shapes)
    signature = jit.Signature(arguments, result)
    built = jit.build(function, signature, name=name, fallback=fallback, explain=_explain)
    call: Callable[..., Any] = built.call
    return call


def llvm_text(specialization: Specialization) -> str:
    """The LLVM IR of the kernel."""
    text: str = _jit().kernel_text(specialization.module("schedule")[1])
    return text


def assembly_text(specialization: Specialization) -> str:
    """The machine code of the kernel."""
    text: str = _jit().kernel_assembly(specialization.module("schedule")[1])
    return text


def _jit() -> Any:
    from .jit import program  # noqa: PLC0415  # the one late import: LLVM loads when it is needed

    return program


def _node(spec: Spec, shapes: list[tuple[int, ...]]) -> Any:
    """The tree of a value as the native entry reads or builds it."""
    entry = _jit().entry
    match spec:
        case TensorSpec(rank, dtype):
            return entry.Leaf(dtype.name, shapes.pop(0), RANKED[rank])
        case TupleSpec(elements):
            return entry.Several(tuple(_node(element, shapes) for element in elements))
        case StructSpec(cls, fields):
            return entry.Record(cls, tuple(_node(element, shapes) for _, element in fields))
        case _:
            raise InternalError(f"{spec} has no counterpart in Python")


def _result_shapes(type: Type) -> list[tuple[int, ...]]:
    """Shapes of the leaves of a flat result: one tensor or a tuple of tensors."""
    types = elements_of(type) or (type,)
    return [element.shape for element in types if isinstance(element, TensorType)]


def _explain(site: Any, index: int, bound: int) -> None:
    """Raise for a run-time check that failed."""
    error = IndexOutOfRangeError(f"index {index} is out of range for an axis of extent {bound}")
    raise at(error, site.location)
