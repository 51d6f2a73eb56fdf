"""Every function and operator of the language against NumPy and mpmath.

Many rows of a table are computed by one staged function, so that a table is compiled once.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import nnkit as nk
from nnkit import bf16, boolean, f16, f32, f64, i8, i32, i64, staged
from nnkit.tensors import RANKED
from tests.accuracy import FUNCTIONS as ACCURACY

pytestmark = pytest.mark.usefixtures("unoptimized_code")

FLOATS = (f16, bf16, f32, f64)
INTEGERS = (i8, i32, i64)
EPSILON = {f16: 2.0**-10, bf16: 2.0**-7, f32: 2.0**-23, f64: 2.0**-52}
LOOSE: Any = nk
"""Calls that run and are not in the stub."""
random = np.random.default_rng(7)


def oracle(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of mpmath, elementwise."""
    return np.vectorize(lambda x: float(function(mpmath.mpf(float(x)))), otypes=[float])


ANY = (-3.0, 3.0)
POSITIVE = (0.1, 4.0)
UNARY: Mapping[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "negate": (np.negative, ANY),
    "abs": (np.abs, ANY),
    "sign": (np.sign, ANY),
    "square": (np.square, ANY),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "exp": (np.exp, ANY),
    "log": (np.log, POSITIVE),
    "log1p": (np.log1p, (-0.9, 3.0)),
    "expm1": (np.expm1, ANY),
    "sin": (np.sin, ANY),
    "cos": (np.cos, ANY),
    "tan": (np.tan, (-1.4, 1.4)),
    "asin": (np.arcsin, (-0.9, 0.9)),
    "acos": (np.arccos, (-0.9, 0.9)),
    "atan": (np.arctan, ANY),
    "sinh": (np.sinh, ANY),
    "cosh": (np.cosh, ANY),
    "tanh": (np.tanh, ANY),
    "asinh": (np.arcsinh, ANY),
    "acosh": (np.arccosh, (1.2, 4.0)),
    "atanh": (np.arctanh, (-0.9, 0.9)),
    "erf": (oracle(mpmath.erf), ANY),
    "erfc": (oracle(mpmath.erfc), ANY),
    "lgamma": (oracle(lambda x: mpmath.log(abs(mpmath.gamma(x)))), POSITIVE),
    "digamma": (oracle(mpmath.digamma), POSITIVE),
    "floor": (np.floor, ANY),
    "ceil": (np.ceil, ANY),
    "round": (np.round, ANY),
    "rint": (np.rint, ANY),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), ANY),
    "relu": (lambda x: np.maximum(x, 0), ANY),
    "softplus": (lambda x: np.logaddexp(x, 0), ANY),
    "gelu": (lambda x: x * oracle(mpmath.ncdf)(x), ANY),
}
INTEGER_UNARY = ("negate", "abs", "sign", "square")


def numbers(shape: tuple[int, ...], low: float, high: float, dtype: Any) -> Any:
    """Random numbers of the element type, as a tensor, and the same as NumPy sees them."""
    if dtype is boolean:
        array = random.random(shape) < 0.5
    elif dtype in INTEGERS:
        array = random.integers(int(low), int(high) + 1, shape).astype(dtype.core.numpy)
    else:
        array = random.uniform(low, high, shape)
    tensor = RANKED[len(shape)](array.tolist(), dtype) if array.size else empty(shape, dtype)
    return tensor, np.asarray(tensor)


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    return RANKED[len(shape)](np.zeros(shape, dtype.core.storage), dtype)


def agree(name: str, got: Any, want: Any, dtype: Any, slack: float = 8.0) -> None:
    """Whether a tensor has the shape, the element type and the values expected."""
    values, want = np.asarray(got), np.asarray(want)
    assert values.shape == want.shape, f"{name}: {values.shape}, not {want.shape}"
    assert got.dtype is dtype, f"{name}: {got.dtype}, not {dtype}"
    if dtype in EPSILON:
        tolerance = slack * EPSILON[dtype]
        np.testing.assert_allclose(
            values.astype(np.float64), want.astype(np.float64), tolerance, tolerance, err_msg=name
        )
    else:
        np.testing.assert_array_equal(values, want, err_msg=name)


def results_of(rows: Mapping[str, Any], *arguments: Any) -> dict[str, Any]:
    """Each row's function of the arguments, all computed by one staged function."""
    functions = [row[0] if isinstance(row, tuple) else row for row in rows.values()]
    names = [f"x{k}" for k in range(len(arguments))]
    body = eval(
        f"lambda {', '.join(names)}: tuple(f({', '.join(names)}) for f in fs)", {"fs": functions}
    )
    found = staged(body)(*arguments)
    return dict(zip(rows, found, strict=True))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.__name__)
def test_functions_of_one_argument(dtype: Any) -> None:
    rows, wanted = [], {}
    for name, (reference, (low, high)) in UNARY.items():
        x, values = numbers((3, 5), low, high, dtype)
        rows.append(x)
        with np.errstate(all="ignore"):
            wanted[name] = reference(values.astype(np.float64))
    stack = np.stack([x._array for x in rows])
    x = nk.Tensor3D(stack, dtype)
    found = staged(lambda x: tuple(getattr(nk, name)(x[k]) for k, name in enumerate(UNARY)))(x)
    for (name, want), got in zip(wanted.items(), found, strict=True):
        agree(name, got, want, dtype)


def test_functions_of_f16_are_those_of_f32_rounded_once() -> None:
    """All 2¹⁶ halves: at 2 ulp of f32, the bound of f16 is 0.5 ulp and 2⁻¹² more."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    names = [name for name, row in ACCURACY.items() if row.operands == 1 and hasattr(nk, name)]
    assert len(names) > 20
    function = staged(lambda x: tuple(getattr(nk, name)(x) for name in names))
    wide = function(nk.Tensor1D(halves.astype(np.float32), f32))
    for name, found, exact in zip(names, function(nk.Tensor1D(halves, f16)), wide, strict=True):
        with np.errstate(all="ignore"):
            rounded = np.asarray(exact).astype(np.float16)
        np.testing.assert_array_equal(np.asarray(found), rounded, err_msg=name)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.__name__)
def test_functions_of_one_integer(dtype: Any) -> None:
    x, values = numbers((7,), -11, 11, dtype)
    found = results_of({name: getattr(nk, name) for name in INTEGER_UNARY}, x)
    for name, got in found.items():
        agree(name, got, UNARY[name][0](values), dtype)


@pytest.mark.parametrize(
    "shape", [(), (1,), (0,), (2, 0, 3), (5, 2), (2, 3, 4), (2, 1, 3, 2)], ids=str
)
def test_functions_keep_every_shape(shape: tuple[int, ...]) -> None:
    x, values = numbers(shape, 0.2, 0.8, f32)
    rows = {
        name: getattr(nk, name) for name in ("exp", "negate", "relu", "sigmoid", "erf", "floor")
    }
    for name, got in results_of(rows, x).items():
        agree(name, got, UNARY[name][0](values.astype(np.float64)), f32)


def test_functions_at_their_edges() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40], np.float32)
    same = {
        "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "tanh": np.tanh, "floor": np.floor, "abs": np.abs,
        "sign": np.sign, "log1p": np.log1p, "expm1": np.expm1, "atan": np.arctan, "asinh": np.arcsinh,
        "rint": np.rint, "square": np.square,
    }  # fmt: skip
    found = results_of({name: getattr(nk, name) for name in same}, x)
    with np.errstate(all="ignore"):
        for name, got in found.items():
            np.testing.assert_allclose(np.asarray(got), same[name](x), 1e-6, err_msg=name)
    more = results_of({"sigmoid": nk.sigmoid, "relu": nk.relu, "gelu": nk.gelu}, x)
    np.testing.assert_array_equal(np.asarray(more["sigmoid"])[:5], [0.5, 0.5, 1, 0, np.nan])
    np.testing.assert_array_equal(np.asarray(more["relu"])[:5], [0, 0, np.inf, 0, np.nan])
    assert np.isnan(np.asarray(more["gelu"])[4]) and np.asarray(more["gelu"])[2] == np.inf


def test_halves_are_rounded_as_promised() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    found = results_of({"round": nk.round, "rint": nk.rint}, x)
    np.testing.assert_array_equal(np.asarray(found["round"]), [-2, -2, -0, 0, 2, 2])
    np.testing.assert_array_equal(np.asarray(found["rint"]), [-2, -2, -0, 0, 2, 2])


PAIRS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (operator.add, np.add),
    "-": (operator.sub, np.subtract),
    "*": (operator.mul, np.multiply),
    "add": (nk.add, np.add),
    "sub": (nk.sub, np.subtract),
    "mul": (nk.mul, np.multiply),
    "minimum": (nk.minimum, np.minimum),
    "maximum": (nk.maximum, np.maximum),
    "modulo": (nk.modulo, np.mod),
}
FLOAT_PAIRS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **PAIRS,
    "/": (operator.truediv, np.divide),
    "div": (nk.div, np.divide),
    "**": (lambda x, y: abs(x) ** y, lambda x, y: np.abs(x) ** y),
    "power": (lambda x, y: nk.power(nk.abs(x), y), lambda x, y: np.abs(x) ** y),
}
INTEGER_PAIRS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **PAIRS,
    "//": (operator.floordiv, np.floor_divide),
    "%": (operator.mod, np.mod),
    "floor_divide": (nk.floor_divide, np.floor_divide),
    "truncate_divide": (nk.truncate_divide, lambda x, y: np.trunc(x / y).astype(x.dtype)),
}
COMPARISONS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "<": (operator.lt, np.less),
    "<=": (operator.le, np.less_equal),
    ">": (operator.gt, np.greater),
    ">=": (operator.ge, np.greater_equal),
    "==": (operator.eq, np.equal),
    "!=": (operator.ne, np.not_equal),
}
LOGIC: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "&": (operator.and_, np.logical_and),
    "|": (operator.or_, np.logical_or),
    "^": (operator.xor, np.logical_xor),
    "==": (operator.eq, np.equal),
    "!=": (operator.ne, np.not_equal),
}
SHAPES = [
    ((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((0, 3), (3,)),
    ((2, 1, 4), (3, 1)), ((2, 3, 1, 2), (2,)), ((1, 3), (0, 1)),
]  # fmt: skip


def wide(values: Any, dtype: Any) -> Any:
    return values.astype(np.float64) if dtype in EPSILON else values


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda d: d.__name__)
def test_functions_of_two_arguments(dtype: Any) -> None:
    rows = {**(FLOAT_PAIRS if dtype in EPSILON else INTEGER_PAIRS), **COMPARISONS}
    x, left = numbers((3, 4), -6, 6, dtype)
    y, right = numbers((4,), 1, 5, dtype)
    for name, got in results_of(rows, x, y).items():
        kind = boolean if name in COMPARISONS else dtype
        want = rows[name][1](wide(left, dtype), wide(right, dtype))
        agree(name, got, want, kind, slack=16 if name in ("modulo", "**", "power") else 4)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, left = numbers(shapes[0], -3, 3, f32)
    y, right = numbers(shapes[1], -3, 3, f32)
    rows = {name: FLOAT_PAIRS[name] for name in ("+", "-", "maximum")} | {"<": COMPARISONS["<"]}
    for name, got in results_of(rows, x, y).items():
        agree(name, got, rows[name][1](left, right), boolean if name == "<" else f32)


def test_numbers_beside_a_tensor_take_its_element_type() -> None:
    for dtype in (*FLOATS, *INTEGERS):
        x, values = numbers((4,), 1, 5, dtype)
        rows: dict[str, Any] = {
            "+ 2": lambda x: x + 2, "2 +": lambda x: 2 + x, "- 2": lambda x: x - 2, "2 -": lambda x: 2 - x,
            "* 2": lambda x: x * 2, "2 *": lambda x: 2 * x, "< 2": lambda x: x < 2, "2 <": lambda x: 2 < x,
            "maximum": lambda x: nk.maximum(x, 2), "minimum": lambda x: nk.minimum(2, x),
        }  # fmt: skip
        for name, got in results_of(rows, x).items():
            want = rows[name](values) if "m" not in name else eval(f"np.{name}(values, 2)")
            agree(f"{dtype.__name__} {name}", got, want, boolean if "<" in name else dtype)
    x, values = numbers((4,), 1, 5, f32)
    rows = {
        "/": lambda x: 1 / x, "**": lambda x: 2 ** x, "** 2": lambda x: x ** 2, "/ 4": lambda x: x / 4.0,
    }  # fmt: skip
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name](values), f32)
    n, integers = numbers((4,), 1, 5, i32)
    rows = {
        "//": lambda x: 7 // x,
        "%": lambda x: 7 % x,
        "// 2": lambda x: x // 2,
        "% 3": lambda x: x % 3,
    }
    for name, got in results_of(rows, n).items():
        agree(name, got, rows[name](integers), i32)


def test_arrays_beside_a_rep_are_constants() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    c = np.array([2.0, 4.0, 8.0], np.float32)
    m = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows: dict[str, Any] = {
        "rep op array": lambda x: x * c - c, "array op rep": lambda x: c - c * x, "array / rep": lambda x: c / (x + 1),
        "array < rep": lambda x: (c < x).cast(f32), "array == rep": lambda x: (c == x).cast(f32),
        "rep @ array": lambda x: x @ m, "array @ rep": lambda x: m @ x, "tensor": lambda x: x + nk.Tensor1D(c),
        "scalar": lambda x: np.float32(3) * x + np.float64(2), "tensor op": lambda x: nk.Tensor1D(c) * x,
        "array // rep": lambda x: (c.astype(np.int32) // (x.cast(i32) + 1)).cast(f32),
    }  # fmt: skip
    found = results_of(rows, x)
    wanted = {
        "rep op array": x * c - c, "array op rep": c - c * x, "array / rep": c / (x + 1), "array < rep": c < x,
        "array == rep": c == x, "rep @ array": x @ m, "array @ rep": m @ x, "tensor": x + c, "scalar": 3 * x + 2,
        "tensor op": c * x, "array // rep": c // (x + 1),
    }  # fmt: skip
    for name, got in found.items():
        agree(name, got, wanted[name], f32)


def test_logic() -> None:
    x, left = numbers((2, 3), 0, 1, boolean)
    y, right = numbers((3,), 0, 1, boolean)
    for name, got in results_of(LOGIC, x, y).items():
        agree(name, got, LOGIC[name][1](left, right), boolean)
    rows: dict[str, Any] = {
        "~": lambda x: ~x, "& True": lambda x: x & True, "False |": lambda x: False | x, "^ True": lambda x: x ^ True,
        "all": lambda x: x.all(), "any": lambda x: x.any(axis=0), "all 1": lambda x: x.all(1, keepdims=True),
    }  # fmt: skip
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name](left) if name != "~" else ~left, boolean)


def test_division_of_integers_at_its_edges() -> None:
    x = np.array([7, -7, 7, -7, 5, -128], np.int8)
    y = np.array([2, 2, -2, -2, 0, -1], np.int8)
    rows = {"floor": nk.floor_divide, "truncate": nk.truncate_divide, "modulo": nk.modulo}
    found = {name: np.asarray(got).tolist() for name, got in results_of(rows, x, y).items()}
    assert found["floor"] == [3, -4, -4, 3, 0, -128]
    assert found["truncate"] == [3, -3, -3, 3, 0, -128]
    assert found["modulo"] == [1, 1, -1, -1, 0, 0]


def test_power_at_its_edges() -> None:
    x = np.array([0.0, 0.0, -2.0, -2.0, 2.0, np.inf, 1.0])
    y = np.array([0.0, -1.0, 3.0, 0.5, -1074.0, 0.0, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(staged(lambda x, y: x**y)(x, y)), np.power(x, y))


AXES: Mapping[int, Sequence[Any]] = {
    0: (None, ()),
    1: (None, 0, -1, (0,)),
    2: (None, 0, 1, -1, (0, 1), (-1, 0)),
    3: (None, 0, 1, -1, (0, 2), (1, 2), (-3, 1)),
    4: (None, 2, -4, (1, 3), (0, 1, 2)),
}


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 3, 4), (2, 1, 3, 2)], ids=str)
def test_reductions(shape: tuple[int, ...]) -> None:
    x, values = numbers(shape, -2, 2, f64)
    rows: dict[str, Any] = {}
    for name, axis, keep in itertools.product(
        ("sum", "prod", "max", "min", "mean", "var"), AXES[len(shape)], (False, True)
    ):
        rows[f"{name} {axis} {keep}"] = (
            lambda x, n=name, a=axis, k=keep: getattr(x, n)(a, keepdims=k),
            getattr(values, name)(axis=axis, keepdims=keep),
        )
    for axis in AXES[len(shape)]:
        rows[f"norm {axis}"] = (
            lambda x, a=axis: nk.norm(x, a),
            np.sqrt(np.square(values).sum(axis=axis)),
        )
        rows[f"logsumexp {axis}"] = (
            lambda x, a=axis: nk.logsumexp(x, axis=a, keepdims=True),
            np.log(np.exp(values).sum(axis=axis, keepdims=True)),
        )
        rows[f"functions {axis}"] = (
            lambda x, a=axis: nk.mean(x, axis=a) + nk.var(x, axis=a),
            values.mean(axis=axis) + values.var(axis=axis),
        )
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name][1], f64, slack=32)
    places: dict[str, Any] = {}
    for axis in [None, *range(-len(shape), len(shape))]:
        places[f"argmax {axis}"] = (lambda x, a=axis: x.argmax(a), values.argmax(axis))
        places[f"argmin {axis}"] = (lambda x, a=axis: x.argmin(axis=a), values.argmin(axis))
    if shape:
        for name, got in results_of(places, x).items():
            agree(name, got, places[name][1], i64)


@pytest.mark.parametrize("dtype", [f16, bf16, f32, *INTEGERS], ids=lambda d: d.__name__)
def test_reductions_of_every_element_type(dtype: Any) -> None:
    x, values = numbers((3, 4), -2, 2, dtype)
    rows: dict[str, Any] = {
        "sum": lambda x: x.sum(), "prod": lambda x: x.prod(axis=1), "max": lambda x: x.max(0),
        "min": lambda x: x.min(axis=-1),
    }  # fmt: skip
    for name, got in results_of(rows, x).items():
        kept = {} if dtype in EPSILON or name in ("max", "min") else {"dtype": values.dtype}
        axis = {"sum": None, "prod": 1, "max": 0, "min": -1}[name]
        agree(name, got, getattr(wide(values, dtype), name)(axis=axis, **kept), dtype, slack=16)
    found = results_of({"argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin()}, x)
    agree("argmax", found["argmax"], values.argmax(1), i64)
    agree("argmin", found["argmin"], values.argmin(), i64)
    if dtype in EPSILON:
        for name in ("mean", "var"):
            got = results_of({name: lambda x, n=name: getattr(x, n)(0)}, x)[name]
            agree(name, got, getattr(wide(values, dtype), name)(axis=0), dtype)


def test_reductions_of_nothing() -> None:
    x = np.zeros((0, 3), np.float32)
    rows: dict[str, Any] = {
        "sum": (lambda x: x.sum(0), [0, 0, 0]), "prod": (lambda x: x.prod(0), [1, 1, 1]),
        "max": (lambda x: x.max(0), [-np.inf] * 3), "min": (lambda x: x.min(), np.inf),
        "mean": (lambda x: x.mean(0), [np.nan] * 3), "rows": (lambda x: x.sum(1), np.zeros(0)),
        "norm": (nk.norm, 0), "logsumexp": (nk.logsumexp, -np.inf),
    }  # fmt: skip
    for name, got in results_of(rows, x).items():
        np.testing.assert_array_equal(np.asarray(got), rows[name][1], err_msg=name)
    n = np.zeros(0, np.int8)
    found = results_of({"max": lambda n: n.max(), "min": lambda n: n.min()}, n)
    assert (int(found["max"]), int(found["min"])) == (-128, 127)
    b = np.zeros((0,), np.bool_)
    logic = results_of({"all": lambda b: b.all(), "any": lambda b: b.any()}, b)
    assert (bool(logic["all"]), bool(logic["any"])) == (True, False)


def test_reductions_meet_nan_and_ties() -> None:
    x = np.array([[1.0, np.nan, 3.0], [2.0, 2.0, 2.0]])
    rows: dict[str, Any] = {
        "max": lambda x: x.max(1), "min": lambda x: x.min(1), "argmax": lambda x: x.argmax(1),
        "argmin": lambda x: x.argmin(1),
    }  # fmt: skip
    found = results_of(rows, x)
    for name, got in found.items():
        np.testing.assert_array_equal(np.asarray(got), getattr(x, name)(axis=1), err_msg=name)


def test_large_sums_of_half_precision_are_means_of_single_precision() -> None:
    x = np.full(100_000, 0.1, np.float16)
    assert float(staged(lambda x: x.mean())(x)) == pytest.approx(0.1, rel=1e-3)
    assert float(staged(lambda x: (x * 1000.0).var())(x)) == pytest.approx(0.0, abs=1e-2)


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_softmax_and_its_kin() -> None:
    x, values = numbers((2, 3, 4), -3, 3, f32)
    exact = values.astype(np.float64)
    rows: dict[str, Any] = {
        "softmax": (nk.softmax, softmax(exact, -1)),
        "softmax 0": (lambda x: nk.softmax(x, axis=0), softmax(exact, 0)),
        "log_softmax": (lambda x: nk.log_softmax(x, axis=1), np.log(softmax(exact, 1))),
        "cumsum": (lambda x: nk.cumsum(x, 1), exact.cumsum(1)),
        "cumsum -1": (lambda x: nk.cumsum(x, axis=-1), exact.cumsum(-1)),
        "layer_norm": (
            nk.layer_norm,
            (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5),
        ),
        "layer_norm scaled": (
            lambda x: nk.layer_norm(x, x[0, 0], x[1, 0], epsilon=0.5),
            (exact - exact.mean(-1, keepdims=True))
            / np.sqrt(exact.var(-1, keepdims=True) + 0.5)
            * exact[0, 0]
            + exact[1, 0],
        ),
    }
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name][1], f32)
    large = np.array([[1e4, -1e4, 0.0], [-np.inf, 0.0, 0.0], [-1e4, -1e4, -1e4]], np.float32)
    found = results_of({"s": nk.softmax, "l": lambda x: nk.logsumexp(x, axis=1)}, large)
    np.testing.assert_allclose(np.asarray(found["s"]), softmax(large, -1), 1e-6)
    np.testing.assert_allclose(np.asarray(found["l"]), [1e4, math.log(2), -1e4 + math.log(3)], 1e-6)


def test_cross_entropy() -> None:
    x, values = numbers((4, 3), -3, 3, f64)
    logs = np.log(softmax(values, -1))
    wanted = -logs[np.arange(4), [2, 0, 1, 2]].mean()
    for dtype in INTEGERS:
        labels = np.array([2, 0, 1, 2], dtype.core.numpy)
        agree(dtype.__name__, staged(nk.cross_entropy)(x, labels), wanted, f64)
    p = softmax(np.array(values[::-1]), -1)
    agree("probabilities", staged(nk.cross_entropy)(x, p), -(p * logs).sum(-1).mean(), f64)
    one = staged(lambda x, i: nk.cross_entropy(x[0], i))(x, np.int32(1))
    agree("one", one, -logs[0, 1], f64)
    far = np.array([[1e4, -1e4, 0.0]], np.float32)
    assert float(staged(nk.cross_entropy)(far, np.array([1], np.int64))) == pytest.approx(2e4)
    many = staged(nk.cross_entropy)(np.zeros((2, 1000), np.float32), np.array([5, 127], np.int8))
    assert float(many) == pytest.approx(math.log(1000))


def movements(v: Any) -> dict[str, Any]:
    """Functions of a tensor, and what they give for `v`."""
    return {
        "transpose": (lambda x: x.transpose(), v.transpose()),
        "transpose 2 0 1": (lambda x: x.transpose(2, 0, -2), v.transpose(2, 0, 1)),
        "reshape": (lambda x: x.reshape(6, -1), v.reshape(6, 4)),
        "reshape flat": (lambda x: x.reshape(-1), v.reshape(-1)),
        "T": (lambda x: x[0].T, v[0].T),
        "expand": (lambda x: x.expand_dims(1), v[:, None]),
        "expand -1": (lambda x: x.expand_dims(-1), v[..., None]),
        "squeeze": (lambda x: x[:1].squeeze(0), v[0]),
        "concat": (
            lambda x: nk.concat([x, x * 2.0, x[:1]], axis=0),
            np.concatenate([v, v * 2, v[:1]]),
        ),
        "concat -1": (lambda x: nk.concat((x, x), axis=-1), np.concatenate([v, v], -1)),
        "stack": (lambda x: nk.stack([x, -x], axis=2), np.stack([v, -v], 2)),
        "stack -1": (lambda x: nk.stack([x[0], x[1]], axis=-1), np.stack([v[0], v[1]], -1)),
        "flip": (lambda x: nk.flip(x, 1), v[:, ::-1]),
        "flip -1": (lambda x: nk.flip(x, axis=-1), v[..., ::-1]),
        "flip all": (lambda x: LOOSE.flip(x), np.flip(v)),
        "flip two": (lambda x: LOOSE.flip(x, axis=(0, -1)), np.flip(v, (0, -1))),
        "pad all": (
            lambda x: LOOSE.pad(x, 1, constant_values=2.0),
            np.pad(v, 1, constant_values=2.0),
        ),
        "pad": (
            lambda x: nk.pad(x, [(1, 0), (0, 2), (1, 1)], constant_values=-1.5),
            np.pad(v, [(1, 0), (0, 2), (1, 1)], constant_values=-1.5),
        ),
        "broadcast_to": (
            lambda x: nk.broadcast_to(x[0, 0], (2, 2, 4)),
            np.broadcast_to(v[0, 0], (2, 2, 4)),
        ),
        "zeros_like": (nk.zeros_like, np.zeros_like(v)),
        "ones_like": (nk.ones_like, np.ones_like(v)),
        "named": (lambda x: x.named(nk.Dim, nk.Dim, nk.Dim), v),
        "stop_gradient": (nk.stop_gradient, v),
        "pos": (lambda x: +x, v),
        "negative": (lambda x: -x, -v),
        "abs()": (abs, np.abs(v)),
    }


def arguments_by_name(v: Any) -> tuple[Any, Any]:
    return (
        lambda x: (
            LOOSE.pad(LOOSE.ones(shape=(2, 2), dtype=f32), 1)
            + LOOSE.zeros((4, 4), dtype=f32)
            + LOOSE.full(shape=(4, 4), fill_value=2, dtype=f32)
            + LOOSE.arange(4, dtype=f32)
            + LOOSE.one_hot(LOOSE.arange(4, dtype=i64), 4, dtype=f32)
            + LOOSE.iota((4, 4), dtype=f32)
            + LOOSE.tri(4, dtype=f32)
            + LOOSE.broadcast_to(LOOSE.take(x[0, 0], indices=0), shape=(4, 4))
        ),
        np.pad(np.ones((2, 2), np.float32), 1)
        + 2
        + np.arange(4, dtype=np.float32)
        + np.eye(4, dtype=np.float32)
        + np.arange(4, dtype=np.float32)[:, None]
        + np.tri(4, dtype=np.float32)
        + v[0, 0, 0],
    )


def test_movement() -> None:
    x, v = numbers((2, 3, 4), -3, 3, f32)
    rows = movements(v) | {"named arguments": arguments_by_name(v)}
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name][1], f32, slack=0)


INDICES: Mapping[str, Any] = {
    "int": 1, "negative": -1, "two": (1, -2), "three": (0, 1, 2), "slice": slice(1, 3), "open": slice(None, -1),
    "steps": slice(None, None, 2), "backwards": slice(None, None, -1), "back by two": (slice(None), slice(4, 0, -2)),
    "ellipsis": (..., 1), "middle": (0, ..., slice(1, None)), "empty": slice(3, 1), "far": slice(-100, 100),
    "far back": slice(100, None, -3), "everything": ..., "none": (), "numpy": np.int64(1), "mixed": (slice(0, 2), 3),
    "all": (slice(None), slice(None), slice(None)), "step past": (slice(None), slice(1, None, 10)),
}  # fmt: skip


def test_subscripts() -> None:
    x, values = numbers((4, 5, 3), -3, 3, f32)
    rows = {name: (lambda x, key=key: x[key]) for name, key in INDICES.items()}
    for name, got in results_of(rows, x).items():
        agree(name, got, values[INDICES[name]], f32, slack=0)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.__name__)
def test_staged_indices(dtype: Any) -> None:
    x, values = numbers((4, 5), -3, 3, f32)
    indices = np.array([3, -1, 0, -4], dtype.core.numpy)
    rows: dict[str, Any] = {
        "row": (lambda x, i: x[i[0]], values[3]),
        "negative": (lambda x, i: x[i[1]], values[-1]),
        "element": (lambda x, i: x[i[0], i[1]], values[3, -1]),
        "column": (lambda x, i: x[:, i[0]], values[:, 3]),
        "mixed": (lambda x, i: x[1:3, i[1]], values[1:3, -1]),
        "take": (lambda x, i: nk.take(x, i), values[indices]),
        "take 1": (lambda x, i: nk.take(x, i, axis=1), values[:, indices]),
        "take matrix": (
            lambda x, i: nk.take(x, i.reshape(2, 2), axis=-1),
            values[:, indices.reshape(2, 2)],
        ),
        "take one": (lambda x, i: nk.take(x, i[1], axis=1), values[:, -1]),
        "clip": (lambda x, i: nk.take(x, i * 9, mode="clip"), values[[3, 0, 0, 0]]),
    }
    for name, got in results_of(rows, x, nk.Tensor1D(indices)).items():
        agree(name, got, rows[name][1], f32, slack=0)
    hot = staged(lambda i: nk.one_hot(i, 4, f32))(indices)
    agree("one_hot", hot, indices[:, None] == np.arange(4), f32)


def test_indices_of_eight_bits_reach_along_axes_longer_than_they_count() -> None:
    x = np.arange(1000, dtype=np.float32)
    i = np.array([-1, 127, -128], np.int8)
    agree("take", staged(nk.take)(x, i), x[i], f32)


def test_fillers() -> None:
    rows: dict[str, Any] = {}
    for dtype in (*FLOATS, *INTEGERS):
        kind, name = dtype.core.numpy, dtype.__name__
        rows[f"arange {name}"] = (
            lambda _, d=dtype: nk.arange(5, d),
            np.arange(5, dtype=kind),
            dtype,
        )
        rows[f"zeros {name}"] = (
            lambda _, d=dtype: nk.zeros((2, 0, 1), d),
            np.zeros((2, 0, 1), kind),
            dtype,
        )
        rows[f"full {name}"] = (
            lambda _, d=dtype: nk.full((2, 2), 3, d),
            np.full((2, 2), 3, kind),
            dtype,
        )
    rows["iota"] = (lambda _: nk.iota((2, 3), i32, axis=1), np.indices((2, 3))[1], i32)
    rows["iota -2"] = (lambda _: nk.iota((2, 3), f32, axis=-2), np.indices((2, 3))[0], f32)
    rows["ones"] = (lambda _: nk.ones((), boolean), np.True_, boolean)
    rows["scalar"] = (lambda _: nk.full((), math.inf, f32), np.float32(math.inf), f32)
    rows["zeros boolean"] = (lambda _: nk.zeros((3,), boolean), np.zeros(3, bool), boolean)
    rows["zeros_like"] = (lambda x: nk.zeros_like(x > 0.0), np.zeros(1, bool), boolean)
    for name, got in results_of(rows, np.zeros(1, np.float32)).items():
        agree(name, got, rows[name][1], rows[name][2])


def test_select() -> None:
    x, values = numbers((2, 3), -3, 3, f32)
    row = values[0]
    rows: dict[str, Any] = {
        "tensors": (lambda x: nk.select(x > 0.0, x, -x), np.abs(values)),
        "number": (lambda x: nk.select(x > 0.0, x, 0), np.maximum(values, 0)),
        "number first": (lambda x: nk.select(x > 0.0, 1, x), np.where(values > 0, 1, values)),
        "broadcast": (lambda x: nk.select(x[0] > 0.0, x, x[0]), np.where(row > 0, values, row)),
    }
    for name, got in results_of(rows, x).items():
        agree(name, got, rows[name][1], f32)


CASTS = (f16, bf16, f32, f64, i8, i32, i64, boolean)


@pytest.mark.parametrize("source", CASTS, ids=lambda d: d.__name__)
def test_casts(source: Any) -> None:
    x, values = numbers((9,), -100, 100, source)
    rows = {dtype.__name__: (lambda x, d=dtype: x.cast(d)) for dtype in CASTS}
    for dtype, got in zip(CASTS, results_of(rows, x).values(), strict=True):
        want = values != 0 if dtype is boolean else values.astype(np.float64)
        want = np.trunc(want) if dtype in INTEGERS else want
        agree(f"{source.__name__} to {dtype.__name__}", got, want, dtype, slack=0.5)


@pytest.mark.parametrize(
    "shapes",
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
     ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1)), ((3,), (5, 3, 2)), ((5, 2,
     3), (3,))],
    ids=str,
)  # fmt: skip
def test_matrix_products(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, left = numbers(shapes[0], -2, 2, f64)
    y, right = numbers(shapes[1], -2, 2, f64)
    agree("@", staged(lambda x, y: x @ y)(x, y), left @ right, f64)


@pytest.mark.parametrize("dtype", [f16, bf16, f32, *INTEGERS], ids=lambda d: d.__name__)
def test_matrix_products_of_every_element_type(dtype: Any) -> None:
    x, left = numbers((3, 4), -2, 2, dtype)
    y, right = numbers((4, 2), -2, 2, dtype)
    want = wide(left, dtype) @ wide(right, dtype)
    agree("@", staged(lambda x, y: x @ y)(x, y), want, dtype, slack=32)


def test_logaddexp_and_softplus_to_their_last_digits() -> None:
    ends = [
        -np.inf,
        -1e300,
        -800.0,
        -40.0,
        -1.5,
        -1e-9,
        0.0,
        0.25,
        30.0,
        709.0,
        1e300,
        np.inf,
        np.nan,
    ]
    x, y = map(np.ravel, np.meshgrid(ends, ends))
    found = results_of({"pair": nk.logaddexp, "one": lambda x, _: nk.softplus(x)}, x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(found["pair"]), np.logaddexp(x, y), 4e-16, 0)
        np.testing.assert_allclose(np.asarray(found["one"]), np.logaddexp(x, 0), 4e-16, 0)
    wide = staged(lambda x: nk.logaddexp(x[:, :1], x[0]) + nk.logaddexp(0.5, x))
    at = random.normal(size=(3, 4))
    want = np.logaddexp(at[:, :1], at[0]) + np.logaddexp(0.5, at)
    np.testing.assert_allclose(np.asarray(wide(at)), want, 4e-15)
    with pytest.raises(nk.DTypeError, match="cannot logaddexp two Python numbers"):
        nk.logaddexp(1.0, 2.0)
    with pytest.raises(nk.DTypeError):
        staged(lambda x: nk.softplus(x))(np.arange(3))
