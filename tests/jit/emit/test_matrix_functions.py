"""Compiled functions of matrices give what the evaluator does, signs of vectors included."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Value
from nnkit.core.ops import MATRIX_FUNCTIONS, PseudoInverse
from nnkit.core.schedule.plan import schedule
from nnkit.core.types import F32, F64
from nnkit.jit.emit.matrix_functions import LAPACK_CALLS
from nnkit.jit.executable import host_target
from tests.core.compute.building import module_of
from tests.core.ops.samples import Sample
from tests.core.ops.test_matrix_form import NAMES, SAMPLES

from .running import run


def test_every_function_that_is_not_expanded_is_written() -> None:
    assert {*LAPACK_CALLS} == {*MATRIX_FUNCTIONS} - {PseudoInverse}


@pytest.mark.parametrize("name", NAMES)
def test_compiled_code_is_the_evaluator(name: str) -> None:
    """All samples of an op in one function, in f64 and in f32."""
    for dtype, tolerance in ((F64, 1e-12), (F32, 2e-4)):
        samples = [s.with_floats(dtype) for s in SAMPLES if s.op.name == name]
        types = [type for sample in samples for type in sample.types]

        def build(b: Builder, *xs: Value, samples: list[Sample] = samples) -> list[Value]:
            given = iter(xs)
            return [b.emit(s.op, *islice(given, len(s.types))) for s in samples]

        module = module_of(build, *types)
        generate_compute(module)
        schedule(module, host_target())
        operands = [array for sample in samples for array in sample.operands()]
        for sample, found in zip(samples, run(module.functions["main"], operands), strict=True):
            expected = sample.op.evaluate(*sample.operands())
            np.testing.assert_allclose(
                found, expected, rtol=tolerance, atol=tolerance, err_msg=str(sample)
            )
