"""Laws of casts."""

from __future__ import annotations

import itertools

import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ops import DataTypeCast
from nnkit.core.passes.rules.conversion import is_exact
from nnkit.core.types import BF16, BOOL, DTYPES, F16, F32, F64, I8, I16, I32, I64, DType, TensorType
from tests.core.passes.laws import Law, check, module_of, rows, special
from tests.programs import same_bits
from tests.rows import each

X = TensorType((11,), F32)
H = TensorType((11,), F16)
N = TensorType((9,), I8)
M = TensorType((9,), I16)


def cast(*dtypes: DType):  # type: ignore[no-untyped-def]
    """Builds one cast after the other."""

    def build(b, x):  # type: ignore[no-untyped-def]
        for dtype in dtypes:
            x = b.emit(DataTypeCast(dtype), x)
        return x

    return build


LAWS = rows(
    ("to its own type", [X], cast(F32), ""),
    ("to a wider type and back", [X], cast(F64, F32), ""),
    ("by way of a wider type", [H], cast(F32, F64), "dataTypeCast"),
    ("narrowing after widening", [X], cast(F64, F16), "dataTypeCast"),
    ("to a narrower type and back stays", [X], cast(F16, F32), "dataTypeCast dataTypeCast"),
    ("f16 by way of bf16 stays", [H], cast(BF16, F32), "dataTypeCast dataTypeCast"),
    ("integers widen", [N], cast(I32, I16), "dataTypeCast"),
    ("integers that wrap around stay", [M], cast(I8, I32), "dataTypeCast dataTypeCast"),
    ("an integer through a float", [N], cast(F32, I64), "dataTypeCast"),
    ("an integer that a float stops at the ends", [M], cast(F32, I8), "dataTypeCast dataTypeCast"),
    ("truth through a number", [TensorType((3,), BOOL)], cast(I8, F32), "dataTypeCast"),
    ("numbers through truth stay", [N], cast(BOOL, I8), "dataTypeCast dataTypeCast"),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)


@each(("source", "target"), list(itertools.product(DTYPES.values(), repeat=2)), ids=str)
def test_exact_casts_can_be_undone(source: DType, target: DType) -> None:
    x = special(TensorType((11,), source))
    there_and_back = module_of([TensorType((11,), source)], cast(target, source))
    if is_exact(source, target):
        assert same_bits(evaluate(there_and_back, "main", x), x)


@each("dtypes", list(itertools.product(DTYPES.values(), repeat=3)), ids=str)
def test_every_pair_of_casts_keeps_its_bits(dtypes: tuple[DType, DType, DType]) -> None:
    source, middle, target = dtypes
    x = TensorType((11,), source)
    module = module_of([x], cast(middle, target))
    expected = evaluate(module, "main", special(x))
    law = Law("", [x], cast(middle, target), _expected(source, middle, target))
    check(law)
    assert same_bits(evaluate(module, "main", special(x)), expected)


def _expected(source: DType, middle: DType, target: DType) -> str:
    through_float = source.is_integer and middle.is_float and target.is_integer
    skipped = is_exact(source, middle) and not (through_float and not is_exact(source, target))
    if middle == target or source == middle:
        skipped = True
    steps = (source != target) if skipped else (source != middle) + (middle != target)
    return " ".join(["dataTypeCast"] * steps)
