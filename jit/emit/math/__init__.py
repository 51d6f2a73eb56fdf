"""The elementwise functions, vectorised, by the names that the ops have in the IR.

All work on any number of lanes. The float functions take `float` and `double`; f16 and bf16 are
computed as `float`. Read `floats`, then `exponential`; each file says how its functions work and
how exact they are, with fma and without (`FunctionWriter.multiply_add`, `floats.residual`).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ..writer import Register
from .division import emit_divide, emit_floor_divide, emit_modulo, emit_truncate_divide
from .error_function import emit_erf, emit_erfc
from .exponential import (
    emit_cosh,
    emit_exp,
    emit_expm1,
    emit_flushed_exp,
    emit_logistic,
    emit_sinh,
    emit_tanh,
)
from .extremes import emit_max, emit_min
from .floats import through_double
from .gamma import (
    emit_digamma,
    emit_digamma_of_float,
    emit_lgamma,
    emit_trigamma,
    emit_trigamma_of_float,
)
from .inverse_trigonometric import emit_acos, emit_asin, emit_atan
from .logarithm import emit_acosh, emit_asinh, emit_atanh, emit_log, emit_log1p
from .power import emit_power
from .random import emit_threefry
from .rounding import (
    emit_abs,
    emit_add,
    emit_ceil,
    emit_floor,
    emit_multiply,
    emit_negate,
    emit_rint,
    emit_round,
    emit_rsqrt,
    emit_sign,
    emit_sqrt,
    emit_square,
    emit_subtract,
)
from .trigonometric import emit_cos, emit_sin, emit_tan

FUNCTIONS: Final[Mapping[str, Callable[..., Register]]] = MappingProxyType(
    {
        "abs": emit_abs,
        "negate": emit_negate,
        "sign": emit_sign,
        "square": emit_square,
        "sqrt": emit_sqrt,
        "rsqrt": emit_rsqrt,
        "floor": emit_floor,
        "ceil": emit_ceil,
        "round": emit_round,
        "rint": emit_rint,
        "exp": emit_exp,
        "expm1": emit_expm1,
        "flushedExp": emit_flushed_exp,
        "log": emit_log,
        "log1p": emit_log1p,
        "sin": emit_sin,
        "cos": emit_cos,
        "tan": emit_tan,
        "asin": through_double(emit_asin),
        "acos": through_double(emit_acos),
        "atan": through_double(emit_atan),
        "sinh": emit_sinh,
        "cosh": emit_cosh,
        "tanh": emit_tanh,
        "asinh": through_double(emit_asinh),
        "acosh": through_double(emit_acosh),
        "atanh": through_double(emit_atanh),
        "logistic": emit_logistic,
        "erf": emit_erf,
        "erfc": emit_erfc,
        "lgamma": through_double(emit_lgamma),
        "digamma": through_double(emit_digamma, emit_digamma_of_float),
        "trigamma": through_double(emit_trigamma, emit_trigamma_of_float),
        "add": emit_add,
        "subtract": emit_subtract,
        "multiply": emit_multiply,
        "divide": emit_divide,
        "truncateDivide": emit_truncate_divide,
        "floorDivide": emit_floor_divide,
        "modulo": emit_modulo,
        "min": emit_min,
        "max": emit_max,
        "power": emit_power,
        "threefry": emit_threefry,
    }
)
"""`FUNCTIONS[op](writer, *operands) -> result`, for one or two registers of equal type."""
