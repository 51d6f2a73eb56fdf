"""The elementwise functions of the language, a line each: its name, the op or rule it stands for, what is said of it.

Its signature follows from the elements that the op takes.  Public names, the stub and `docs/functions.md` are
written from these lines by `make fmt`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from .core.ir import Value
from .core.ops import arithmetic, composed, elementary, rounding, special, transcendental
from .core.ops.forms import Elementwise
from .core.types import Kind
from .documentation import named
from .reps import as_rep, operands_of
from .staging import primitive
from .staging.expression import Expression
from .staging.extents import larger, smaller
from .staging.rep import Rep
from .staging.rep_base import is_number
from .tensors import Float, Integer, Number

_Function = TypeVar("_Function", bound=Callable[..., Rep])
_Meaning: TypeAlias = "Elementwise | Callable[..., Value]"
_FAMILIES: Final[dict[Any, Any]] = {("float",): Float, ("integer",): Integer}


def _unary(
    name: str, meaning: _Meaning, text: str, accepts: tuple[Kind, ...] = ("float",)
) -> Callable[[Any], Rep]:
    """The function of one tensor; `accepts` says of what a rule takes, an op says it itself."""
    stage = _staging(name, meaning, accepts)

    def function(x: Any) -> Rep:
        return Rep(stage(as_rep(x).expression))

    return _described(function, name, meaning, text, accepts)


def _binary(
    name: str,
    meaning: _Meaning,
    text: str,
    accepts: tuple[Kind, ...] = ("float",),
    of_sizes: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Rep]:
    """The function of two tensors that broadcast, or of a tensor and a Python number on either side.

    `of_sizes` is what it is of two numbers, such as extents.
    """
    stage = _staging(name, meaning, accepts)
    verb = meaning.verb or meaning.name if isinstance(meaning, Elementwise) else name

    def function(x: Any, y: Any, /) -> Rep:
        if of_sizes is not None and is_number(x) and is_number(y):
            size: Rep = of_sizes(x, y)
            return size
        return Rep(stage(*(rep.expression for rep in operands_of(verb, x, y))))

    return _described(function, name, meaning, text, accepts)


def _staging(name: str, meaning: _Meaning, accepts: tuple[Kind, ...]) -> Callable[..., Expression]:
    if isinstance(meaning, Elementwise):
        return partial(primitive.elementwise, meaning)
    return partial(primitive.compose, name, meaning, accepts=accepts)


def _described(
    function: _Function, name: str, meaning: object, text: str, accepts: tuple[Kind, ...]
) -> _Function:
    """The function with the name, docstring and annotations of one that is written out."""
    kinds = primitive.kinds_of(meaning) if isinstance(meaning, Elementwise) else accepts
    described, generic = cast("Any", named(function, name, text)), cast("Any", Rep)
    family = generic[_FAMILIES.get(kinds, Number)]
    described.__annotations__ = dict.fromkeys(described.__annotations__, family)
    return function


negate = _unary("negate", arithmetic.Negate(), "−x.")
abs = _unary("abs", arithmetic.Abs(), "|x|; derivative 0 at 0.")
sign = _unary("sign", arithmetic.Sign(), "−1, 0 or 1; derivative 0.")
square = _unary("square", arithmetic.Square(), "x².")
sqrt = _unary("sqrt", transcendental.Sqrt(), "√x; NaN below 0, derivative +∞ at 0.")
rsqrt = _unary("rsqrt", transcendental.Rsqrt(), "1/√x; NaN below 0, derivative −∞ at 0.")
exp = _unary("exp", transcendental.Exp(), "eˣ.")
log = _unary(
    "log", transcendental.Log(), "Natural logarithm; −∞ at 0, derivative +∞ there; NaN below."
)
log1p = _unary(
    "log1p", transcendental.Log1p(), "log(1 + x), exact near 0; derivative +∞ at −1, NaN below."
)
expm1 = _unary("expm1", transcendental.Expm1(), "eˣ − 1, exact near 0.")
sin = _unary("sin", transcendental.Sin(), "Sine of an angle in radians.")
cos = _unary("cos", transcendental.Cos(), "Cosine of an angle in radians.")
tan = _unary("tan", transcendental.Tan(), "Tangent of an angle in radians.")
asin = _unary(
    "asin",
    transcendental.Asin(),
    "Inverse sine, in radians; NaN outside [−1, 1], derivative +∞ at both ends.",
)
acos = _unary(
    "acos",
    transcendental.Acos(),
    "Inverse cosine, in radians; NaN outside [−1, 1], derivative −∞ at both ends.",
)
atan = _unary("atan", transcendental.Atan(), "Inverse tangent, in radians.")
sinh = _unary("sinh", transcendental.Sinh(), "Hyperbolic sine.")
cosh = _unary("cosh", transcendental.Cosh(), "Hyperbolic cosine.")
tanh = _unary("tanh", transcendental.Tanh(), "Hyperbolic tangent.")
asinh = _unary("asinh", transcendental.Asinh(), "Inverse hyperbolic sine.")
acosh = _unary(
    "acosh", transcendental.Acosh(), "Inverse hyperbolic cosine; NaN below 1, derivative +∞ at 1."
)
atanh = _unary(
    "atanh",
    transcendental.Atanh(),
    "Inverse hyperbolic tangent; NaN outside [−1, 1], derivative +∞ at both ends.",
)
erf = _unary("erf", special.Erf(), "2/√π ∫₀ˣ exp(−t²) dt.")
erfc = _unary("erfc", special.Erfc(), "1 − erf(x), exact for large x.")
lgamma = _unary(
    "lgamma",
    special.Lgamma(),
    "log |Γ(x)|; at its poles the derivative is −∞ (0) or NaN (−1, −2, …).",
)
digamma = _unary(
    "digamma",
    special.Digamma(),
    "The derivative of lgamma; NaN at its poles, as its own derivative, +∞ at 0.",
)
exp2 = _unary("exp2", elementary.exp2, "2ˣ.")
log2 = _unary(
    "log2", elementary.log2, "Logarithm to base 2; exact for powers of 2; derivative +∞ at 0."
)
log10 = _unary(
    "log10", elementary.log10, "Logarithm to base 10; exact for 1, 10, 100, …; derivative +∞ at 0."
)
cbrt = _unary("cbrt", elementary.cbrt, "∛x, of either sign; derivative +∞ at 0.")
sinc = _unary("sinc", elementary.sinc, "sin(πx) / (πx), and 1 at 0, with its derivatives there.")
reciprocal = _unary("reciprocal", elementary.reciprocal, "1 / x; derivative −∞ at 0.")
degrees = _unary("degrees", elementary.degrees, "Radians as degrees.")
radians = _unary("radians", elementary.radians, "Degrees as radians.")
trunc = _unary("trunc", elementary.trunc, "The nearest integer towards zero; derivative 0.")
floor = _unary("floor", rounding.Floor(), "The largest integer ≤ x; derivative 0.")
ceil = _unary("ceil", rounding.Ceil(), "The smallest integer ≥ x; derivative 0.")
rint = _unary("rint", rounding.Rint(), "The nearest integer, halves to even; derivative 0.")
add = _binary("add", arithmetic.Add(), "x + y.")
sub = _binary("sub", arithmetic.Subtract(), "x − y.")
mul = _binary("mul", arithmetic.Multiply(), "x · y.")
div = _binary(
    "div",
    arithmetic.Divide(),
    "x / y of floats; at y = 0 its derivatives are the quotients 1 / y and −(x / y) / y.",
)
power = _binary(
    "power",
    transcendental.Power(),
    "xʸ; 0⁰ = 1; integers wrap around, and a negative power of one is 0 unless it is of ±1; "
    "derivative by y 0 where xʸ is 0, else NaN at x < 0.",
)
hypot = _binary(
    "hypot", elementary.hypot, "√(x² + y²), without overflow; derivative 0 where both are 0."
)
atan2 = _binary(
    "atan2", elementary.atan2, "The angle of the point (y, x) = (sin, cos); derivative 0 at (0, 0)."
)
copysign = _binary(
    "copysign",
    elementary.copysign,
    "|x| with the sign of y, of zeros too; derivative ±1 by x, at 0 as above, and 0 by y.",
)
heaviside = _binary(
    "heaviside", elementary.heaviside, "0 below 0, 1 above, y where x is 0; derivative 0 by x."
)
relu = _unary("relu", arithmetic.Relu(), "max(x, 0); derivative 0 at 0; NaN stays NaN.")
minimum = _binary(
    "minimum",
    arithmetic.Minimum(),
    "The smaller one, of two sizes, too; NaN wins; a tie splits the derivative evenly.",
    of_sizes=smaller,
)
maximum = _binary(
    "maximum",
    arithmetic.Maximum(),
    "The larger one, of two sizes, too; NaN wins; a tie splits the derivative evenly.",
    of_sizes=larger,
)
remainder = _binary(
    "remainder",
    arithmetic.Modulo(),
    "The remainder, with the sign of y, as Python's %; 0 for integers divided by 0; derivative 1 by x, −⌊x / y⌋ by y.",
)
mod = _binary("mod", arithmetic.Modulo(), "As `remainder`.")
modulo = _binary("modulo", arithmetic.Modulo(), "As `remainder`.")
fmod = _binary(
    "fmod",
    elementary.fmod,
    "The remainder, with the sign of x, as C's; 0 for integers divided by 0; derivative 1 by x, −trunc(x / y) by y.",
    accepts=("float", "integer"),
)
floor_divide = _binary(
    "floor_divide", arithmetic.FloorDivide(), "⌊x / y⌋ of integers; 0 for a division by 0."
)
truncate_divide = _binary(
    "truncate_divide",
    arithmetic.TruncateDivide(),
    "x / y of integers, rounded towards zero; 0 for a division by 0.",
)
sigmoid = _unary("sigmoid", composed.sigmoid, "1 / (1 + e⁻ˣ), without overflow on either side.")
softplus = _unary(
    "softplus",
    composed.softplus,
    "log(1 + eˣ), without overflow; its derivatives are those of `sigmoid`.",
)
logaddexp = _binary(
    "logaddexp",
    composed.logaddexp,
    "log(eˣ + eʸ), without overflow; −∞ (with derivative 0) where both are −∞.",
)
