"""The inverse of the error function, of f32 and f64, from which normal numbers between bounds are made.

1. A polynomial in √w or w, with w = −log(1 − y²), is right to 3·10⁻⁷.
2. Two steps of Newton's method bring it, and its derivatives, to the precision of f64.

Source: Giles 2012, "Approximating the erfinv function", GPU Computing Gems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .elementwise import erf, exp, log, sqrt
from .functions import select
from .staging.rep import Rep

_CENTER: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
"""In powers of w − 2.5, the highest first, at the center."""

_ENDS_AT: Final = 5.0
"""The w up to which that polynomial is used; the one by √w takes over."""

_TAIL: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
"""In powers of √w − 3, elsewhere."""


def erf_inverse(y: Rep) -> Rep:
    """The x with erf(x) = y, for y in (−1, 1)."""
    w = -log((1.0 - y) * (1.0 + y))
    is_central = w < _ENDS_AT
    tail = sqrt(select(is_central, 9.0, w)) - 3.0
    x = y * select(is_central, _polynomial(_CENTER, w - 2.5), _polynomial(_TAIL, tail))
    for _ in range(2):
        x = x - (erf(x) - y) * exp(x * x) * (math.sqrt(math.pi) / 2)
    return x


def _polynomial(coefficients: Sequence[float], x: Rep) -> Rep:
    first, *rest = coefficients
    total = x * first + rest[0]
    for coefficient in rest[1:]:
        total = total * x + coefficient
    return total
