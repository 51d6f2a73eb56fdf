"""Laws of the functions of matrices: those of every op, at matrices that are well away from singular ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nnkit.core.ir import Builder, Module, Op, Value, finish_function, start_function
from nnkit.core.ops import (
    MATRIX_FUNCTIONS,
    Cholesky,
    Eigh,
    LogDeterminant,
    PseudoInverse,
    Return,
    Solve,
    Svd,
)
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, F64, Array, TensorType
from tests.core.compute.building import module_of, results

from . import test_decomposition, test_linear_systems, test_singular_values
from .running import Tangents, pushed_forward
from .samples import ErrorSample, Sample

_FAMILIES = (test_linear_systems, test_decomposition, test_singular_values)
SAMPLES: list[Sample] = [sample for family in _FAMILIES for sample in family.SAMPLES]
ERRORS: list[ErrorSample] = [sample for family in _FAMILIES for sample in family.ERRORS]
NAMES = [op.name for op in MATRIX_FUNCTIONS]


def of_name(name: str) -> list[Sample]:
    return [sample for sample in SAMPLES if sample.op.name == name]


def test_every_one_has_samples() -> None:
    assert {type(sample.op) for sample in SAMPLES} == set(MATRIX_FUNCTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_type_rule_and_numpy_agree_with_the_reference(name: str) -> None:
    for sample in of_name(name):
        for dtype in (F64, F32):
            short = sample.with_floats(dtype)
            inferred = short.op.infer(*short.types)
            result = np.asarray(short.op.evaluate(*short.operands()))
            assert isinstance(inferred, TensorType)
            assert (result.shape, result.dtype) == (inferred.shape, inferred.dtype.numpy)
        if sample.numpy is not None:
            expected = sample.numpy(*sample.operands())
            found = sample.op.evaluate(*sample.operands())
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_forward_derivative_is_the_limit_of_differences(name: str) -> None:
    for sample in of_name(name):
        program = Tangents(sample)
        [expected] = program.difference([program.y], program.dxs)
        [found] = program.values([program.forward()], [program.y])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7, err_msg=str(sample))


@pytest.mark.parametrize("name", NAMES)
def test_reverse_derivative_is_the_transpose_of_the_forward_one(name: str) -> None:
    for sample in of_name(name):
        program = Tangents(sample)
        [dy] = program.values([program.forward()], [program.y])
        cts = program.values(program.reverse(), program.active)
        tangents = [program.given[program.dxs[x]] for x in program.active]
        pulled = sum(float(np.vdot(ct, dx)) for ct, dx in zip(cts, tangents, strict=True))
        pushed = float(np.vdot(program.given[program.ct], dy))
        assert pushed == pytest.approx(pulled, rel=1e-10, abs=1e-10), str(sample)


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_are_the_limits_of_differences(name: str) -> None:
    for sample in of_name(name)[:: 1 if name != "triangularSolve" else 3]:
        for mode in ("forward", "reverse"):
            program = Tangents(sample)
            first = [program.forward()] if mode == "forward" else program.reverse()
            wanted = [value for value in first if value is not None]
            second = pushed_forward(program.b, program.ddxs, wanted)
            expected = program.difference(wanted, program.ddxs)
            found = program.values(second, wanted)
            for value, limit in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, limit, rtol=1e-6, atol=1e-6, err_msg=str(sample))


@pytest.mark.parametrize("name", NAMES)
def test_text_is_read_back(name: str) -> None:
    for sample in of_name(name):
        b = start_function(sample.types)
        y = b.emit(sample.op, *b.block.arguments)
        b.emit_many(Return(), [y])
        text = print_module(Module(functions={"f": finish_function("f", b, y.type)}))
        parsed = parse_module(text)
        assert parsed.functions["f"].entry.instructions[0].op == sample.op
        assert print_module(parsed) == text


@pytest.mark.parametrize("sample", ERRORS, ids=str)
def test_misuse_is_explained(sample: ErrorSample) -> None:
    with pytest.raises(sample.error, match=re.escape(sample.message)):
        sample.op.infer(*sample.types)


def test_a_matrix_without_a_result_is_nan_alone() -> None:
    """What is not finite, singular, or not positive definite."""
    a = np.stack([np.eye(2), [[np.nan, 0], [0, 1]], [[1, 1], [1, 1]], [[np.inf, 0], [0, 1]]])
    given: dict[Op, int | None] = {
        Solve(): 2,
        Cholesky(): 2,
        LogDeterminant(): None,
        Eigh(): None,
        Svd(): None,
        PseudoInverse(): None,
    }
    for op, singular in given.items():
        others: dict[Op, list[Array]] = {Solve(): [a], PseudoInverse(): [np.array(0.1)]}
        operands = [a, *others.get(op, [])]
        found = np.asarray(op.evaluate(*operands))
        missing = [bool(np.isnan(x).all()) for x in found]
        assert missing == [False, True, singular == 2, True], op
        assert np.isfinite(found[0]).all()


def test_code_is_generated_for_the_pseudoinverse_by_a_decomposition() -> None:
    [sample, *_] = of_name("pseudoInverse")

    def build(b: Builder, *xs: Value) -> Value:
        return b.emit(sample.op, *xs)

    module = module_of(build, *sample.types)
    [found] = results(module, sample.operands())
    np.testing.assert_allclose(found, np.linalg.pinv(sample.operands()[0]), atol=1e-13)
