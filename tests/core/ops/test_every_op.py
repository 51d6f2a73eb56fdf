"""Laws that every op obeys; an op joins by rows in the tables of its family's test file.

1. Every op of `ALL` has samples, and its syntax names each of its attributes.
2. The type rule agrees with the reference, for every float type.
3. The reference agrees with NumPy, where NumPy has the function.
4. The loop nests of an op, or of the ops that its rule emits, compute what the reference does.
5. The forward derivative is the limit of differences; the reverse one is its transpose; both again, once
   differentiated.
6. What is printed is parsed back to the same op, and printed the same.
7. Misuse raises the promised error with the promised message.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Module, Op, finish_function, start_function
from nnkit.core.ops import ALL, ArgSort, Concatenate, Literal, Nest, Return, Scan, ShapeCast
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BF16, F16, F32, F64, DType, TensorType
from tests.core.compute.building import module_of, results
from tests.rows import each

from .catalogue import ERRORS, SAMPLES
from .running import Tangents, pushed_forward, result_of
from .samples import ErrorSample, Sample

EPSILON = {F32: 2.0**-23, F16: 2.0**-10, BF16: 2.0**-7}
ERRORS_OF_A_RULE = 4
"""Rounding errors, of the largest element, that a derivative may have: sums of some ten terms."""

DIFFERENTIABLE = [sample for sample in SAMPLES if sample.has_derivative]


def test_every_op_has_samples() -> None:
    assert {type(sample.op) for sample in SAMPLES} == set(ALL)


def test_names_are_unique() -> None:
    assert len({op.name for op in ALL}) == len(ALL)


@each("op", ALL, ids=lambda op: op.name)
def test_syntax_names_every_attribute(op: type[Op]) -> None:
    named = set(re.findall(r"{(\w+)\*?}", op.syntax))
    assert op.syntax.split()[0] == op.name
    assert {field.name for field in dataclasses.fields(op)} <= named  # type: ignore[arg-type]


@each("dtype", [F64, F32, F16, BF16], ids=str)
@each("sample", SAMPLES, ids=str)
def test_type_rule_agrees_with_the_reference(sample: Sample, dtype: DType) -> None:
    sample = sample.with_floats(dtype)
    inferred = sample.op.infer(*sample.types)
    result = np.asarray(sample.op.evaluate(*sample.operands()))
    assert isinstance(inferred, TensorType)
    assert (result.shape, result.dtype) == (inferred.shape, inferred.dtype.numpy)


@each("sample", [s for s in SAMPLES if s.numpy], ids=str)
def test_reference_agrees_with_numpy(sample: Sample) -> None:
    assert sample.numpy is not None
    operands = sample.operands()
    with np.errstate(all="ignore"):
        expected = sample.numpy(*operands)
    result = np.asarray(sample.op.evaluate(*operands))
    np.testing.assert_allclose(result, expected, rtol=1e-14, strict=result.dtype == F64.numpy)


@each("sample", SAMPLES, ids=str)
def test_nest_computes_what_the_reference_does(sample: Sample) -> None:
    module = module_of(lambda b, *xs: b.emit(sample.op, *xs), *sample.types)
    generate_compute(module)
    ops = [i.op for i in module.functions["main"].entry.instructions[:-1]]
    kept = type(sample.op) if isinstance(sample.op, ArgSort | Scan | Concatenate) else ShapeCast
    assert all(isinstance(op, Nest | Literal | kept) for op in ops)
    operands = sample.operands()
    [result] = results(module, operands)
    expected = result_of(sample.op, sample.types, operands)
    np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@each("sample", DIFFERENTIABLE, ids=str)
def test_forward_derivative_is_the_limit_of_differences(sample: Sample) -> None:
    program = Tangents(sample)
    dy = program.forward()
    [expected] = program.difference([program.y], program.dxs)
    np.testing.assert_allclose(program.values([dy], [program.y])[0], expected, rtol=1e-8, atol=1e-8)


@each("sample", DIFFERENTIABLE, ids=str)
def test_reverse_derivative_is_the_transpose_of_the_forward_one(sample: Sample) -> None:
    program = Tangents(sample)
    [dy] = program.values([program.forward()], [program.y])
    cts = program.values(program.reverse(), program.active)
    tangents = [program.given[program.dxs[x]] for x in program.active]
    assert [ct.shape for ct in cts] == [x.tensor.shape for x in program.active]
    pulled = sum(float(np.vdot(ct, dx)) for ct, dx in zip(cts, tangents, strict=True))
    assert float(np.vdot(program.given[program.ct], dy)) == pytest.approx(
        pulled, rel=1e-12, abs=1e-12
    )


@each("dtype", [F32, F16, BF16], ids=str)
@each("sample", DIFFERENTIABLE, ids=str)
def test_derivatives_of_short_floats_are_those_of_f64(sample: Sample, dtype: DType) -> None:
    """At the same point, which is one of the short floats, to some rounding errors of the largest element."""
    short, exact = Tangents(sample.with_floats(dtype), dtype), Tangents(sample)
    exact.rounded_to(short)
    pairs = (
        (short.forward(), exact.forward(), short.y, exact.y),
        *zip(short.reverse(), exact.reverse(), short.active, exact.active, strict=True),
    )
    for found, expected, like, exactly in pairs:
        [value], [limit] = short.values([found], [like]), exact.values([expected], [exactly])
        assert value.shape == limit.shape
        allowed = ERRORS_OF_A_RULE * EPSILON[dtype] * np.abs(limit).max(initial=1)
        np.testing.assert_allclose(value.astype(np.float64), limit, rtol=0, atol=allowed)


@each("mode", ["forward", "reverse"])
@each("sample", [s for s in DIFFERENTIABLE if s.twice], ids=str)
def test_second_derivatives_are_the_limits_of_differences(sample: Sample, mode: str) -> None:
    program = Tangents(sample)
    first = [program.forward()] if mode == "forward" else program.reverse()
    wanted = [value for value in first if value is not None]
    second = pushed_forward(program.b, program.ddxs, wanted)
    expected = program.difference(wanted, program.ddxs)
    found = program.values(second, wanted)
    for value, limit in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, limit, rtol=1e-7, atol=1e-7)


@each("sample", SAMPLES, ids=str)
def test_text_is_read_back(sample: Sample) -> None:
    b = start_function(sample.types)
    y = b.emit(sample.op, *b.block.arguments)
    b.emit_many(Return(), [y])
    text = print_module(Module(functions={"f": finish_function("f", b, y.type)}))
    parsed = parse_module(text)
    assert parsed.functions["f"].entry.instructions[0].op == sample.op
    assert print_module(parsed) == text


@each("sample", ERRORS, ids=str)
def test_misuse_is_explained(sample: ErrorSample) -> None:
    with pytest.raises(sample.error, match=re.escape(sample.message)):
        sample.op.infer(*sample.types)
