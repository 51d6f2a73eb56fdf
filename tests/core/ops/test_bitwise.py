"""Operations on bits: samples for the laws, among them shifts by all bits and more, and backwards."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import DTypeError
from nnkit.core.ops import BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight

from .samples import ErrorSample, Sample, boolean, f32, i8, i32, i64

LOGIC = [
    (BitwiseAnd(), np.bitwise_and),
    (BitwiseOr(), np.bitwise_or),
    (BitwiseXor(), np.bitwise_xor),
]
SHIFTS = [(ShiftLeft(), np.left_shift), (ShiftRight(), np.right_shift)]
NUMBERS = np.array([-128, -77, -1, 0, 1, 99, 127], np.int8)
DISTANCES = np.array([0, 1, 6, 7, 8, 100, -1], np.int8)

SAMPLES = [
    *(
        Sample(op, types, numpy=f)
        for op, f in [*LOGIC, *SHIFTS]
        for types in ((i64(), i64()), (i32(2, 3), i32(3)), (i8(0), i8(0)))
    ),
    *(
        Sample(op, (i8(7, 1), i8(7)), (NUMBERS.reshape(7, 1), DISTANCES), numpy=f)
        for op, f in [*LOGIC, *SHIFTS]
    ),
]
ERRORS = [
    ErrorSample(
        BitwiseAnd(), (f32(2), f32(2)), "bitwiseAnd takes integer elements, not f32", DTypeError
    ),
    ErrorSample(
        BitwiseOr(), (boolean(2), boolean(2)), "bitwiseOr takes integer elements", DTypeError
    ),
    ErrorSample(BitwiseXor(), (f32(2), f32(2)), "bitwiseXor takes integer elements", DTypeError),
    ErrorSample(
        ShiftLeft(), (i32(2), i64(2)), "cannot shift i32[2] and i64[2]: element types", DTypeError
    ),
    ErrorSample(
        ShiftRight(), (f32(2), f32(2)), "shiftRight takes integer elements, not f32", DTypeError
    ),
]
