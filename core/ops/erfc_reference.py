"""Reference implementation of erfc for one float, correctly rounded from 25 digits or more.

That of a C library may be off by more than three units in the last place.
1. Up to 3, 1 − erf x by the series 2/√π · e^(−x²) · Σ 2ⁿ x²ⁿ⁺¹ / (2n + 1)‼, none of whose terms cancels.
2. Beyond, e^(−x²) / √π / (x + (1/2) / (x + (2/2) / (x + (3/2) / …))).
3. 2 − erfc(−x) for negative x.

Source: Abramowitz & Stegun 1964, 7.1.6 and 7.1.14.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

_CONTEXT = Context(prec=40, Emin=-999999, Emax=999999)
"""1 − erf x at 3 has 5 digits less than its terms, a float 17: the rest is to spare."""

_ROOT_PI = Decimal("1.7724538509055160272981674833411451827975494561224")
"""√π to more digits than the context has."""

_SERIES_UP_TO = 3
"""From here on the fractions are enough; 1 − erf x loses 0.43 digits for each unit of x²."""

_FRACTIONS, _LEAST_FRACTIONS = 1200, 8
"""So many over x², and so many more, are enough for 25 digits from there on: the error is 4 · 10⁻⁴⁰ at 3, 3 · 10⁻³⁰ at
10."""

_VANISHES = 30
"""erfc x is 0 in f64 from 27.3 on."""


def erfc(x: float) -> float:
    """1 − erf(x)."""
    if math.isnan(x):
        return x
    if abs(x) > _VANISHES:
        return 0.0 if x > 0 else 2.0
    with localcontext(_CONTEXT):
        complement = _erfc(abs(Decimal(x)))
        return float(complement if x > 0 else 2 - complement)


def _erfc(x: Decimal) -> Decimal:
    falling = (-x * x).exp() / _ROOT_PI
    if x < _SERIES_UP_TO:
        return 1 - 2 * falling * _series(x)
    denominator = x
    for numerator in range(int(_FRACTIONS / (x * x)) + _LEAST_FRACTIONS, 0, -1):
        denominator = x + numerator / (2 * denominator)
    return falling / denominator


def _series(x: Decimal) -> Decimal:
    total = term = x
    n = 1
    while term > total * Decimal("1e-40"):
        n += 2
        term = term * 2 * x * x / n
        total += term
    return total
