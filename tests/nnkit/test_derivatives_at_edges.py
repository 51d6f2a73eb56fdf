"""The derivative of what is NaN is NaN, for every function of the language in both modes; at ∞ it is the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit.core.types import Array

from .modes import FIRST, SECOND, derivatives
from .oracles import SMOOTH, exact

pytestmark = pytest.mark.usefixtures("unoptimized_code")

inf, nan = math.inf, math.nan

EDGES = np.array(
    [nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.0, -2.5, 3.0, 1e300, -1e300]
)
GROUPS = [[nan, 1.0, 2.0], [1.0, nan, inf], [-inf, nan, 0.5], [nan, nan, nan]]

Body = Callable[[Any], Any]

LINEAR: Final = """
    negate add sub mul matmul mean cumsum concat stack flip pad take broadcast_to sum prod T reshape cast squeeze
    expand_dims transpose ravel degrees radians astype diagonal flatten mT repeat swapaxes trace"""
"""Linear in each operand: the derivative is the coefficient, which does not depend on the operand."""

STEPS: Final = """
    sign floor ceil round rint trunc heaviside floor_divide truncate_divide argmax argmin all any one_hot
    count_nonzero argsort nonzero searchsorted"""
"""Constant between jumps: the derivative is 0 everywhere, or there is none."""

EACH: Final[Mapping[str, Sequence[Body]]] = {
    **{
        name: [getattr(nk, name)]
        for name in nk._HOMES["elementwise"].split()  # type: ignore[attr-defined]
        if len(signature(getattr(nk, name)).parameters) == 1
        if name not in f"{LINEAR} {STEPS}".split()
    },
    "div": [lambda x: 1.0 / x, lambda x: np.inf / x, lambda x: 0.0 / x],
    "power": [
        *(lambda x, p=p: x**p for p in (2.0, 0.5, -1.5, 3.0)),
        *(lambda x, u=u: u**x for u in (2.0, -2.0, 0.5, nan)),
    ],
    "minimum": [lambda x: nk.minimum(x, 1.0), lambda x: nk.minimum(nan, x)],
    "maximum": [lambda x: nk.maximum(x, 1.0), lambda x: nk.maximum(nan, x)],
    "modulo": [
        *(lambda x, v=v: nk.modulo(x, v) for v in (2.0, 0.0, inf)),
        *(lambda x, u=u: nk.modulo(u, x) for u in (2.0, inf)),
    ],
    **{
        name: [
            *(lambda x, f=f, v=v: f(x, v) for v in (2.0, 0.0, inf)),
            *(lambda x, f=f, u=u: f(u, x) for u in (2.0, -inf)),
        ]
        for name in ("remainder", "mod")
        for f in [getattr(nk, name)]
    },
    "atan2": [lambda x: nk.atan2(x, 2.0), lambda x: nk.atan2(-2.0, x)],
    "hypot": [lambda x: nk.hypot(x, 2.0), lambda x: nk.hypot(-2.0, x)],
    "logaddexp": [*(lambda x, y=y: nk.logaddexp(x, y) for y in (0.5, nan, inf, -inf))],
}
"""Elementwise functions: NaN by an element where the result is."""

WHOLE: Final[Mapping[str, Sequence[Body]]] = {
    "max": [lambda x: x.max()],
    "min": [lambda x: x.min()],
    "var": [lambda x: x.var()],
    "std": [lambda x: x.std()],
    "norm": [nk.norm, lambda x: nk.norm(x, axis=0, keepdims=True)],
    "logsumexp": [nk.logsumexp, lambda x: nk.logsumexp(x, axis=0, keepdims=True)],
    "softmax": [nk.softmax],
    "log_softmax": [nk.log_softmax],
    "layer_norm": [lambda x: nk.layer_norm(x), lambda x: nk.layer_norm(x, x * 0.0 + 2.0, x)],
    "cross_entropy": [
        lambda x: nk.cross_entropy(x, nk.const(np.array([0.5, 0.25, 0.25]))),
        lambda x: nk.cross_entropy(x, nk.const(np.array(1))),
    ],
}
"""Functions of a whole vector: NaN by all of its elements when one of them is NaN."""

RUNNING: Final = "cumprod cummax cummin"
"""Each element of the result depends on those before it alone: `tests/nnkit/test_reductions.py`."""

CHOICES: Final = "select stop_gradient copysign fmod clip sort"
"""What is chosen has the derivative 1, negated −1, whatever it is; so has `fmod`.  What is stopped has none."""

MAKERS: Final = "arange full iota ones ones_like zeros zeros_like"
"""Do not depend on numbers."""

PROGRAMS: Final = "at filter fold map scan scatter set"
"""Apply functions of the user, or update parts: `tests/nnkit/test_at.py`."""

NOT_OF_VALUES: Final = """
    asm cache_size clear_cache compile eval expression ir is_function lift llvm memory_analysis named ndim shape size
    spec unpack"""
"""Attributes of a `Rep` that are no functions of its values."""


def test_every_function_is_in_one_table() -> None:
    lists = (LINEAR, RUNNING, CHOICES, STEPS, MAKERS, PROGRAMS, NOT_OF_VALUES)
    listed = [*EACH, *WHOLE, *(name for names in lists for name in names.split())]
    homes: Any = nk._HOMES  # type: ignore[attr-defined]
    homes_of_functions = ("composed", "elementwise", "functions", "reductions")
    public = {name for home in homes_of_functions for name in homes[home].split()}
    methods = {name for name in dir(nk.Rep) if not name.startswith("_")}
    assert set(listed) == public | methods
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", EACH)
def test_the_derivative_by_an_element_is_nan_where_the_function_is(name: str) -> None:
    for body in EACH[name]:
        missing = np.isnan(np.asarray(nk.staged(body)(EDGES)))
        assert missing[0]
        for mode, found in derivatives(body, EDGES, modes=FIRST).items():
            assert np.isnan(found[missing]).all(), (mode, EDGES[missing & ~np.isnan(found)])


@pytest.mark.parametrize("name", WHOLE)
def test_the_derivative_by_all_elements_is_nan_where_one_is(name: str) -> None:
    for body in WHOLE[name]:
        for group in GROUPS:
            x = np.array(group)
            if not np.isnan(np.asarray(nk.staged(body)(x))).any():
                continue
            native = group is GROUPS[0]
            for mode, found in derivatives(body, x, modes=("r",), native=native).items():
                assert np.isnan(found).all(), (mode, group, found)
            for k in range(len(group)):
                by_one, at = by_element(body, k, len(group)), np.asarray(x[k])
                for mode, one in derivatives(by_one, at, x, modes=FIRST, native=False).items():
                    assert np.isnan(one), (mode, group, k)


def test_a_factor_of_zero_wins_over_nan() -> None:
    """The square of an element that is 0 does not move, nor does a variance along a line of equal elements."""
    for mode, found in derivatives(nk.norm, np.array([nan, 0.0]), modes=("r",)).items():
        np.testing.assert_array_equal(found, [nan, 0.0], err_msg=mode)
    for mode, found in derivatives(lambda x: x.var(), np.array([nan, 1.0]), modes=("f",)).items():
        assert found == 0.0, mode


CURVED = [
    name
    for name, oracle in SMOOTH.items()
    if oracle.known > 1 and name not in ("negate", "abs", "relu", "square")
]
"""Functions whose derivatives are neither steps nor lines."""


@pytest.mark.parametrize("name", CURVED)
def test_so_are_second_derivatives(name: str) -> None:
    function = SMOOTH[name].function
    missing = np.isnan(np.asarray(nk.staged(function)(EDGES)))
    for mode, found in derivatives(function, EDGES, modes=SECOND, native=False).items():
        assert np.isnan(found[missing]).all(), (mode, EDGES[missing & ~np.isnan(found)])


def limit(function: Callable[[Any], Any], sign: int) -> float:
    """What `function` tends to at ±∞, told from two places far out."""
    near, far = exact(function, sign * np.array([1e2, 1e5]))
    if abs(far) > 2 * abs(near):
        return math.copysign(inf, far)
    return 0.0 if abs(far) < abs(near) / 2 else float(far)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name not in ("sin", "cos", "tan")])
def test_derivatives_at_infinity_are_limits(name: str) -> None:
    oracle = SMOOTH[name]
    signs = [s for s, end in ((-1, oracle.low), (1, oracle.high)) if np.isinf(end)]
    x = np.array([s * inf for s in signs])
    if not signs:
        return
    modes = (*FIRST, *(SECOND if oracle.known > 1 else ()))
    for mode, found in derivatives(oracle.function, x, modes=modes).items():
        order = len(mode.split()[-1])
        wanted = [limit(oracle.orders[order - 1], s) for s in signs]
        np.testing.assert_allclose(found, wanted, 1e-15, 0, err_msg=f"{name}, {mode}")


LIMITS: Final[Sequence[tuple[Body, list[float], list[float]]]] = [
    (nk.logsumexp, [inf, 1.0], [1, 0]),
    (nk.logsumexp, [-inf, 1.0], [0, 1]),
    (nk.logsumexp, [-inf, -inf], [0, 0]),
    (nk.logsumexp, [inf, inf], [0.5, 0.5]),
    (nk.logsumexp, [inf, -inf], [1, 0]),
    (nk.norm, [inf, 1.0], [1, 0]),
    (nk.norm, [1.0, -inf], [0, -1]),
    (nk.norm, [0.0, 0.0], [0, 0]),
    (lambda x: x.max(), [inf, 1.0], [1, 0]),
    (lambda x: x.min(), [-inf, 1.0], [1, 0]),
    (lambda x: nk.logaddexp(x[0], x[1]), [inf, 1.0], [1, 0]),
    (lambda x: nk.logaddexp(x[0], x[1]), [1.0, -inf], [1, 0]),
    (lambda x: nk.logaddexp(x[0], x[1]), [-inf, -inf], [0, 0]),
    (lambda x: nk.logaddexp(x[0], x[1]), [inf, inf], [0.5, 0.5]),
    (lambda x: nk.maximum(x[0], x[1]), [inf, inf], [0.5, 0.5]),
    (lambda x: x[0] / x[1], [1.0, inf], [0, 0]),
    (lambda x: x[0] ** x[1], [inf, -1.0], [0, 0]),
    (lambda x: x[0] ** x[1], [0.5, inf], [0, 0]),
    (lambda x: x[0] ** x[1], [2.0, -inf], [0, 0]),
    (lambda x: x[0] ** x[1], [0.0, 2.0], [0, 0]),
    (nk.log, [0.0, -0.0], [inf, inf]),
    (nk.sqrt, [0.0, -0.0], [inf, -inf]),
    (nk.log1p, [-1.0], [inf]),
    (nk.atanh, [1.0, -1.0], [inf, inf]),
    (nk.acosh, [1.0], [inf]),
    (nk.asin, [1.0, -1.0], [inf, inf]),
]


@pytest.mark.parametrize(("body", "at", "wanted"), LIMITS)
def test_derivatives_at_the_ends_of_domains(
    body: Body, at: list[float], wanted: list[float]
) -> None:
    x: Array = np.array(at)
    for mode, found in derivatives(body, x, modes=("r",)).items():
        np.testing.assert_array_equal(found, wanted, err_msg=mode)
    for k, want in enumerate(wanted):
        for mode, one in derivatives(
            by_element(body, k, len(at)), np.asarray(x[k]), x, modes=FIRST, native=False
        ).items():
            np.testing.assert_array_equal(one, want, err_msg=f"{mode}, element {k}")


def by_element(body: Body, k: int, count: int) -> Callable[[Any, Any], Any]:
    """`body` as a function of element `k` of `count`, which takes the place of that in x."""
    where = np.arange(count) == k
    return lambda element, x: body(nk.select(nk.const(where), element, x)).sum()


@pytest.mark.parametrize("gap", [0.0, -0.0, 1e-9, -1e-9, 1.0, -30.0, 800.0, inf, -inf, nan])
def test_softplus_and_logaddexp_are_right_twice(gap: float) -> None:
    """The Hessian of logaddexp at (0, −gap) is ±pq with p = 1 / (1 + e^(−gap)); of softplus at gap it is pq."""
    with np.errstate(over="ignore"):
        p, q = (float(1 / (1 + np.exp(np.float64(s * gap)))) for s in (-1, 1))

    @nk.staged
    def by_both(x: Any, y: Any) -> Any:
        return nk.logaddexp(x, y)

    at = np.zeros(1), -np.array([gap])
    first = nk.gradient(of=by_both, wrt=(0, 1))
    np.testing.assert_allclose(np.ravel([np.asarray(d) for d in first(*at)]), [p, q], 4e-16)
    for k in (0, 1):
        line = nk.staged(lambda x, y, k=k: first(x, y)[k])
        found = [np.asarray(d)[0] for d in nk.gradient(of=line, wrt=(0, 1))(*at)]
        np.testing.assert_allclose(found, [p * q, -p * q][:: 1 - 2 * k], 1e-15, 1e-323)
    for found in derivatives(nk.softplus, np.array([gap]), modes=SECOND).values():
        np.testing.assert_allclose(found, [p * q], 1e-15, 1e-323)
