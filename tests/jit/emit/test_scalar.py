"""Every elementwise op means the same in LLVM as in the evaluator, for every element type and number of lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nnkit.core.compute.generate import generate_compute
from nnkit.core.errors import InternalError
from nnkit.core.ir.builder import Builder
from nnkit.core.ir.instruction import Op, Value
from nnkit.core.ops import ALL
from nnkit.core.ops.arithmetic import Divide, FloorDivide, Maximum, Minimum, Modulo, TruncateDivide
from nnkit.core.ops.bits import BitCast, Reinterpret
from nnkit.core.ops.builtin import Builtin
from nnkit.core.ops.casting import DataTypeCast
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.comparison import Select
from nnkit.core.ops.contraction import Dot
from nnkit.core.ops.convolution import Convolve
from nnkit.core.ops.forms import ADDITION, DIVISION, Elementwise
from nnkit.core.ops.literal import constant
from nnkit.core.ops.nest import Access, Nest, Output, build_nest, identity_access
from nnkit.core.ops.random import Threefry
from nnkit.core.ops.reduction import Reduce
from nnkit.core.ops.scan import Scan
from nnkit.core.ops.scatter import Scatter, Update
from nnkit.core.ops.special import Digamma, Lgamma, Trigamma
from nnkit.core.ops.transcendental import FloatFunction, FlushedExp
from nnkit.core.ops.window import ReduceWindow
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    Array,
    DType,
    TensorType,
    scalar,
)
from nnkit.jit.emit.elements import register_type
from nnkit.jit.emit.scalar import rule_of, write_scalar
from nnkit.jit.emit.writer import Argument, ModuleWriter
from tests.core.compute.building import module_of
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.samples import Sample
from tests.nearest import FORMATS, all_nearest, operands
from tests.rows import each
from tests.values import same_bits

from .running import ALL_DTYPES, Decisions, expected, run, run_all, sample, scheduled, tolerance

ELEMENTWISE = [op for op in ALL if issubclass(op, Elementwise)]

INTERESTING = [
    0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 7.0, 100.0, 1e-3, 0.9999,
    -0.9999, 12345.678, 65504.0, 1e-7, 1e-40, -1e-40, np.inf, -np.inf, np.nan,
]  # fmt: skip
FLOAT_LIMITS = [
    3e38,
    -3e38,
    1e300,
    -1e300,
    2.0**31,
    -(2.0**31),
    2.0**63,
    -(2.0**63),
    2.0**62,
    127.5,
]
INTEGERS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 100, -100, 127, -128]

UNSTABLE = (Lgamma, Digamma, Trigamma)
"""Near their zeros and poles the error is not relative; the tests of the functions themselves look there."""


FLOATS = [dtype for dtype in ALL_DTYPES if dtype.is_float]


def values_of(dtype: DType) -> Array:
    """Numbers that careless code gets wrong."""
    if dtype.kind == "boolean":
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return np.array([*INTEGERS, info.min, info.min + 1, info.max, info.max - 1], dtype.numpy)
    with np.errstate(all="ignore"):
        return dtype.round(np.array([*INTERESTING, *FLOAT_LIMITS, *_ends(dtype)]))


def _ends(dtype: DType) -> list[float]:
    """The least subnormal and normal, and the largest number, with both signs."""
    precision, least, largest = FORMATS[dtype]
    ends = [
        2.0 ** (least - precision + 1),
        2.0**least,
        (2.0 - 2.0 ** (1 - precision)) * 2.0**largest,
    ]
    return [*ends, *(-end for end in ends)]


def pairs(values: Array) -> list[Array]:
    """Every value with every other."""
    x, y = np.meshgrid(values, values, indexing="ij")
    return [np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())]


def check(op: Op, types: list[TensorType], arrays: list[Array], *, ulps: float = 0.0) -> None:
    """Assert that all numbers of lanes agree with the evaluator, to the bit unless some `ulps` are allowed."""

    def build(b: Builder, *xs: Value) -> list[Value]:
        result = op.nest(b, *xs)
        assert result is not None
        return [result]

    functions = [
        scheduled(types, build, Decisions(vector=0, lanes=lanes)) for lanes in (1, 4, 8, 16)
    ]
    (wanted,) = expected(functions[0], arrays)
    for lanes, (found,) in zip((1, 4, 8, 16), run_all(functions, arrays), strict=True):
        if not ulps or wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted, strict=True, err_msg=str(lanes))
            assert same_bits(found, wanted), (lanes, differing(arrays, found, wanted))
        else:
            np.testing.assert_allclose(found, wanted, rtol=ulps, atol=tiny(types[0].dtype))
            zeros = (found == 0) & (wanted == 0)
            assert same_bits(found[zeros], wanted[zeros]), differing(arrays, found, wanted)


def differing(arrays: list[Array], found: Array, wanted: Array) -> list[object]:
    """Operands, what was found and what was wanted, where zeros differ in sign."""
    wrong = np.signbit(found) != np.signbit(wanted)
    return [(*(x[wrong] for x in arrays), found[wrong], wanted[wrong])]


def tiny(dtype: DType) -> float:
    """Results below the least normal number may differ by a few of the least."""
    return {"f16": 1e-6, "f32": 1e-44, "f64": 1e-322, "bf16": 1e-39}.get(dtype.name, 0.0)


def test_every_elementwise_op_has_a_rule() -> None:
    assert all(callable(rule_of(op)) for op in (*ELEMENTWISE, DataTypeCast, Reinterpret))
    with pytest.raises(InternalError, match="dot cannot stand in the body of a nest"):
        rule_of(Dot)


def _weight(line: str) -> int:
    """About how many additions take as long as an instruction; a function of libm as long as two divisions."""
    if "call" in line and "@llvm." not in line:
        return 2 * DIVISION
    return DIVISION if re.search(r"[fsu](div|rem) |sqrt", line) else ADDITION


@each("dtype", [F32, F64, I64], ids=str)
@each("op_class", ELEMENTWISE, ids=lambda op: op.name)
def test_costs_are_near_the_instructions_that_are_written(
    op_class: type[Elementwise], dtype: DType
) -> None:
    """Within a factor of 12: of long code several instructions go at a time, and LLVM joins the 11 of max."""
    if dtype.kind not in op_class.accepts:
        return
    op = op_class()
    dtypes = [dtype] * op.syntax.count("{")
    if op_class is Select:
        dtypes[-1] = BOOL
    result = op.infer(*map(scalar, dtypes)).dtype
    parameters = [Argument(register_type(operand)) for operand in dtypes]
    w = ModuleWriter().function("f", parameters, register_type(result))
    write_scalar(w, op, dtypes, result, w.parameters)
    written = sum(_weight(line) for line in w.lines)
    assert 0.5 * op.cost <= written <= 12 * op.cost


OF_ONE_TYPE = [
    (op, dtype)
    for op in ELEMENTWISE
    if op not in (Select, Threefry)
    for dtype in ALL_DTYPES
    if dtype.kind in op.accepts
]
"""Every op with every element type it takes; those of mixed types have tests of their own."""


@pytest.mark.parametrize(
    ("op_class", "dtype"), OF_ONE_TYPE, ids=lambda x: getattr(x, "name", str(x))
)
def test_elementwise(op_class: type[Elementwise], dtype: DType) -> None:
    op = op_class()
    values = values_of(dtype)
    if isinstance(op, UNSTABLE):
        values = dtype.round(np.array([0.3, 0.7, 3.0, 4.5, 30.0, 1e3], dtype.numpy))
    count = op.syntax.count("{")
    arrays = [values] if count == 1 else pairs(values)
    types = [TensorType(arrays[0].shape, dtype)] * count
    ulps = tolerance(dtype) if isinstance(op, FloatFunction | FlushedExp) else 0.0
    check(op, types, arrays, ulps=ulps)


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("op", [Minimum(), Maximum()], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes_with_a_constant(op: Elementwise, number: float, dtype: DType) -> None:
    """Which is fewer instructions, on either side."""
    values = values_of(dtype)
    type = TensorType(values.shape, dtype)
    at = identity_access(type.shape)

    def build(b: Builder, x: Value) -> list[Value]:
        def body(inner: Builder, _: object, read: list[Value]) -> list[Value]:
            one = constant(inner, scalar(dtype), number)
            return [inner.emit(op, *read, one), inner.emit(op, one, *read)]

        return list(build_nest(b, type.shape, [(x, Access(at))], [Output(type, at)] * 2, body))

    for lanes in (1, 8):
        function = scheduled([type], build, Decisions(vector=0, lanes=lanes))
        for found, wanted in zip(
            run(function, [values]), expected(function, [values]), strict=True
        ):
            assert same_bits(found, wanted), differing([values], found, wanted)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_select(dtype: DType) -> None:
    x, y = pairs(values_of(dtype))
    condition = sample(TensorType(x.shape, BOOL))
    types = [TensorType(x.shape, dtype), TensorType(x.shape, dtype), TensorType(x.shape, BOOL)]
    check(Select(), types, [x, y, condition])


SAME_WIDTH = [
    (source, target)
    for source in ALL_DTYPES
    for target in ALL_DTYPES
    if source.bits == target.bits and source.is_numeric and target.is_numeric
]


@pytest.mark.parametrize("apart", [False, True], ids=["fused", "apart"])
@pytest.mark.parametrize(("source", "target"), SAME_WIDTH, ids=str)
def test_reinterpret(source: DType, target: DType, apart: bool) -> None:
    """All bits: of NaNs too, which integers tell apart."""
    stored = np.random.default_rng(1).integers(0, 256, 4000 * source.bytes, np.uint8)
    if source.bytes == 2:
        stored = np.arange(1 << 16).astype(np.uint16).view(np.uint8)
    x = source.load(stored.view(source.storage))
    ops: list[Op] = [Reinterpret(target), Reinterpret(OF_BYTES[source.bytes])]
    type = TensorType(x.shape, source)
    function = scheduled(
        [type], lambda b, v: _chain(b, v, ops, apart=apart), Decisions(vector=0, lanes=16)
    )
    np.testing.assert_array_equal(run(function, [x]), expected(function, [x]))


OF_BYTES = {dtype.bytes: dtype for dtype in (I8, I16, I32, I64)}


def _chain(b: Builder, x: Value, ops: list[Op], *, apart: bool) -> list[Value]:
    """One op after the other, in one nest, or each in its own with its result in memory."""
    if apart:
        for op in ops:
            (x,) = mapped(b, x, [op])
        return [x]
    return mapped(b, x, ops)


def mapped(b: Builder, x: Value, ops: list[Op]) -> list[Value]:
    """A nest that applies `ops` to every element."""
    result = x.tensor
    for op in ops:
        result = op.infer(result)
    at = identity_access(result.shape)

    def body(inner: Builder, _: object, read: list[Value]) -> list[Value]:
        (value,) = read
        for op in ops:
            value = inner.emit(op, value)
        return [value]

    return list(build_nest(b, result.shape, [(x, Access(at))], [Output(result, at)], body))


@pytest.mark.parametrize("target", [dtype for dtype in ALL_DTYPES if dtype.is_numeric], ids=str)
def test_bit_cast_of_other_widths(target: DType) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**31), 2**31 - 1, 16, dtype=np.int32)
    op = BitCast(TensorType((512 // target.bits,), target))
    module = module_of(lambda b, value: b.emit(op, value), TensorType((16,), I32))
    generate_compute(module)
    schedule(module, Target())
    (found,) = run(module.functions["main"], [x])
    np.testing.assert_array_equal(found, op.evaluate(x))


def test_threefry() -> None:
    type = TensorType((37,), I64)
    bits = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (2, 37), dtype=np.int64)
    check(Threefry(), [type, type], list(bits))


@pytest.mark.parametrize("to", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_casts(dtype: DType, to: DType) -> None:
    values = values_of(dtype)
    if dtype.is_float:
        more = np.linspace(-300, 300, 1201).astype(dtype.numpy)
        values = dtype.round(np.concatenate([values, more]))
    check(DataTypeCast(to), [TensorType(values.shape, dtype)], [values])


@pytest.mark.parametrize("to", FLOATS, ids=str)
@pytest.mark.parametrize("dtype", [dtype for dtype in ALL_DTYPES if dtype.is_numeric], ids=str)
def test_casts_round_once(dtype: DType, to: DType) -> None:
    """Against fractions: NumPy, of which the evaluator is made, could be wrong too."""
    x = operands(dtype, to, np.random.default_rng(3), 100)
    type, op = TensorType(x.shape, dtype), DataTypeCast(to)
    wanted = all_nearest(x.tolist(), to)
    for lanes in (1, 16):
        function = scheduled([type], lambda b, v: [op.nest(b, v)], Decisions(vector=0, lanes=lanes))
        (found,) = run(function, [x])
        assert same_bits(found, wanted), differing([x], found, wanted)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 64, 100, -1, -3, 0])
@pytest.mark.parametrize(
    "op", [FloorDivide(), Modulo(), TruncateDivide(), Divide()], ids=lambda op: op.name
)
@pytest.mark.parametrize("dtype", [I32, I64], ids=str)
def test_integers_by_constants(op: Elementwise, divisor: int, dtype: DType) -> None:
    values = values_of(dtype)
    type = TensorType(values.shape, dtype)

    def build(b: Builder, x: Value) -> list[Value]:
        at = identity_access(type.shape)

        def body(inner: Builder, _: object, read: list[Value]) -> list[Value]:
            return [inner.emit(op, read[0], constant(inner, scalar(dtype), divisor))]

        return list(build_nest(b, type.shape, [(x, Access(at))], [Output(type, at)], body))

    for lanes in (1, 8):
        function = scheduled([type], build, Decisions(vector=0, lanes=lanes))
        np.testing.assert_array_equal(run(function, [values]), expected(function, [values]))


def test_what_has_no_rule_is_a_bug() -> None:
    w = ModuleWriter().function("f", [], None)
    with pytest.raises(InternalError, match="dot cannot stand in the body of a nest"):
        write_scalar(w, Dot(), [F64], F64, [])


NESTS = [
    sample
    for sample in SAMPLES
    if not isinstance(sample.op, Scan | Dot) and not isinstance(sample.op, UNSTABLE)
]


INEXACT = (FloatFunction, FlushedExp, Reduce, ReduceWindow, Convolve, Builtin)
"""Whose floats depend on the order of work, or on the library of functions."""


@each("given", NESTS, ids=str)
def test_every_sample_of_every_op(given: Sample) -> None:
    """The nests that ops become, on the operands of their own tests."""

    def build(b: Builder, *xs: Value) -> list[Value]:
        result = given.op.nest(b, *xs)
        return [xs[0] if result is None else result]

    arrays = given.operands()
    ways = (Decisions(), Decisions(vector=0, lanes=8), Decisions(accumulators=4))
    functions = [scheduled(list(given.types), build, decided) for decided in ways]
    if not any(isinstance(i.op, Nest) for i in functions[0].entry.instructions):
        return
    (wanted,) = expected(functions[0], arrays)
    for (found,) in run_all(functions, arrays):
        is_sum = isinstance(given.op, Scatter) and given.op.update is Update.ADD
        exact = not (is_sum or isinstance(given.op, INEXACT)) or wanted.dtype.kind != "f"
        if exact:
            np.testing.assert_array_equal(found, wanted, strict=True)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


def test_sums_of_halves_are_rounded_once() -> None:
    """4096 ones are 4096, where adding in f16 would stop at 2048."""
    type = TensorType((4096,), F16)
    op = Reduce(Combinator.ADD, (0,))
    for decided in (Decisions(), Decisions(vector=0, lanes=16)):
        function = scheduled([type], lambda b, x: [op.nest(b, x)], decided)
        assert run(function, [np.ones(4096, np.float16)])[0] == 4096
