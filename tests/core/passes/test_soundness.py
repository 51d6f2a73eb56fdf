"""No law of a default pipeline changes a result bit, whatever the numbers are.

The tables of laws in `tests/core/passes/rules` are the generators: every row is a program on which a law
applies, or nearly does.

1. Every row, for every element type of the kind it is written for, on all pairs of special numbers.
2. Random compositions of rows: the result of one law is what another looks at, with literals for parameters.

Two exceptions are documented: the sign and payload of a NaN, and x², which is rounded better than a power
need be (`core.passes.simplify`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.driver.stages import OPTIMIZABLE, passes_to
from nnkit.core.errors import NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value, finish_function, start_function
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import (
    ALL,
    Aggregate,
    Elementwise,
    Literal,
    Multiply,
    Power,
    Return,
    dense,
    splat,
)
from nnkit.core.ops.aggregate import unpacked
from nnkit.core.passes import (
    Canonicalize,
    CommonSubexpressions,
    DeadCode,
    Flatten,
    Fold,
    Pass,
    Scalarize,
    Simplify,
    run_pipeline,
)
from nnkit.core.passes.constant_propagation import ConstantPropagation
from nnkit.core.passes.literal_broadcasting import LiteralBroadcasting
from nnkit.core.stage import Stage
from nnkit.core.text import print_module
from nnkit.core.types import (
    BF16,
    BOOL,
    DTYPES,
    F16,
    F32,
    F64,
    Array,
    DType,
    FunctionType,
    TensorType,
    TupleType,
    Type,
    elements_of,
)
from nnkit.core.verify import verify
from tests.core.passes.laws import Law, define_types, module_of
from tests.core.passes.rules import (
    test_after_differentiation,
    test_aggregate,
    test_arithmetic,
    test_choice,
    test_contraction,
    test_conversion,
    test_elementwise,
    test_indexing,
    test_movement,
    test_reduction,
    test_shape_query,
)
from tests.programs import flat, same_bits
from tests.recipes import operand_count
from tests.rows import each
from tests.values import Draw

TABLES: dict[str, list[Any]] = {
    "aggregate": test_aggregate.LAWS,
    "arithmetic": test_arithmetic.LAWS,
    "choice": test_choice.LAWS,
    "contraction": test_contraction.LAWS,
    "conversion": test_conversion.LAWS,
    "elementwise": test_elementwise.LAWS,
    "after_differentiation": test_after_differentiation.LAWS,
    "indexing": test_indexing.LAWS,
    "movement": test_movement.LAWS,
    "reduction": test_reduction.LAWS,
    "shape_query": test_shape_query.LAWS,
}

ROWS: list[Law] = [row.values[0] for table in TABLES.values() for row in table]

PIPELINES_BY_NAME: dict[str, Sequence[Pass]] = {
    "simplify": [Simplify()],
    "canonicalize": [Canonicalize()],
    "final": [Canonicalize(final=True)],
    "fold": [Fold()],
    "cse": [CommonSubexpressions()],
    "dce": [DeadCode()],
    "scalarize": [Scalarize()],
    "literal-broadcasting": [LiteralBroadcasting()],
    "constant-propagation": [ConstantPropagation()],
    **{
        f"-O{level}": passes for level, passes in OPTIMIZABLE.items()
    },
    "code generation": (Flatten(), *passes_to(Stage.OPTIMIZED, "main")),
}  # fmt: skip


@cache
def special(dtype: DType) -> Array:
    """Zeros, infinities, NaN, the ends of the normal and subnormal numbers, and numbers that round."""
    if dtype.kind == "boolean":
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
        return np.array(
            [0, 1, -1, 2, -2, 3, -5, 7, low, low + 1, high, high - 1, high // 2 + 1, low // 2]
        ).astype(dtype.numpy)
    least, normal, most, step = {
        "f16": (2.0**-24, 2.0**-14, 65504.0, 2.0**-10),
        "bf16": (2.0**-133, 2.0**-126, 2.0**127 * (2 - 2.0**-7), 2.0**-7),
        "f32": (2.0**-149, 2.0**-126, 2.0**127 * (2 - 2.0**-23), 2.0**-23),
        "f64": (2.0**-1074, 2.0**-1022, math.ldexp(2 - 2.0**-52, 1023), 2.0**-52),
    }[dtype.name]
    positive = [
        0.0, math.inf, least, 3 * least, normal - least, normal, normal * (1 + step), most, most / 2,
        math.sqrt(most), math.sqrt(normal), 1.0, 1 + step, 1 - step / 2, 2.0, 0.5, 1.5, 3.0, 1 / 3, 0.1, 7.25,
    ]  # fmt: skip
    values = np.array([math.nan, *positive, *(-x for x in positive)], np.float64)
    return dtype.round(values.astype(dtype.numpy))


def argument(type: Type, start: int) -> Any:
    """Special numbers, the first one number `start`."""
    elements = elements_of(type)
    if elements is not None:
        return tuple(argument(element, start + 5 * k) for k, element in enumerate(elements))
    assert isinstance(type, TensorType)
    values = special(type.dtype)
    return values[(start + np.arange(type.size)) % len(values)].reshape(type.shape)


def pairs(types: Sequence[Type]) -> Iterator[tuple[Any, ...]]:
    """Arguments in which every special number of the first meets each of the second at some place."""
    tensors = [type for type in types if isinstance(type, TensorType)]
    count = max((len(special(type.dtype)) for type in tensors), default=1)
    size = min((type.size for type in tensors if type.size), default=count)
    starts = range(0, count, size) if size < count else range(1)
    for start in starts:
        for shift in range(count) if len(types) > 1 else range(1):
            yield tuple(argument(type, start + k * shift) for k, type in enumerate(types))


def retyped(types: Sequence[Type], dtype: DType) -> list[Type]:
    """`dtype` in the place of the first element type of its kind."""
    old = next(
        (t.dtype for t in types if isinstance(t, TensorType) and t.dtype.kind == dtype.kind), None
    )
    return [
        TensorType(t.shape, dtype) if isinstance(t, TensorType) and t.dtype == old else t
        for t in types
    ]


def versions(law: Law) -> list[Sequence[Type]]:
    """The parameters as they are written, and with other element types of the same kind."""
    found: list[Sequence[Type]] = [list(law.parameters)]
    for dtype in DTYPES.values():
        types = retyped(law.parameters, dtype)
        if types not in found and _can_build(law, types):
            found.append(types)
    return found


def _can_build(law: Law, types: Sequence[Type]) -> bool:
    """Constants and other operands of a row may be of one element type only."""
    try:
        verify(module_of(types, law.build))
    except NNKitError:
        return False
    return True


def is_square(module: Module) -> bool:
    """Whether it asks for a power that becomes a square, the documented exception."""
    body = module.functions["main"].body
    assert body is not None
    return any(
        isinstance(i.op, Power)
        and isinstance(exponent := i.operands[1].op, Literal)
        and exponent.splat_value() == 2
        for i in walk(body)
    )


def outcome(
    module: Module, arguments: Sequence[Any], type_before: FunctionType | None = None
) -> Any:
    """The result, or the class of the error: an index out of range, say."""
    try:
        return flat(evaluate(module, "main", *arguments, type=type_before))
    except NNKitError as error:
        return type(error)


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return same_bits(one, other)
    return one is other


@pytest.mark.parametrize("law", ROWS, ids=str)
def test_every_law_for_every_type_on_all_pairs(law: Law) -> None:
    for types in versions(law):
        plain, simple, final = (module_of(types, law.build) for _ in range(3))
        run_pipeline(simple, [Simplify()], verifier=verify, verify=True)
        run_pipeline(final, [Canonicalize(final=True), DeadCode()], verifier=verify, verify=True)
        for arguments in pairs(types):
            expected = outcome(plain, arguments)
            for module in (simple, final):
                actual = outcome(module, arguments)
                assert is_same(actual, expected), (
                    f"{law} of {[str(t) for t in types]} at {arguments}: {actual} is not {expected}\n"
                    f"{print_module(module)}"
                )


def binary_ops() -> list[type[Elementwise]]:
    """The elementwise functions of two operands."""
    return [op for op in ALL if issubclass(op, Elementwise) and operand_count(op) == 2]


@each("dtype", DTYPES.values(), ids=str)
@each("op", binary_ops(), ids=lambda op: op.name)
def test_every_number_as_a_constant(op: type[Elementwise], dtype: DType) -> None:
    """Rows have the constants that a law is about; here every special number stands on either side."""
    numbers = special(dtype)
    x = TensorType(numbers.shape, dtype)
    fixed = numbers[numbers != 2] if op is Power else numbers

    def build(b: Builder, x: Value) -> Value:
        constants = [b.emit(splat(x.tensor.with_shape(()), n.item())) for n in fixed]
        pairs = [pair for c in constants for pair in ((x, c), (c, x))]
        results = [b.emit(op(), *pair) for pair in pairs]
        return b.emit(Aggregate(TupleType(tuple(y.type for y in results))), *results)

    if not _can_build(Law("", [x], build, ""), [x]):
        return
    plain, simple = (module_of([x], build) for _ in range(2))
    run_pipeline(simple, [Canonicalize(final=True)], verifier=verify, verify=True)
    expected, actual = (outcome(module, [numbers]) for module in (plain, simple))
    different = [
        k for k, (u, v) in enumerate(zip(actual, expected, strict=True)) if not is_same((u,), (v,))
    ]
    assert not different, [(fixed[k // 2], ("right", "left")[k % 2]) for k in different]


@dataclass(frozen=True)
class Composed:
    """A program made of laws, and arguments."""

    module: Module
    arguments: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{print_module(self.module)}\n{self.arguments}"


@cache
def choices() -> list[tuple[Law, Sequence[Type]]]:
    return [
        (law, types)
        for law in ROWS
        for types in versions(law)
        if not is_square(module_of(types, law.build))
    ]


@st.composite
def compositions(draw: Draw) -> Composed:
    """Up to eight laws, the later ones applied to results of the earlier where types agree."""
    b = start_function(())
    values: list[Value] = []
    arguments: list[Any] = []

    def fresh(type: Type) -> Value:
        given = argument(type, draw(st.integers(0, 43)))
        if isinstance(type, TensorType) and draw(st.integers(0, 3)) == 0:
            if draw(st.booleans()):
                return b.emit(dense(type, given))
            numbers = special(type.dtype)
            number = numbers[draw(st.integers(0, len(numbers) - 1))]
            return b.emit(splat(type, number.item()))
        arguments.append(given)
        return b.argument(type)

    for _ in range(draw(st.integers(1, 8))):
        table = choices()
        if values:
            # mostly a law that takes what is there
            last = values[-1].type
            fitting = [choice for choice in table if last in choice[1]]
            table = fitting if fitting and draw(st.integers(0, 4)) else table
        law, types = table[draw(st.integers(0, len(table) - 1))]
        operands: list[Value] = []
        for type in types:
            known = [x for x in values if x.type == type]
            reuse = known and draw(st.integers(0, 3))
            operands.append(draw(st.sampled_from(known[-3:])) if reuse else fresh(type))
        values += operands
        values.append(law.build(b, *operands))
    results = values[-4:]
    whole = b.emit(Aggregate(TupleType(tuple(x.type for x in results))), *results)
    b.emit_many(Return(), unpacked(b, whole))
    module = Module()
    define_types(module, module.add(finish_function("main", b, whole.type)))
    return Composed(module, tuple(arguments))


@pytest.mark.parametrize("name", PIPELINES_BY_NAME)
@settings(
    max_examples=max(40, settings().max_examples // 2), suppress_health_check=list(HealthCheck)
)
@given(program=compositions())
def test_laws_upon_laws(name: str, program: Composed) -> None:
    expected = outcome(program.module, program.arguments)
    type = program.module.functions["main"].type
    run_pipeline(program.module, PIPELINES_BY_NAME[name], verifier=verify, verify=True)
    actual = outcome(program.module, program.arguments, type)
    assert is_same(actual, expected), (
        f"became\n{print_module(program.module)}\n{actual}\n{expected}"
    )


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_numeric], ids=str)
def test_a_square_is_the_product_which_is_rounded_once(dtype: DType) -> None:
    """The documented exception: the law makes of a power what x · x is, bit for bit."""
    type = TensorType(special(dtype).shape, dtype)

    def power(b: Builder, x: Value) -> Value:
        return b.emit(Power(), x, b.emit(splat(type.with_shape(()), 2)))

    def product(b: Builder, x: Value) -> Value:
        return b.emit(Multiply(), x, x)

    if not _can_build(Law("x²", [type], power, ""), [type]):
        assert dtype.is_integer
        return
    module = module_of([type], power)
    run_pipeline(module, [Simplify()], verifier=verify, verify=True)
    plain = module_of([type], product)
    assert same_bits(
        evaluate(module, "main", special(dtype)), evaluate(plain, "main", special(dtype))
    )


def test_the_numbers_and_types_are_those_that_break_laws() -> None:
    for dtype, normal in ((F16, 2.0**-14), (BF16, 2.0**-126), (F32, 2.0**-126), (F64, 2.0**-1022)):
        values = special(dtype).astype(np.float64)
        assert np.isnan(values).any()
        assert np.isinf(values).sum() == 2
        assert {math.copysign(1, x) for x in values if x == 0} == {1.0, -1.0}
        assert {math.copysign(1, x) for x in values if 0 < abs(x) < normal} == {1.0, -1.0}
    assert sum(len(versions(law)) >= 4 for law in ROWS) > len(ROWS) / 2
    assert BOOL in {t.dtype for law in ROWS for t in law.parameters if isinstance(t, TensorType)}
