"""What the elementary functions share: the layout of float types, constants like an operand,
polynomials.

Everything is branch-free and works on any number of lanes; `select` repairs special values at the
end.
"""

import math
import struct
from collections.abc import Callable, Sequence

from ....core.lazy_dataclass import dataclass
from ..writer import FunctionWriter, Register, ScalarName, constant

_LONG = 7
"""Coefficients from which x² is there before a polynomial has used as many."""

Unary = Callable[[FunctionWriter, Register], Register]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Where the fields of a float are, and what the reductions of exp and log need of it."""

    integer: ScalarName
    mantissa_bits: int
    bias: int
    round_constant: float
    """1.5 · 2^mantissa: adding and subtracting it rounds to an integer, which then stands in the low bits."""
    ln2_high: float
    """So short that its product with any exponent is exact."""
    ln2_low: float
    tiny: float
    """Below this x and f(x) = x + O(x²) are the same number."""
    smallest_normal: float

    def bits(self, value: float) -> int:
        """The number that the bits of `value` are when read as an integer."""
        code = "f" if self.integer == "i32" else "d"
        return int.from_bytes(struct.pack(f">{code}", value))


FORMATS: dict[ScalarName, FloatFormat] = {
    "float": FloatFormat(
        "i32", 23, 127, 12582912.0, 0.693145751953125, 1.428606765330187e-06, 2.0**-25, 2.0**-126
    ),
    "double": FloatFormat(
        "i64",
        52,
        1023,
        6755399441055744.0,
        0.6931471805598903,
        5.497923018708371e-14,
        2.0**-54,
        2.0**-1022,
    ),
}


def format_of(x: Register) -> FloatFormat:
    """The format of a register's lanes, which must be `float` or `double`."""
    return FORMATS[x.type.scalar]


def like(x: Register, value: float) -> Register:
    """The constant `value` in the type of x."""
    return constant(x.type, value)


def horner(w: FunctionWriter, x: Register, coefficients: Sequence[float]) -> Register:
    """c₀ + x (c₁ + x (c₂ + …)), one `multiply_add` each: the scheme with the best throughput."""
    result = like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = w.multiply_add(x, result, like(x, coefficient))
    return result


def by_fours(
    w: FunctionWriter, x: Register, square: Register, coefficients: Sequence[float]
) -> Register:
    """The polynomial of `horner`; a long one by pairs a + b · x and fours of them in x².

    Fours are added up by Horner's rule in x⁴: a multiplication more than his alone, and a third of the latency.
    """
    if len(coefficients) < _LONG:
        return horner(w, x, coefficients)
    pairs = [horner(w, x, coefficients[i : i + 2]) for i in range(0, len(coefficients), 2)]
    fours = [
        w.multiply_add(square, pairs[i + 1], pairs[i]) if i + 1 < len(pairs) else pairs[i]
        for i in range(0, len(pairs), 2)
    ]
    fourth = w.fmul(square, square)
    result = fours[-1]
    for each in fours[-2::-1]:
        result = w.multiply_add(fourth, result, each)
    return result


def two_sum(w: FunctionWriter, x: Register, y: Register) -> tuple[Register, Register]:
    """x + y and the error of that rounding, exactly (nan where the sum is infinite). Source: Knuth, TAOCP 2, 4.2.2."""
    total = w.fadd(x, y)
    part = w.fsub(total, x)
    error = w.fadd(w.fsub(x, w.fsub(total, part)), w.fsub(y, part))
    return total, error


def quick_two_sum(w: FunctionWriter, x: Register, y: Register) -> tuple[Register, Register]:
    """`two_sum` for |x| ≥ |y| or x = 0. Source: Dekker 1971."""
    total = w.fadd(x, y)
    return total, w.fsub(y, w.fsub(total, x))


def two_product(w: FunctionWriter, x: Register, y: Register) -> tuple[Register, Register]:
    """x · y and the error of that rounding, exactly; without fma below `residual_limit`. Source: Dekker 1971."""
    product = w.fmul(x, y)
    if w.has_fma:
        return product, w.fma(x, y, w.fneg(product))
    if x.type.scalar == "float":
        return product, w.fneg(_residual_in_double(w, product, x, y))
    (x, x_low), (y, y_low) = _halves(w, x), _halves(w, y)
    error = w.fsub(w.fmul(x, y), product)
    error = w.fadd(w.fadd(error, w.fmul(x, y_low)), w.fmul(x_low, y))
    return product, w.fadd(error, w.fmul(x_low, y_low))


def residual(w: FunctionWriter, z: Register, x: Register, y: Register) -> Register:
    """z - x · y with one rounding, for x y so near to z that z less the rounded product is exact."""
    if w.has_fma:
        return w.fma(w.fneg(x), y, z)
    if x.type.scalar == "float":
        return _residual_in_double(w, z, x, y)
    product, error = two_product(w, x, y)
    return w.fsub(w.fsub(z, product), error)


def residual_limit(w: FunctionWriter, x: Register) -> float:
    """The bound on the factors and the product below which `residual` does not overflow on its way."""
    return math.inf if w.has_fma or x.type.scalar == "float" else 2.0**990


def _residual_in_double(w: FunctionWriter, z: Register, x: Register, y: Register) -> Register:
    """z - x · y of `float`, whose product is exact in `double`."""
    z, x, y = (w.fpext(operand, "double") for operand in (z, x, y))
    return w.fptrunc(w.fsub(z, w.fmul(x, y)), "float")


def _halves(w: FunctionWriter, x: Register) -> tuple[Register, Register]:
    """A `double` as the sum of two of 26 bits, so that products of them are exact. Source: Veltkamp 1968."""
    moved = w.fmul(x, like(x, 2.0**27 + 1))
    high = w.fsub(moved, w.fsub(moved, x))
    return high, w.fsub(x, high)


def clamp(w: FunctionWriter, x: Register, low: float, high: float) -> Register:
    """x between two bounds; nan stays nan. One minimum and one maximum instruction on x86."""
    x = w.select(w.fcmp("ogt", x, like(x, high)), like(x, high), x)
    return w.select(w.fcmp("olt", x, like(x, low)), like(x, low), x)


def keep_tiny(w: FunctionWriter, x: Register, result: Register) -> Register:
    """x itself where it is so small that f(x) = x, which keeps -0 and subnormals right."""
    tiny = w.fcmp("olt", w.fabs(x), like(x, format_of(x).tiny))
    return w.select(tiny, x, result)


def through_double(emit: Unary, emit_of_float: Unary | None = None) -> Unary:
    """The function for `float` by way of `double`: at most 0.501 ulp if `emit` is good to a few ulp.

    `emit_of_float` takes its place there, if it is given: what is enough for a float.
    """

    def emit_through_double(w: FunctionWriter, x: Register) -> Register:
        if x.type.scalar == "double":
            return emit(w, x)
        return w.fptrunc((emit_of_float or emit)(w, w.fpext(x, "double")), "float")

    return emit_through_double
