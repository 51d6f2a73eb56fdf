"""`debug_nans`: names the op, or the op of the forward line, that made a NaN or an infinity, with the user's line."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, bf16, f64, i32
from nnkit.callables import StagedFunction

Float = Scalar[f64]
Vector = Tensor1D[f64]


class Params(Struct):
    w: Field[Vector]
    b: Field[Float]


@nk.staged
def root(x: Rep[Float]) -> Rep[Float]:
    return nk.sqrt(x) * 3.0


@nk.staged
def grows(x: Rep[Vector]) -> Rep[Float]:
    start = nk.const(f64(1.0))
    return nk.fori(0, 3, lambda i, s: s * 1e200 + x.sum(), start)


@nk.staged
def shrinks(x: Rep[Float]) -> Rep[Float]:
    return nk.while_loop(lambda s: s > 0.5, lambda s: nk.log(s - 1.0), x)


@nk.staged
def descends(x: Rep[Float], n: Rep[Scalar[i32]]) -> Rep[Float]:
    return nk.cond(n > 0, lambda: x * descends(x, n - 1), lambda: nk.sqrt(x))


@nk.staged
def mapped(x: Rep[Vector]) -> Rep[Float]:
    return x.map(lambda v: nk.log(v)).sum()


V = np.array([1.0, 2.0])
CASES: list[tuple[Any, tuple[Any, ...], str, str]] = [
    (root, (-1.0,), "sqrt makes nan from finite values", "nk.sqrt(x) * 3.0"),
    (nk.gradient(of=root, wrt=0), (0.0,), "the derivative of sqrt makes inf", "nk.sqrt(x) * 3.0"),
    (nk.jvp(of=root), (0.0, 1.0), "the derivative of sqrt makes inf", "nk.sqrt(x) * 3.0"),
    (nk.gradient(of=nk.gradient(of=root, wrt=0), wrt=0), (0.0,), "the derivative of ", "nk.sqrt(x)"),
    (grows, (V,), "multiply makes inf from finite values", "s * 1e200"),
    (nk.gradient(of=grows, wrt=0, keeping=(0,)), (V,), "multiply makes inf", "s * 1e200"),
    (shrinks, (0.9,), "log makes nan", "nk.log(s - 1.0)"),
    (descends, (-1.0, 2), "sqrt makes nan", "nk.sqrt(x)"),
    (nk.gradient(of=descends, wrt=0), (0.0, 0), "the derivative of sqrt makes inf", "nk.sqrt(x)"),
    (mapped, (np.array([1.0, -1.0]),), "log makes nan", "nk.log(v)"),
    (nk.gradient(of=mapped, wrt=0), (np.array([0.0, 1.0]),), "the derivative of log", "nk.log(v)"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "arguments", "message", "line"), CASES)
def test_the_origin_is_named(f: Any, arguments: tuple[Any, ...], message: str, line: str) -> None:
    given = [
        np.int32(one) if isinstance(one, int) else f64(one) if isinstance(one, float) else one
        for one in arguments
    ]
    with pytest.raises(nk.NonFiniteError) as raised, nk.debug_nans():
        f(*given)
    assert isinstance(raised.value, FloatingPointError)
    told = "\n".join([str(raised.value), *raised.value.__notes__])
    assert message in told and line in told and "test_debugging.py:" in told
    assert "note: the result is f64" in told


def test_the_values_are_summed_up() -> None:
    f = nk.fn(Vector)(lambda x: nk.log(x))
    with pytest.raises(nk.NonFiniteError) as raised, nk.debug_nans():
        f(np.array([1.0, -2.0, 3.0, -4.0]))
    assert raised.value.__notes__[-2:] == [
        "  note: an operand is <4 x f64> from -4.0 to 3.0",
        "  note: the result is <4 x f64> from 0.0 to 1.0986122886681098, 2 of 4 elements nan, the first at [1]",
    ]


def test_what_does_not_come_to_a_result_is_no_error() -> None:
    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Vector]:
        return nk.select(x > 0.0, nk.log(x), 0.0 * x)

    x = np.array([-1.0, 0.0, 1.0])
    with nk.debug_nans():
        assert np.asarray(f(x)).tolist() == [0.0, 0.0, 0.0]
        assert np.asarray(nk.gradient(of=f, wrt=0)(x)).tolist() == [0.0, 0.0, 1.0]


def test_what_arguments_and_literals_bring_along_is_no_error() -> None:
    f = nk.fn(Vector)(lambda x: x * 2.0 - x)
    infinite = nk.fn(Vector)(lambda x: x + np.inf)
    with nk.debug_nans():
        assert np.isnan(np.asarray(f(np.array([np.nan, 1.0])))).tolist() == [True, False]
        assert np.isinf(np.asarray(infinite(V))).all()


def test_results_are_those_of_compiled_code() -> None:
    @nk.staged
    def f(p: Rep[Params], h: Rep[Tensor1D[bf16]]) -> tuple[Rep[Params], Rep[Tensor1D[bf16]]]:
        return p.set(Params.b, p[Params.w].sum()), h * 2.0

    p, h = Params(nk.Tensor1D(V), f64(0.5)), nk.Tensor1D([1.0, 2.5], bf16)
    with nk.debug_nans():
        slow, slow_h = f(p, h)
        indexed, _ = f[p, h]
    fast, fast_h = f(p, h)
    assert isinstance(slow, Params) and type(slow_h) is type(fast_h)
    assert repr(slow) == repr(fast) == repr(indexed) and repr(slow_h) == repr(fast_h)


def test_functions_as_arguments_and_results() -> None:
    twice = nk.fn(Float)(lambda x: nk.sqrt(x))

    @nk.staged
    def apply(f: Any, x: Rep[Float]) -> Rep[Float]:
        return f(x)  # type: ignore[no-any-return]  # any function

    with nk.debug_nans():
        assert float(apply(twice, f64(4.0))) == 2.0  # type: ignore[call-overload]  # of any type
        with pytest.raises(nk.NonFiniteError):
            apply(twice, f64(-4.0))  # type: ignore[call-overload]  # of any type


def test_it_is_for_this_thread_and_ends() -> None:
    plain = StagedFunction.__call__
    found: list[float] = []
    with nk.debug_nans():
        with nk.debug_nans():
            pass
        thread = threading.Thread(target=lambda: found.append(float(root(f64(-1.0)))))
        thread.start()
        thread.join()
        with pytest.raises(nk.NonFiniteError):
            root(f64(-1.0))
    assert np.isnan(found).all() and StagedFunction.__call__ is plain
    assert np.isnan(float(root(f64(-1.0))))
