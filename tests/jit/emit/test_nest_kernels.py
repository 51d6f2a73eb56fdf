"""Nests as kernels compute the bits that they compute as nests, and those of the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.kernels.ops import Kernel
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import Array
from tests.core.schedule.row_programs import RowProgram

from .running import run

MACHINES = (
    Target(vector_bytes=64, registers=32, fma=True),
    Target(vector_bytes=32, fma=True),
    Target(vector_bytes=16),
    Target(vector_bytes=4),
)


def test_kernels_of_nests_compute_what_nests_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in range(300, 314):
        made: list[list[Array]] = []
        for disabled in ("rows", "rows,nests"):
            monkeypatch.setenv("NNKIT_DISABLE", disabled)
            program = RowProgram(seed)
            module = program.at_compute()
            schedule(module, MACHINES[seed % len(MACHINES)])
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
