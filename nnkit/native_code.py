"""Compiles a specialization to native code, through the stages of `core/driver/stages.py`.

`compile` loads this file on first use: it brings the passes, and LLVM by way of `jit.executable`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from .compile import Specialization
from .core.driver.halves import GradientHalves
from .core.driver.split import split
from .core.driver.stages import advance, run_verified
from .core.errors import InternalError, RecursionDepthError
from .core.host_calls import take_raised
from .core.ir import Function, Module, SavePolicy
from .core.ir.donation import donation, donations
from .core.lazy_dataclass import dataclass
from .core.passes.pipeline import Pipeline
from .core.schedule.memory_use import memory_use
from .core.stage import Stage
from .core.text import print_module
from .core.types import FunctionType, TensorType, Type, elements_of
from .jit import entry, executable
from .jit.emit.checks import error_of
from .jit.emit.sites import CheckSite, Problem
from .jit.entry.guards import Guard, can_guard
from .memory_analysis import MemoryAnalysis
from .progress import Progress
from .redefinitions import Watched
from .staging.expression import Shapes, Trace
from .staging.known_shapes import TypeLookup
from .staging.location import with_location
from .staging.primitive import staging_error
from .staging.read_places import MISSING
from .staging.shapes_in_traces import types_in
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec
from .staging.spec import leaves as leaves_of
from .staging.specialize import Specializer
from .staging.tracebacks import public
from .tensors import RANKED

# the import has made it an attribute of the package, where `nk.jit` shall say what that is called here
vars(sys.modules[__name__.rpartition(".")[0]]).pop("jit", None)


def module_at(
    specialization: Specialization, stage: str, progress: Progress | None = None
) -> tuple[Module, Function]:
    """The module as it is at the end of `stage`, and its entry function; `progress` is told of each step.

    Raises: StagingError when there is no such stage.
    """
    progress = progress or specialization.progress or Progress(specialization.callee.name)

    def run(module: Module, pipeline: Pipeline) -> None:
        run_verified(module, pipeline, before=before)

    def before(name: str) -> None:
        progress.begin(f"in pass {name!r}")

    progress.begin("in the specialization to shapes")
    names = [each.value for each in Stage]
    if stage not in names:
        raise staging_error(f"there is no stage {stage!r}; the stages are {', '.join(names)}")
    specializer = Specializer(Module(specialization.callee.name))
    shapes = list(specialization.shapes)
    types = tuple(specializer.types.of(spec, shapes) for spec in specialization.specs)
    start = specializer.specialize(specialization.callee, types)
    module, target = specializer.module, executable.host_target()
    if specialization.donated and Stage(stage) is Stage.SCHEDULE:
        advance(module, Stage.COMPUTE, start.name, target=target, run=run)
        _donate(specialization, module.functions[start.name])
    advance(module, Stage(stage), start.name, target=target, run=run)
    return module, module.functions[start.name]


def _donate(specialization: Specialization, function: Function) -> None:
    """Donate the leaves of donated arguments to results of their types, the first to the first."""
    counts = [len(leaves_of(spec)) for spec in specialization.specs]
    free = [
        leaf
        for number in specialization.donated
        for leaf in range(sum(counts[:number]), sum(counts[: number + 1]))
    ]
    for result, type in enumerate(function.type.results):
        parameter = next((leaf for leaf in free if function.type.parameters[leaf] == type), None)
        if parameter is not None:
            free.remove(parameter)
            function.attributes += (donation(parameter, result),)


def halves_of(
    specialization: Specialization, sources: Sequence[int], wrt: Sequence[int], save: SavePolicy
) -> tuple[GradientHalves, FunctionType]:
    """The halves of the gradient of leaves `sources` by leaves `wrt`, and the flat type of the primal."""
    module, function = module_at(specialization, "raw")
    halves = split(module, function.name, sources, wrt, save)
    return halves, module.functions[function.name].type


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """Native code as Python calls it: what `compile.Program` says."""

    call: Callable[..., Any]
    result: Spec
    result_shapes: Sequence[tuple[int, ...]]
    is_guarded: bool

    def followed_by(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The same code, where `fallback` sees to arguments that do not fit."""
        return entry.rebind(self.call, fallback)

    def drop_kept_results(self) -> None:
        """Free the memory that is kept for the next results."""
        entry.drop_kept_results(self.call)


def type_lookup_in(trace: Trace, shapes: Shapes) -> TypeLookup:
    """What finds types in `trace`, where the tensors in its arguments have these shapes."""
    return types_in(trace, shapes)


def compiled(
    specialization: Specialization,
    fallback: Callable[..., Any],
    name: str,
    given_result: bool = False,
    markers: Sequence[object] = (),
) -> NativeProgram:
    """Native code that takes and returns concrete values: what `Specialization.compiled` says."""
    progress = specialization.progress or Progress(name)
    module, function = module_at(specialization, "schedule", progress)
    shapes = list(specialization.shapes)
    arguments = tuple(_node(spec, shapes) for spec in specialization.specs)
    result_shapes = _result_shapes(function.type.result)
    result = _node(specialization.callee.result, [*result_shapes])
    watched = specialization.watched
    guard = None if watched is None else _guard(watched)
    signature = entry.Signature(
        arguments,
        result,
        given_result=given_result,
        donated=specialization.donated,
        reused=tuple(donations(function.attributes)),
        guard=guard,
    )
    progress.begin("in LLVM")
    built = executable.build(
        function,
        signature,
        name=name,
        fallback=fallback,
        explain=_explain,
        functions=module.functions,
        markers=markers,
    )
    progress.end()
    is_guarded = guard is not None or watched is None or not watched.variables()
    return NativeProgram(built.call, specialization.callee.result, result_shapes, is_guarded)


def _guard(watched: Watched) -> Guard | None:
    """What native code looks at; None if there is nothing, or native code cannot."""
    if watched.guard is None and watched.variables() and can_guard() and not watched.have_changed():
        made = Guard(watched.variables(), MISSING)
        watched.guard = made if made.update(watched.variables(), MISSING) else None
    guard: Guard | None = watched.guard
    return guard


def printed(specialization: Specialization, stage: str) -> str:
    """The text of the module at the end of `stage`."""
    return print_module(module_at(specialization, stage)[0])


def llvm_text(specialization: Specialization) -> str:
    """The LLVM IR of the kernel."""
    module, function = module_at(specialization, "schedule")
    return executable.kernel_text(function, module.functions)


def assembly_text(specialization: Specialization) -> str:
    """The machine code of the kernel."""
    module, function = module_at(specialization, "schedule")
    return executable.kernel_assembly(function, module.functions)


def memory_of(specialization: Specialization) -> MemoryAnalysis:
    """What a call takes of memory."""
    found = memory_use(*module_at(specialization, "schedule"))
    return MemoryAnalysis(
        found.arguments, found.results, found.aliased, found.temporary, found.is_complete
    )


def _node(spec: Spec, shapes: list[tuple[int, ...]]) -> entry.Node:
    """The tree of a value as the native entry reads or builds it."""
    match spec:
        case TensorSpec(rank=rank, dtype=dtype):
            return entry.ArrayNode(dtype.name, shapes.pop(0), RANKED[rank])
        case TupleSpec(elements):
            return entry.TupleNode(tuple(_node(element, shapes) for element in elements))
        case StructSpec(cls, fields):
            return entry.RecordNode(cls, tuple(_node(element, shapes) for _, element in fields))
        case _:
            raise InternalError(f"{spec} has no counterpart in Python")


def _result_shapes(type: Type) -> list[tuple[int, ...]]:
    """Shapes of the leaves of a flat result: one tensor or a tuple of tensors."""
    types = elements_of(type) or (type,)
    return [element.shape for element in types if isinstance(element, TensorType)]


_KEEPS: Final = (
    "a gradient keeps something of every iteration and call: `checkpoint` what they do, find what a loop converges to "
    "by `fixed_point`, or take fewer"
)


@public
def _explain(sites: Sequence[CheckSite], number: int, first: int, second: int) -> None:
    """Raise for a run-time check that failed."""
    site = sites[number - 1]
    second = executable.bound_of(site, second)
    if site.problem is Problem.KEPT:
        raise with_location(error_of(site, first, second), site.location, _KEEPS)
    raised = take_raised()
    if raised is not None:
        raise raised
    if site.problem not in (Problem.DEPTH, Problem.MEMORY):
        raise with_location(error_of(site, first, second), site.location)
    name = "<lambda>" if site.callee == "lambda" else site.callee
    found = (
        f"its calls would take more than {second} bytes of stack"
        if site.problem is Problem.DEPTH
        else f"there are no {second} bytes of memory for one more call"
    )
    raise with_location(
        RecursionDepthError(f"recursion of {name} is too deep: {found}"),
        site.location,
        "end the recursion in a branch of `cond`, or write it as a loop, `while_loop` or `fori`",
    )
