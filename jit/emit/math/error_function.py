"""erf and erfc.

1. Up to 0.9, erf x = x + x P(x²).
2. Beyond, erf x = 1 - exp Q(x), Q the logarithm of erfc as a polynomial: its error counts only as
   much as erfc does.
3. erfc x = exp(-x²) · T(t) / (1 + 2x) with t = (x - 4) / (x + 4), x² held as two doubles; 1 - erf x
   up to 0.8; 2 - erfc |x| for negative x. Source of the form of T: Shepherd & Laframboise 1981.
4. erfc of a float, where there is fma: 1 - erf x up to 0.89; beyond, exp(-x²) · t · (1 + u S(u)) with
   t = 1 / (2 (1 + h x)) and u = x t - c, c where the parenthesis is 1. Without fma by way of double.

Greatest errors measured, in ulp of float / double: erf 1.25 / 1.35; erfc 1.97 (over all
floats; without fma 0.501) / 1.93.
"""

from ....core.lazy_dataclass import dataclass
from ....core.ops.special import VANISHED
from ..writer import FunctionWriter, Register, ScalarName
from .exponential import exp_parts, scale, scaled_exp
from .floats import clamp, horner, like, quick_two_sum, residual


@dataclass(frozen=True, slots=True)
class _ErrorFunction:
    small: tuple[float, ...]
    logarithm: tuple[float, ...]
    one: float
    """Where erf is 1; `logarithm` is good up to there."""


_ERROR_FUNCTION: dict[ScalarName, _ErrorFunction] = {
    "float": _ErrorFunction(
        small=(
            0.12837916612625122, -0.3761262893676758, 0.11283624172210693, -0.0268555860966444,
            0.005191936623305082, -0.0008043629350140691, 7.968411227921024e-05,
        ),
        logarithm=(
            0.00016895137378014624, -1.129487156867981, -0.6334034204483032, -0.10821752995252609,
            0.025078769773244858, -0.004155558999627829, 0.0004312519740778953,
            -2.0816576579818502e-05,
        ),
        one=3.95,
    ),
    "double": _ErrorFunction(
        small=(
            0.1283791670955126, -0.37612638903184115, 0.11283791670972569, -0.02686617064840158,
            0.005223977656769348, -0.0008548328763186948, 0.00012055392581975857,
            -1.492693712391878e-05, 1.6479297144090332e-06, -1.6495498262620862e-07,
            1.518229483750826e-08, -1.1016350774180737e-09,
        ),
        logarithm=(
            3.807181170931216e-09, -1.128379244008982, -0.6366191401565682, -0.10277562458612359,
            0.01913814790238364, 0.00018660132574115966, -0.0016562419965127373,
            0.0005348388571227618, 3.5067321220995734e-05, -0.0001186027625647587,
            6.853721043580021e-05, -2.5751040613780596e-05, 7.244266479790498e-06,
            -1.5843063748312106e-06, 2.7053291642525577e-07, -3.5549710591611476e-08,
            3.4798015394227497e-09, -2.391715705988044e-10, 1.029948610203578e-11,
            -2.0902008672676586e-13,
        ),
        one=5.95,
    ),
}  # fmt: skip

_ERF_BORDER = 0.9
"""Up to here `small` was fitted. Where 1 - exp Q takes over, an error of the exponential counts a quarter: erfc /
erf."""

_ERFC_BORDER = 0.8
"""Within `small`'s range: an error of erf counts 2.9 times in 1 - erf there, and more and more beyond."""

# T for x ≥ 0.8, of doubles and of what becomes a float
_TAIL = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102619684, 0.06809705425468882,
    -0.10103906603629885, 0.093732834998517, -0.06633036581239822, 0.03716751553415871,
    -0.016197734054932713, 0.005031970014468317, -0.0007577733142716755,
    -0.0001992569383812444, 0.0001506218178248724, -2.4398168408972486e-05,
    -1.1222535771891904e-05, 5.706777856464254e-06, 2.949736548238281e-07,
    -8.199462492552647e-07, 7.297520444401093e-08, 1.0363201467682106e-07,
    -1.6595465790538847e-08, -9.789088924109373e-09, 1.388464760788868e-09,
)  # fmt: skip
_TAIL_FOR_FLOAT = (
    1.2329951186360752, -0.1396211167640825, 0.015379649566923457, 0.0680970471252155,
    -0.10103897014221488, 0.0937330563023927, -0.06633161519102973, 0.037164494742612963,
    -0.016191446272560837, 0.005050678328090547, -0.00076508947374887,
    -0.00024562636251231095, 0.00013108227845514528,
)  # fmt: skip


_FLOAT_SMALL = (
    0.12837901711463928, -0.37612220644950867, 0.11280177533626556, -0.026725832372903824,
    0.0049484469927847385, -0.0005811923183500767,
)  # fmt: skip
"""P of 1 - x - x P(x²); minimax for an error relative to erfc, up to `_FLOAT_BORDER`."""
_FLOAT_BORDER = 0.89
"""Up to here `_FLOAT_SMALL` was fitted, and from here on `_FLOAT_TAIL`."""
_FLOAT_SLOPE = 0.6875
"""h: about where the degree of S is least for x from there to 10.15."""
_FLOAT_CENTER = 0.5515244007110596
"""c."""
_FLOAT_TAIL = (
    -1.4899641275405884, 1.193424105644226, 0.4698052704334259, -1.969317078590393,
    -0.2616461217403412, 4.619844913482666, 4.539919376373291,
)  # fmt: skip
"""S: a fit of the relative error, each coefficient rounded to a float before the next ones are fitted; of many such
fits, near to the minimax one, that whose greatest error with rounding is least over all floats."""
_BEYOND = 31.0
"""Any number from 27.3, where erfc of a double is 0, to √`VANISHED`, so that all that is computed is finite."""


def emit_erf(w: FunctionWriter, x: Register) -> Register:
    """2/√π ∫₀ˣ exp(-t²) dt."""
    data = _ERROR_FUNCTION[x.type.scalar]
    magnitude = clamp(w, w.fabs(x), 0.0, data.one)
    complement = scaled_exp(w, horner(w, magnitude, data.logarithm))
    large = w.fsub(like(x, 1.0), complement)
    is_small = w.fcmp("olt", magnitude, like(x, _ERF_BORDER))
    return w.copysign(w.select(is_small, _small_erf(w, magnitude), large), x)


def emit_erfc(w: FunctionWriter, x: Register) -> Register:
    """1 - erf x, accurate also where it is very small."""
    if x.type.scalar == "double":
        return _erfc(w, x, _TAIL)
    if w.has_fma:
        return _erfc_of_float(w, x)
    return w.fptrunc(_erfc(w, w.fpext(x, "double"), _TAIL_FOR_FLOAT), "float")


def _small_erf(w: FunctionWriter, x: Register) -> Register:
    series = horner(w, w.fmul(x, x), _ERROR_FUNCTION[x.type.scalar].small)
    return w.multiply_add(x, series, x)


def _erfc(w: FunctionWriter, x: Register, tail: tuple[float, ...]) -> Register:
    one, four = like(x, 1.0), like(x, 4.0)
    m, n, magnitude, lost = _falling_exponential(w, x)
    doubled = w.fadd(magnitude, magnitude)
    # Exact from ½ on; below, another formula is taken.
    divisor, divisor_low = quick_two_sum(w, doubled, one)
    # One division for both quotients, whose errors are put right or count for little.
    beyond = w.fadd(magnitude, four)
    both = w.fdiv(one, w.fmul(divisor, beyond))
    reciprocal = w.fmul(beyond, both)
    t = w.fmul(w.fmul(w.fsub(magnitude, four), divisor), both)
    rising, first = horner(w, t, tail[1:]), like(x, tail[0])
    series = w.multiply_add(t, rising, first)
    series_low = w.multiply_add(t, rising, w.fsub(first, series))
    product = w.multiply_add(m, series, series)
    product_low = w.fadd(w.multiply_add(m, series, w.fsub(series, product)), series_low)
    product_low = w.multiply_add(product, lost, product_low)
    quotient = w.fmul(product, reciprocal)
    remainder = residual(w, product, quotient, divisor)
    remainder = w.fadd(w.multiply_add(w.fneg(quotient), divisor_low, remainder), product_low)
    # 2ⁿ comes last, so that there is one rounding where the result is subnormal.
    large = scale(w, w.multiply_add(remainder, reciprocal, quotient), n)
    large = w.select(w.fcmp("olt", x, like(x, 0.0)), w.fsub(like(x, 2.0), large), large)
    is_small = w.fcmp("olt", magnitude, like(x, _ERFC_BORDER))
    return w.select(is_small, w.fsub(one, _small_erf(w, x)), large)


def _erfc_of_float(w: FunctionWriter, x: Register) -> Register:
    """By fma, which makes the errors of the quotient and of the product cheap to put right."""
    one = like(x, 1.0)
    m, n, magnitude, lost = _falling_exponential(w, x)
    divisor = w.fma(magnitude, like(x, _FLOAT_SLOPE), one)
    half = like(x, 0.5)
    t = w.fdiv(half, divisor)
    # An error of t counts for u also, and so for less than itself, half on average.
    lost = w.fadd(lost, residual(w, half, t, divisor))
    m = w.fadd(m, w.fma(m, lost, lost))
    product = w.fma(m, t, t)
    product_low = w.fma(m, t, w.fsub(t, product))
    u = w.fma(magnitude, t, like(x, -_FLOAT_CENTER))
    rest = w.fma(w.fmul(product, u), horner(w, u, _FLOAT_TAIL), product_low)
    # 2ⁿ comes last, so that there is one rounding where the result is subnormal.
    large = scale(w, w.fadd(product, rest), n)
    large = w.select(w.fcmp("olt", x, like(x, 0.0)), w.fsub(like(x, 2.0), large), large)
    small = w.fma(w.fneg(x), horner(w, w.fmul(x, x), _FLOAT_SMALL), w.fsub(one, x))
    return w.select(w.fcmp("olt", magnitude, like(x, _FLOAT_BORDER)), small, large)


def _falling_exponential(
    w: FunctionWriter, x: Register
) -> tuple[Register, Register, Register, Register]:
    """m, n, a and e with exp(-x²) = (1 + m) · 2ⁿ · (1 + e) for |x| up to where erfc vanishes, a = |x| there.

    By the instructions of erfc's derivative, as both are often wanted. Beyond, all are finite, and 2ⁿ is tiny.
    """
    square, bound = w.fmul(x, x), like(x, float(VANISHED))
    square = w.select(w.fcmp("ogt", square, bound), bound, square)
    m, n = exp_parts(w, w.fneg(square))
    magnitude = clamp(w, w.fabs(x), 0.0, _BEYOND)
    return m, n, magnitude, residual(w, square, magnitude, magnitude)
