"""Reference implementation of log |Γ|, digamma and trigamma for one float, correctly rounded from 50 digits.

Their terms cancel near roots, of which there is one between any two negative integers: decimals have digits to lose.
1. Reflected at x < 0: log |Γ(x)| = log π − log |x · sin πx| − log Γ(−x), ψ(x) = ψ(1 − x) − π · cot πx, and
   ψ′(x) = (π / sin πx)² − ψ′(1 − x), with x less its nearest integer for x in the sine and the cotangent.
2. Raised to x ≥ 30 by Γ(x) = Γ(x + 1) / x, ψ(x) = ψ(x + 1) − 1/x and ψ′(x) = ψ′(x + 1) + 1/x².
3. Summed there by the asymptotic series.  Source: Abramowitz & Stegun 1964, 6.1.40, 6.3.18 and 6.4.12.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext

_CONTEXT = Context(prec=50, Emin=-999999, Emax=999999)
"""Three times the digits of a float, as terms cancel near roots."""

_RAISED_TO = 30
"""The first term that the series leaves out is 3 · 10⁻⁴⁶ there; at 20 it would be 10⁻³⁸."""

_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749446")


_BERNOULLI = tuple(
    _CONTEXT.divide(Decimal(numerator), Decimal(denominator))
    for numerator, denominator in (
        (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
        (-174611, 330), (854513, 138), (-236364091, 2730), (8553103, 6), (-23749461029, 870),
        (8615841276005, 14322), (-7709321041217, 510), (2577687858367, 6), (-26315271553053477373, 1919190),
        (2929993913841559, 6), (-261082718496449122051, 13530),
    )
)  # fmt: skip
"""B₂, B₄, … B₄₀, enough for the digits wanted at `_RAISED_TO`."""


def log_gamma(x: float) -> float:
    """log |Γ(x)|; +∞ at 0, −1, −2, … and at ±∞."""
    if math.isnan(x):
        return x
    if math.isinf(x) or _is_pole(x):
        return math.inf
    if x in (1, 2):
        return 0.0
    with localcontext(_CONTEXT):
        u = abs(Decimal(x))
        result = _log_gamma(u)
        if x < 0:
            sine, _ = _sine_and_cosine(_distance_to_integer(x))
            result = (_PI / (u * abs(sine))).ln() - result
        return float(result)


def digamma(x: float) -> float:
    """ψ(x); NaN at −1, −2, … and −∞, ∓∞ at ±0."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if math.isnan(x) or x == math.inf:
        return x
    if x == -math.inf or _is_pole(x):
        return math.nan
    with localcontext(_CONTEXT):
        if x > 0:
            return float(_digamma(Decimal(x)))
        sine, cosine = _sine_and_cosine(_distance_to_integer(x))
        return float(_digamma(1 - Decimal(x)) - _PI * cosine / sine)


def trigamma(x: float) -> float:
    """ψ′(x); +∞ at 0, −1, −2, …; NaN at −∞, 0 at +∞."""
    if math.isnan(x) or math.isinf(x):
        return 0.0 if x > 0 else math.nan
    if _is_pole(x):
        return math.inf
    with localcontext(_CONTEXT):
        if x > 0:
            return float(_trigamma(Decimal(x)))
        sine, _ = _sine_and_cosine(_distance_to_integer(x))
        return float((_PI / sine) ** 2 - _trigamma(1 - Decimal(x)))


def _is_pole(x: float) -> bool:
    return x <= 0 and x == math.floor(x)


def _distance_to_integer(x: float) -> Decimal:
    return Decimal(x - round(x))  # exact


def _sine_and_cosine(x: Decimal) -> tuple[Decimal, Decimal]:
    """sin πx and cos πx for |x| ≤ ½, by their series."""
    angle = _PI * x
    sums = [Decimal(0), Decimal(0)]
    term, n = Decimal(1), 0
    while n < 2 or abs(term) > Decimal("1e-50") * abs(angle):
        sums[n % 2] += -term if n % 4 > 1 else term
        n += 1
        term = term * angle / n
    return sums[1], sums[0]


def _raised(x: Decimal) -> Iterator[Decimal]:
    """x, x + 1, … below 30."""
    while x < _RAISED_TO:
        yield x
        x += 1


def _log_gamma(x: Decimal) -> Decimal:
    product = Decimal(1)
    for factor in _raised(x):
        product *= factor
        x = factor + 1
    terms = (
        number / (2 * k * (2 * k - 1) * x ** (2 * k - 1)) for k, number in enumerate(_BERNOULLI, 1)
    )
    half = Decimal("0.5")
    return (x - half) * x.ln() - x + half * (2 * _PI).ln() + sum(terms) - product.ln()


def _digamma(x: Decimal) -> Decimal:
    total = Decimal(0)
    for step in _raised(x):
        total -= 1 / step
        x = step + 1
    terms = (number / (2 * k * x ** (2 * k)) for k, number in enumerate(_BERNOULLI, 1))
    return total + x.ln() - 1 / (2 * x) - sum(terms)


def _trigamma(x: Decimal) -> Decimal:
    total = Decimal(0)
    for step in _raised(x):
        total += 1 / (step * step)
        x = step + 1
    terms = (number / x ** (2 * k + 1) for k, number in enumerate(_BERNOULLI, 1))
    return total + 1 / x + 1 / (2 * x * x) + sum(terms)
