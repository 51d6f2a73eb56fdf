"""The elementwise functions of the language, a line each: its name, the op or rule it stands for, what is said of it.

Its signature follows from the elements that the op takes.  Public names, the stub and `docs/functions.md` are
written from these lines by `make fmt`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from .core.ir import Value
from .core.ops import arithmetic, composed, rounding, special, transcendental
from .core.ops.forms import Elementwise
from .reps import as_rep, operands_of
from .staging import primitive
from .staging.expression import Expression
from .staging.rep import Rep
from .tensors import Float, Integer, Number

_Function = TypeVar("_Function", bound=Callable[..., Rep])
_Meaning: TypeAlias = "Elementwise | Callable[..., Value]"
_FAMILIES: Final[dict[Any, Any]] = {("float",): Float, ("integer",): Integer}


def _unary(name: str, meaning: _Meaning, text: str) -> Callable[[Any], Rep]:
    """The function of one tensor."""
    stage = _staging(name, meaning)

    def function(x: Any, /) -> Rep:
        return Rep(stage(as_rep(x).expression))

    return _described(function, name, meaning, text)


def _binary(name: str, meaning: _Meaning, text: str) -> Callable[[Any, Any], Rep]:
    """The function of two tensors that broadcast, or of a tensor and a Python number on either side."""
    stage = _staging(name, meaning)
    verb = meaning.verb or meaning.name if isinstance(meaning, Elementwise) else name

    def function(x: Any, y: Any, /) -> Rep:
        return Rep(stage(*(rep.expression for rep in operands_of(verb, x, y))))

    return _described(function, name, meaning, text)


def _staging(name: str, meaning: _Meaning) -> Callable[..., Expression]:
    if isinstance(meaning, Elementwise):
        return partial(primitive.elementwise, meaning)
    return partial(primitive.compose, name, meaning)


def _described(function: _Function, name: str, meaning: object, text: str) -> _Function:
    """The function with the name, docstring and annotations of one that is written out."""
    kinds = primitive.kinds_of(meaning) if isinstance(meaning, Elementwise) else ("float",)
    described, generic = cast("Any", function), cast("Any", Rep)
    described.__name__ = described.__qualname__ = name
    described.__doc__ = text
    family = generic[_FAMILIES.get(kinds, Number)]
    described.__annotations__ = dict.fromkeys(described.__annotations__, family)
    return function


negate = _unary("negate", arithmetic.Negate(), "−x.")
abs = _unary("abs", arithmetic.Abs(), "|x|; derivative 0 at 0.")
sign = _unary("sign", arithmetic.Sign(), "−1, 0 or 1; derivative 0.")
square = _unary("square", arithmetic.Square(), "x².")
sqrt = _unary("sqrt", transcendental.Sqrt(), "√x; NaN below 0.")
rsqrt = _unary("rsqrt", transcendental.Rsqrt(), "1/√x.")
exp = _unary("exp", transcendental.Exp(), "eˣ.")
log = _unary("log", transcendental.Log(), "Natural logarithm; −∞ at 0, NaN below.")
log1p = _unary("log1p", transcendental.Log1p(), "log(1 + x), exact near 0.")
expm1 = _unary("expm1", transcendental.Expm1(), "eˣ − 1, exact near 0.")
sin = _unary("sin", transcendental.Sin(), "Sine of an angle in radians.")
cos = _unary("cos", transcendental.Cos(), "Cosine of an angle in radians.")
tan = _unary("tan", transcendental.Tan(), "Tangent of an angle in radians.")
asin = _unary("asin", transcendental.Asin(), "Inverse sine, in radians.")
acos = _unary("acos", transcendental.Acos(), "Inverse cosine, in radians.")
atan = _unary("atan", transcendental.Atan(), "Inverse tangent, in radians.")
sinh = _unary("sinh", transcendental.Sinh(), "Hyperbolic sine.")
cosh = _unary("cosh", transcendental.Cosh(), "Hyperbolic cosine.")
tanh = _unary("tanh", transcendental.Tanh(), "Hyperbolic tangent.")
asinh = _unary("asinh", transcendental.Asinh(), "Inverse hyperbolic sine.")
acosh = _unary("acosh", transcendental.Acosh(), "Inverse hyperbolic cosine; NaN below 1.")
atanh = _unary("atanh", transcendental.Atanh(), "Inverse hyperbolic tangent; NaN outside [−1, 1].")
erf = _unary("erf", special.Erf(), "2/√π ∫₀ˣ exp(−t²) dt.")
erfc = _unary("erfc", special.Erfc(), "1 − erf(x), exact for large x.")
lgamma = _unary("lgamma", special.Lgamma(), "log |Γ(x)|.")
digamma = _unary("digamma", special.Digamma(), "The derivative of lgamma; NaN at its poles.")
floor = _unary("floor", rounding.Floor(), "The largest integer ≤ x; derivative 0.")
ceil = _unary("ceil", rounding.Ceil(), "The smallest integer ≥ x; derivative 0.")
round = _unary(
    "round", rounding.Round(), "The nearest integer, halves away from zero; derivative 0."
)
rint = _unary("rint", rounding.Rint(), "The nearest integer, halves to even; derivative 0.")
add = _binary("add", arithmetic.Add(), "x + y.")
sub = _binary("sub", arithmetic.Subtract(), "x − y.")
mul = _binary("mul", arithmetic.Multiply(), "x · y.")
div = _binary("div", arithmetic.Divide(), "x / y of floats.")
power = _binary("power", transcendental.Power(), "xʸ of floats; 0⁰ = 1.")
relu = _unary("relu", arithmetic.Relu(), "max(x, 0); derivative 0 at 0; NaN stays NaN.")
minimum = _binary(
    "minimum",
    arithmetic.Minimum(),
    "The smaller one; NaN wins; a tie splits the derivative evenly.",
)
maximum = _binary(
    "maximum", arithmetic.Maximum(), "The larger one; NaN wins; a tie splits the derivative evenly."
)
modulo = _binary(
    "modulo", arithmetic.Modulo(), "The remainder, with the sign of y; 0 for integers divided by 0."
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
gelu = _unary(
    "gelu",
    composed.gelu,
    "x · Φ(x) with Φ of the normal distribution, to all digits where Φ vanishes.",
)
