"""Nests as kernels compute the bits that they compute as nests, and those of the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops import Add, Combinator, Multiply, Scan
from nnkit.core.schedule import wide_vectors
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F16, F32, F64, Array, TensorType
from nnkit.jit.executable import kernel_text
from tests.core.compute.building import arguments_for, fused, module_of, results
from tests.core.schedule import row_programs
from tests.core.schedule.nest_kinds import KINDS
from tests.core.schedule.row_programs import RowProgram

from .running import agree, run

MACHINES = (
    Target(
        vector_bytes=64, registers=32, fma=True, l2_bytes=256
    ),  # what is larger is fetched ahead
    Target(vector_bytes=32, fma=True, l2_bytes=256),
    Target(vector_bytes=16),
    Target(vector_bytes=4),
)


def scheduled(seed: int) -> tuple[RowProgram, Module]:
    """A random program, for one of the machines, with the switches that are set."""
    program = RowProgram(seed)
    module = program.at_compute()
    schedule(module, MACHINES[seed % len(MACHINES)])
    return program, module


def test_kernels_of_nests_compute_what_nests_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have vectors of several registers, however short they are."""
    for name, number in (("_LONG", 3), ("_LONGER", 6), ("_LEAST_POINTS", 1), ("_LEAST_STEPS", 0)):
        monkeypatch.setattr(wide_vectors, name, number)
    found = 0
    for seed in range(300, 314):
        made: list[list[Array]] = []
        for disabled in ("rows", "rows,nests"):
            monkeypatch.setenv("NNKIT_DISABLE", disabled)
            program, module = scheduled(seed)
            function = module.functions["main"]
            if disabled == "rows":
                found += sum(isinstance(i.op, Kernel) for i in function.entry.instructions)
                wanted = evaluate(module, "main", *program.arguments)
                made.append([*wanted] if isinstance(wanted, tuple) else [wanted])
            made.append(run(function, program.arguments))
        for evaluated, kernel, nest in zip(*made, strict=True):
            np.testing.assert_array_equal(kernel, nest, str(seed))
            np.testing.assert_array_equal(kernel, evaluated, str(seed))
    assert found > 20


def test_sums_are_rounded_as_those_of_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows so long that they are added in blocks, and blocks of blocks with compensation."""
    monkeypatch.setattr(row_programs, "LENGTHS", (777, 30_001))
    monkeypatch.setattr(row_programs, "DTYPES", (F32, F64, F16))
    for seed in range(400, 407):
        made: list[list[Array]] = []
        for disabled in ("rows", "rows,nests"):
            monkeypatch.setenv("NNKIT_DISABLE", disabled)
            program, module = scheduled(seed)
            random = np.random.default_rng(seed)
            arguments = [random.standard_normal(a.shape).astype(a.dtype) for a in program.arguments]
            made.append(run(module.functions["main"], arguments))
        for kernel, nest in zip(*made, strict=True):
            np.testing.assert_array_equal(kernel, nest, str(seed))


def test_short_tensors_are_read_as_they_are_written() -> None:
    """By powers of two, in the function that calls: no load waits for a store under a mask, and tiny kernels are not
    called."""
    for length, dtype in ((3, F64), (3, F32), (5, F32), (6, F32), (7, F32)):
        module = fused(module_of(_steps, TensorType((length,), dtype)))
        schedule(module, MACHINES[0])
        function, arrays = module.functions["main"], arguments_for(module)
        assert sum(isinstance(i.op, Kernel) for i in function.entry.instructions) >= 3
        text = kernel_text(function)
        assert "masked.load" not in text and "@kernel.kernel" not in text
        agree(function, arrays)


def _steps(b: Builder, x: Value) -> Value:
    """Each reads all of what the one before made, so that they are kernels of their own."""
    for _ in range(2):
        x = b.emit(Add(), b.emit(Scan(Combinator.MAX, 0), b.emit(Multiply(), x, x)), x)
    return x


def test_each_kind_computes_the_bits_of_the_evaluator() -> None:
    """Sums at indices that are read are those of nests, too; which the tests of these have."""
    for number, (build, types) in enumerate(KINDS):
        module = fused(module_of(build, *types))
        arguments = arguments_for(module)
        schedule(module, MACHINES[number % len(MACHINES)])
        compiled = run(module.functions["main"], arguments)
        for one, other in zip(results(module, arguments), compiled, strict=True):
            np.testing.assert_array_equal(one, other, f"{build.__name__} {types}")
