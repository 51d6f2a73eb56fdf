"""Types and constants of LLVM IR."""

import struct

import numpy as np
import pytest

from nnkit.jit.emit.writer import (
    FLOAT,
    I1,
    I8,
    I64,
    PTR,
    FunctionWriter,
    Register,
    ScalarName,
    constant,
    constants,
    llvm_type,
)

from .compiled import elementwise

VALUES = [
    0.0,
    -0.0,
    1.0,
    0.1,
    -1e-45,
    1e-320,
    3.4e38,
    1e300,
    float("inf"),
    float("-inf"),
    65519.0,
    65520.0,
    1e-8,
]


def written(scalar: ScalarName, value: float) -> int:
    """The bits of a constant, as LLVM reads it."""
    integers: dict[int, ScalarName] = {16: "i16", 32: "i32", 64: "i64"}
    integer = integers[llvm_type(scalar).bits]

    def emit(w: FunctionWriter, x: Register) -> Register:
        return w.bitcast(constant(llvm_type(scalar), value), integer)

    result = elementwise(emit, integer, 1)(np.zeros(1, f"int{llvm_type(scalar).bits}"))
    return int(result[0]) & ((1 << llvm_type(scalar).bits) - 1)


@pytest.mark.parametrize("value", VALUES)
def test_float_constants_are_exact(value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        assert written("double", value) == struct.unpack("<Q", struct.pack("<d", value))[0]
        assert written("float", value) == int(np.float32(value).view(np.uint32))
        assert written("half", value) == int(np.float16(value).view(np.uint16))


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80), (-0.0, 0x8000), (float("inf"), 0x7F80), (1e300, 0x7F80), (-1e300, 0xFF80),
        (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-50, 0x3F81), (3.3895314e38, 0x7F7F),
    ],
)  # fmt: skip
def test_bfloat_constants_round_to_nearest_even(value: float, bits: int) -> None:
    assert written("bfloat", value) == bits


def test_nan() -> None:
    assert written("double", float("nan")) == 0x7FF8000000000000
    assert written("float", float("nan")) == 0x7FC00000
    assert written("half", float("nan")) == 0x7E00
    assert written("bfloat", float("nan")) == 0x7FC0


def test_integers_wrap_and_splat() -> None:
    assert constant(I8, 255).text == "-1"
    assert constant(I64, -(2**63)).text == str(-(2**63))
    assert constant(I1, 1).text == "true"
    assert constant(llvm_type("i32", 4), 7).typed == "<4 x i32> splat (i32 7)"
    assert constants("i32", [0, 1]).typed == "<2 x i32> <i32 0, i32 1>"
    assert constants("i32", [5]).typed == "i32 5"


def test_null() -> None:
    assert constant(PTR, 0).text == "null"
    with pytest.raises(ValueError, match="null"):
        constant(PTR, 8)


def test_types() -> None:
    vector = llvm_type("float", 16)
    assert (vector.text, vector.suffix, vector.size, vector.bits) == (
        "<16 x float>",
        "v16f32",
        64,
        32,
    )
    assert vector is llvm_type("float", 16)
    assert vector.with_lanes(1) is FLOAT
    assert vector.with_scalar("i1").text == "<16 x i1>"
    assert FLOAT.is_float and not FLOAT.is_integer and I1.is_integer
