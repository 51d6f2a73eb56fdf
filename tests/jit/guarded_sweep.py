"""Compiles cases for one machine and runs them between guard pages: the process that `survey` watches.

    python -m tests.jit.guarded_sweep KIND CPU ROUNDS SHARE EXTENTS… FIRST

KIND is one of `KINDS`: ops, products, gradients; or nests, the part of ops that are no op.  Each case runs twice, its
tensors touching the page behind and the page before, and its results are compared with the evaluator's.  The samples
of all ops are run on this machine, and on others unless the share is small; of the derivatives of samples, a share is
run that has all ops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.module import Function
from nnkit.core.schedule.target import Target
from nnkit.core.types import Array, DType
from nnkit.jit.emit.program import EmittedProgram, emit_program
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.llvm import CompiledModule, Engine

from .emit.running import expected, tolerance
from .guard_pages import (
    HOST,
    Guarded,
    Survey,
    engine_for,
    report_cases,
    run_kernel,
    survey,
)
from .guarded_gradients import gradients, gradients_of_samples
from .guarded_products import products
from .guarded_programs import Case, cases, kernels_of_samples, nests

KINDS = ("ops", "products", "gradients")
"""Besides `nests`, which are a part of the ops."""
TOGETHER = 48
"""Cases that are compiled as one module."""


class Batch:
    """Cases compiled together, when the first one is wanted."""

    def __init__(self, engine: Engine, members: Sequence[Case]) -> None:
        self.engine = engine
        self.members = members
        self.compiled: tuple[CompiledModule, list[EmittedProgram], list[Function]] | None = None

    def kernel(self, number: int) -> tuple[int, EmittedProgram, Function]:
        if self.compiled is None:
            self.compiled = self._compile()
        module, programs, functions = self.compiled
        return module.address(programs[number].name), programs[number], functions[number]

    def _compile(self) -> tuple[CompiledModule, list[EmittedProgram], list[Function]]:
        target = self.engine.target
        machine = Target(
            vector_bytes=target.vector_bytes,
            registers=target.vector_registers,
            fma=target.fma,
        )
        writer = ModuleWriter(scalef=target.scalef, fma=target.fma)
        functions = [case.function(machine) for case in self.members]
        programs = [
            emit_program(writer, function, f"kernel.{number}")
            for number, function in enumerate(functions)
        ]
        symbols = {name: at for program in programs for name, at in program.symbols.items()}
        return self.engine.compile_module(writer.text(), symbols), programs, functions


def runs(
    guarded: Guarded, engine: Engine, chosen: Iterator[Case]
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The cases as what `report_cases` takes."""
    while members := list(islice(chosen, TOGETHER)):
        batch = Batch(engine, members)
        for number, case in enumerate(members):
            yield case.name, partial(run, guarded, batch, number, case)


def run(guarded: Guarded, batch: Batch, number: int, case: Case) -> None:
    """One case, both ways.  Raises: what is wrong with it."""
    address, program, function = batch.kernel(number)
    wanted = reference(case, function)
    types = [value.tensor for value in function.entry.terminator.operands]
    relative = 8 * max(tolerance(type.dtype) for type in (*case.types, *types))
    for side in ("end", "start"):
        found = run_kernel(guarded, address, program, function, case.arrays, side)
        for type, x, y in zip(types, wanted, found, strict=True):
            if case.is_rough and type.dtype.is_float:
                no_garbage(x, y)
            else:
                same(type.dtype, x, y, relative)


def no_garbage(wanted: Array, found: Array) -> None:
    """Raises: AssertionError where a result has memory that nobody wrote: NaNs, or numbers larger than any other."""
    size = np.abs(wanted.astype(np.float64))
    near = (size < 1e3) & np.all(size < 1e3)  # what is larger may overflow elsewhere
    assert not np.any(near & ~(np.abs(found.astype(np.float64)) < 1e6)), (
        f"wanted {wanted}, found {found}"
    )


def reference(case: Case, function: Function) -> list[Array]:
    """What the evaluator says, of the program before it was lowered unless it is a nest."""
    if case.decisions is not None:
        return expected(function, case.arrays)
    result = evaluate(case.module(), case.entry, *case.arrays)
    return list(result) if isinstance(result, tuple) else [result]


def same(dtype: DType, wanted: Array, found: Array, relative: float) -> None:
    """Raises: AssertionError where results differ by more than sums in another order do, in the coarsest type there is.

    A float that is cast to an integer may have been rounded to the other side of it.
    """
    if not dtype.is_float:
        apart = np.abs(wanted.astype(object) - found.astype(object))
        most = 1 if dtype.is_integer else 0
        assert not np.any(apart > most), f"wanted {wanted}, found {found}"
        return
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))))
    np.testing.assert_allclose(found, wanted, rtol=relative, atol=relative * scale)


def chosen(
    kind: str, cpu: str, extents: Sequence[int], rounds: int, share: float
) -> Iterator[Case]:
    """The cases of a kind for a machine."""
    match kind:
        case "products":
            yield from products(extents, rounds, share)
        case "nests":
            yield from nests(extents)
        case "gradients":
            yield from gradients_of_samples(share, seed=extents[0])
            yield from gradients(extents, rounds, share)
        case _:
            if cpu == HOST or share >= 0.2:
                yield from kernels_of_samples()
            yield from cases(extents, rounds, share)


def sweep(
    kind: str, cpu: str, extents: Sequence[int], *, rounds: int = 1, share: float = 1.0
) -> Survey:
    """Run the cases in a process of their own."""
    arguments = (kind, cpu, str(rounds), str(share), *map(str, extents))
    return survey("tests.jit.guarded_sweep", *arguments)


def main(kind: str, cpu: str, rounds: str, share: str, *numbers: str) -> None:
    *extents, first = map(int, numbers)
    guarded, engine = Guarded(), engine_for(cpu)
    members = chosen(kind, cpu, extents, int(rounds), float(share))
    report_cases(runs(guarded, engine, members), first)


if __name__ == "__main__":
    main(*sys.argv[1:])
