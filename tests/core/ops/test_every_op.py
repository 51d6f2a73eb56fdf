"""Laws that every op obeys; an op joins by rows in the tables of its family's test file.

1. Every op of `ALL` has samples, and its syntax names each of its attributes.
2. The type rule agrees with the reference, for every float type.
3. The reference agrees with NumPy, where NumPy has the function.
4. The loop nest of an op computes what the reference does.
5. The forward derivative is the limit of differences; the reverse one is its transpose; both again, once
   differentiated.
6. Misuse raises the promised error with the promised message.
"""

from __future__ import annotations

import dataclasses
import re
import zlib

import numpy as np
import pytest

from nnkit.core.autodiff.rules import jvp_of, vjp_of
from nnkit.core.ir import Builder, Op, Value
from nnkit.core.ops import ALL, Literal, Nest, Scan, ShapeCast
from nnkit.core.types import BF16, F16, F32, F64, Array, DType, TensorType

from .catalogue import ERRORS, SAMPLES
from .running import arguments, pushed_forward, result_of, run
from .samples import ErrorSample, Sample

DIFFERENTIABLE = [sample for sample in SAMPLES if sample.has_derivative]


def test_every_op_has_samples() -> None:
    assert {type(sample.op) for sample in SAMPLES} == set(ALL)


def test_names_are_unique() -> None:
    assert len({op.name for op in ALL}) == len(ALL)


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_syntax_names_every_attribute(op: type[Op]) -> None:
    named = set(re.findall(r"{(\w+)\*?}", op.syntax))
    assert op.syntax.split()[0] == op.name
    assert {field.name for field in dataclasses.fields(op)} <= named  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [F64, F32, F16, BF16], ids=str)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_type_rule_agrees_with_the_reference(sample: Sample, dtype: DType) -> None:
    sample = sample.with_floats(dtype)
    inferred = sample.op.infer(*sample.types)
    result = np.asarray(sample.op.evaluate(*sample.operands()))
    assert isinstance(inferred, TensorType)
    assert (result.shape, result.dtype) == (inferred.shape, inferred.dtype.numpy)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.numpy], ids=str)
def test_reference_agrees_with_numpy(sample: Sample) -> None:
    assert sample.numpy is not None
    operands = sample.operands()
    with np.errstate(all="ignore"):
        expected = sample.numpy(*operands)
    result = np.asarray(sample.op.evaluate(*operands))
    np.testing.assert_allclose(result, expected, rtol=1e-14, strict=result.dtype == F64.numpy)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_nest_computes_what_the_reference_does(sample: Sample) -> None:
    b = Builder()
    xs = arguments(b, sample.types)
    y = sample.op.nest(b, *xs)
    if y is None:
        assert isinstance(sample.op, Scan | ShapeCast)
        return
    assert y.type == sample.op.infer(*sample.types)
    assert all(isinstance(i.op, Nest | Literal | ShapeCast) for i in b.block.instructions)
    operands = sample.operands()
    [result] = run(b, dict(zip(xs, operands, strict=True)), [y])
    expected = result_of(sample.op, sample.types, operands)
    np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


class Tangents:
    """A sample with random tangents of its float operands, and a random cotangent of its result."""

    def __init__(self, sample: Sample) -> None:
        rng = np.random.default_rng(zlib.crc32(str(sample).encode()) + 1)
        self.sample, self.b = sample, Builder()
        self.xs = arguments(self.b, sample.types)
        self.active = [x for x in self.xs if x.tensor.dtype == F64]
        self.dxs = dict(zip(self.active, self._fresh(), strict=True))
        self.ddxs = dict(zip(self.active, self._fresh(), strict=True))
        self.y = self.b.emit(sample.op, *self.xs)
        self.ct = self.b.argument(self.y.tensor)
        given = zip(self.xs, sample.operands(), strict=True)
        random = (*self.dxs.values(), *self.ddxs.values(), self.ct)
        self.given: dict[Value, Array] = dict(given) | {
            value: np.asarray(rng.uniform(-1, 1, value.tensor.shape)) for value in random
        }

    def _fresh(self) -> list[Value]:
        return [self.b.argument(x.tensor) for x in self.active]

    def forward(self) -> Value | None:
        dxs = [self.dxs.get(x) for x in self.xs]
        [dy] = jvp_of(self.b, self.sample.op, [self.y], self.xs, dxs)
        return dy

    def reverse(self) -> list[Value | None]:
        cts = vjp_of(self.b, self.sample.op, [self.y], self.xs, [self.ct])
        return [ct for x, ct in zip(self.xs, cts, strict=True) if x in self.active]

    def difference(self, wanted: list[Value], along: dict[Value, Value]) -> list[Array]:
        """(f(x + h dx) − f(x − h dx)) / 2h of each value wanted, to the fourth order in h."""
        step, sides = 2e-4, []
        for factor in (1, -1, 2, -2):
            moved = {x: self.given[x] + factor * step * self.given[dx] for x, dx in along.items()}
            sides.append(run(self.b, self.given | moved, wanted))
        return [
            (8 * (near - far) - (further - furthest)) / (12 * step)
            for near, far, further, furthest in zip(*sides, strict=True)
        ]

    def values(self, wanted: list[Value | None], like: list[Value]) -> list[Array]:
        """The wanted values, zeros for None."""
        found = iter(run(self.b, self.given, [value for value in wanted if value is not None]))
        pairs = zip(wanted, like, strict=True)
        return [np.zeros(x.tensor.shape) if v is None else next(found) for v, x in pairs]


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_forward_derivative_is_the_limit_of_differences(sample: Sample) -> None:
    program = Tangents(sample)
    dy = program.forward()
    [expected] = program.difference([program.y], program.dxs)
    np.testing.assert_allclose(program.values([dy], [program.y])[0], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_reverse_derivative_is_the_transpose_of_the_forward_one(sample: Sample) -> None:
    program = Tangents(sample)
    [dy] = program.values([program.forward()], [program.y])
    cts = program.values(program.reverse(), program.active)
    tangents = [program.given[program.dxs[x]] for x in program.active]
    assert [ct.shape for ct in cts] == [x.tensor.shape for x in program.active]
    pulled = sum(float(np.vdot(ct, dx)) for ct, dx in zip(cts, tangents, strict=True))
    assert float(np.vdot(program.given[program.ct], dy)) == pytest.approx(pulled, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.twice], ids=str)
def test_second_derivatives_are_the_limits_of_differences(sample: Sample, mode: str) -> None:
    program = Tangents(sample)
    first = [program.forward()] if mode == "forward" else program.reverse()
    wanted = [value for value in first if value is not None]
    second = pushed_forward(program.b, program.ddxs, wanted)
    expected = program.difference(wanted, program.ddxs)
    found = program.values(second, wanted)
    for value, limit in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, limit, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("sample", ERRORS, ids=str)
def test_misuse_is_explained(sample: ErrorSample) -> None:
    with pytest.raises(sample.error, match=re.escape(sample.message)):
        sample.op.infer(*sample.types)
