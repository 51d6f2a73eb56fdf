"""Nests as kernels compute the bits of the evaluator."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from nnkit.core.ir import Builder, Module, Value
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import Kernel, is_kernel
from nnkit.core.ops import Add, Combinator, Multiply, Reduce, Scan
from nnkit.core.schedule import block_groups, wide_vectors
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, TensorType
from nnkit.jit.executable import kernel_text
from tests.core.compute.building import arguments_for, fused, module_of, results
from tests.core.schedule.decided import decided
from tests.core.schedule.nest_kinds import KINDS
from tests.core.schedule.row_programs import RowProgram
from tests.jit.sharing import alone, sharing_everything
from tests.rows import each
from tests.values import same_bits

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


def test_kernels_of_nests_compute_what_the_evaluator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have vectors of several registers, however short they are."""
    for name, number in (("_LONG", 3), ("_LONGER", 6), ("_LEAST_POINTS", 1), ("_LEAST_STEPS", 0)):
        monkeypatch.setattr(wide_vectors, name, number)
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    found = 0
    for seed in range(300, 314):
        program, module = scheduled(seed)
        function = module.functions["main"]
        found += sum(isinstance(i.op, Kernel) for i in function.entry.instructions)
        wanted = results(module, program.arguments)
        for evaluated, kernel in zip(wanted, run(function, program.arguments), strict=True):
            np.testing.assert_array_equal(kernel, evaluated, str(seed))
    assert found > 20


def test_random_groups_compute_what_the_evaluator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches are so small that nests over the same rows share a loop, of some of them threads, too."""
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    monkeypatch.setattr(block_groups, "LEAST_FOLDED", 1)
    members = 0
    for seed in range(10):
        program = RowProgram(seed)
        module = program.at_compute()
        expected = results(module, program.arguments)
        target = replace(MACHINES[seed % len(MACHINES)], l1_bytes=64, l2_bytes=1 << 20)
        with sharing_everything() if seed % 2 else nullcontext():
            members += sum(op.group >= 0 for op in decided(module, target).loops)
        function = module.functions["main"]
        for kernel in filter(is_kernel, function.entry.instructions):
            assert not list(accesses_outside(kernel.regions[0].entry))
        evaluated = results(module, program.arguments)
        found = run(function, program.arguments)
        for wanted, by_kernels, compiled in zip(expected, evaluated, found, strict=True):
            np.testing.assert_array_equal(by_kernels, wanted, str(seed))
            np.testing.assert_array_equal(compiled, wanted, str(seed))
    assert members > 8


@each(
    ("type", "axis"),
    [
        (TensorType((1_000_003,), F32), 0),
        (TensorType((300_007,), F64), 0),
        (TensorType((5_003, 201), F32), 0),
    ],
)
def test_long_sums_keep_their_bound_and_their_bits(type: TensorType, axis: int) -> None:
    """As many roundings as docs/semantics.md allows, whether or not threads share the sum."""
    random = np.random.default_rng(0)
    x = (random.standard_normal(type.shape) * 1000).astype(type.dtype.numpy)
    bound = 8 + np.log2(type.shape[axis])
    module = fused(module_of(lambda b, x: b.emit(Reduce(Combinator.ADD, (axis,)), x), type))
    schedule(module, replace(MACHINES[0], l2_bytes=1 << 20))
    function = module.functions["main"]
    (found,) = run(function, [x])
    exact = x.astype(np.longdouble)
    unit = np.finfo(type.dtype.numpy).eps / 2
    assert (abs(found - exact.sum(axis)) <= bound * unit * abs(exact).sum(axis)).all()
    with alone():
        assert same_bits(found, run(function, [x])[0])


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
    for by in (Combinator.MAX, Combinator.MIN):
        x = b.emit(Add(), b.emit(Scan(by, 0), b.emit(Multiply(), x, x)), x)
    return x


def test_each_kind_computes_the_bits_of_the_evaluator() -> None:
    for number, (build, types) in enumerate(KINDS):
        module = fused(module_of(build, *types))
        arguments = arguments_for(module)
        schedule(module, MACHINES[number % len(MACHINES)])
        compiled = run(module.functions["main"], arguments)
        for one, other in zip(results(module, arguments), compiled, strict=True):
            np.testing.assert_array_equal(one, other, f"{build.__name__} {types}")
