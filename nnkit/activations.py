"""Activation functions of networks.

They are made of others, by choices, so that derivatives of all orders are right.
At a kink the derivative is that of one side, which the docstring names (docs/semantics.md has all of them).
"""

from __future__ import annotations

import math
from typing import Any, Final

from .core.ops import composed
from .elementwise import expm1, sigmoid, softplus
from .functions import select
from .in_f32 import in_f32
from .reps import as_rep
from .staging import primitive
from .staging.primitive import staging_error
from .staging.rep import Rep

_NORMAL_END: Final = 30.0
"""Beyond it, the distribution function is 0 or 1 in f64, too."""
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""With these, layers keep mean 0 and variance 1.  Source: Klambauer et al. 2017, equation 14."""


def gelu(x: Any, approximate: bool | str = False) -> Rep:
    """x · Φ(x) with Φ of the normal distribution, to all digits where Φ vanishes.

    `approximate=True`, or PyTorch's "tanh", takes x · sigmoid(2 √(2/π) (x + 0.044715 x³)) for it.
    Example: `nk.gelu(x)`
    """
    if approximate in (False, "none"):
        return Rep(primitive.compose("gelu", composed.gelu, as_rep(x).expression))
    if approximate not in (True, "tanh"):
        raise staging_error(f"approximate is False, True, 'none' or 'tanh', not {approximate!r}")
    return in_f32("gelu", _gelu_by_tanh, x)


def _gelu_by_tanh(x: Rep) -> Rep:
    bounded = select(
        x < -_NORMAL_END, -_NORMAL_END, x
    )  # a choice has a shorter derivative than a maximum
    inside = select(bounded > _NORMAL_END, _NORMAL_END, bounded)
    scale = 2.0 * math.sqrt(2.0 / math.pi)
    return bounded * sigmoid(inside * (inside * inside * (0.044715 * scale) + scale))


def silu(x: Any) -> Rep:
    """x · sigmoid(x).

    Example: `nk.silu(x)`
    """
    return Rep(primitive.compose("silu", composed.silu, as_rep(x).expression))


def swish(x: Any) -> Rep:
    """The other name of `silu`.

    Example: `nk.swish(x)`
    """
    return silu(x)


def mish(x: Any) -> Rep:
    """x · tanh(softplus(x)).

    Example: `nk.mish(x)`
    """
    return Rep(primitive.compose("mish", composed.mish, as_rep(x).expression))


def log_sigmoid(x: Any) -> Rep:
    """log sigmoid(x), without overflow: −softplus(−x).

    Example: `nk.log_sigmoid(x)`
    """
    return in_f32("log_sigmoid", lambda x: -softplus(-x), x)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Rep:
    """x above 0, negative_slope · x below; at 0 the derivative is negative_slope.

    Example: `nk.leaky_relu(y, 0.1)`
    """
    return in_f32("leaky_relu", lambda x: select(x > 0.0, x, x * float(negative_slope)), x)


def elu(x: Any, alpha: float = 1.0) -> Rep:
    """x above 0, alpha · (eˣ − 1) below; at 0 the derivatives are those from below, `alpha`.

    Example: `nk.elu(y)`
    """
    return in_f32("elu", lambda x: _elu(x, 1.0, float(alpha)), x)


def celu(x: Any, alpha: float = 1.0) -> Rep:
    """x above 0, alpha · (e^(x / alpha) − 1) below; at 0 the derivatives are those from below.

    Example: `nk.celu(y, 2.0)`
    """
    return in_f32("celu", lambda x: _elu(x, float(alpha), float(alpha)), x)


def selu(x: Any) -> Rep:
    """1.0507 · elu(x, 1.6733), which keeps mean 0 and variance 1.

    Example: `nk.selu(y)`
    """
    return in_f32("selu", lambda x: _SELU_SCALE * _elu(x, 1.0, _SELU_ALPHA), x)


def _elu(x: Rep, width: float, depth: float) -> Rep:
    above = x > 0.0
    below = select(above, 0.0, x)  # eˣ does not overflow where it is not chosen
    return select(above, x, depth * expm1(below if width == 1.0 else below / width))


def relu6(x: Any) -> Rep:
    """x between 0 and 6, else the nearer of them; derivative 0 at both.

    Example: `nk.relu6(3 * x)`
    """
    return in_f32("relu6", lambda x: _clipped(x, 0.0, 6.0), x)


def hard_tanh(x: Any) -> Rep:
    """x between −1 and 1, else the nearer of them; derivative 0 at both.

    Example: `nk.hard_tanh(x)`
    """
    return in_f32("hard_tanh", lambda x: _clipped(x, -1.0, 1.0), x)


def hard_sigmoid(x: Any) -> Rep:
    """(x + 3) / 6 between −3 and 3, 0 below, 1 above; derivative 0 at both.

    Example: `nk.hard_sigmoid(y)`
    """
    return in_f32("hard_sigmoid", _hard_sigmoid, x)


def _hard_sigmoid(x: Rep) -> Rep:
    return (_clipped(x, -3.0, 3.0) + 3.0) / 6.0


def hard_swish(x: Any) -> Rep:
    """x · hard_sigmoid(x); derivative 0 at −3, 1 at 3.

    Example: `nk.hard_swish(y)`
    """

    def compute(x: Rep) -> Rep:
        line = select(x >= 3.0, x, x * (x + 3.0) / 6.0)
        return select(x <= -3.0, 0.0, line)

    return in_f32("hard_swish", compute, x)


def _clipped(x: Rep, low: float, high: float) -> Rep:
    """x between the ends, which are constants; NaN stays NaN."""
    return select(x <= low, low, select(x >= high, high, x))
